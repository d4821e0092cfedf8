"""Access to the sources of a package is decided by policies, and noted for the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_builder.assembly.access import Access, AccessQuestion, Ruling
from context_builder.assembly.candidate import Candidate
from context_builder.knowledge.governance import DecisionContext
from context_builder.knowledge.package_request import PackageQuestion
from context_builder.knowledge.services import MemoryPolicy
from context_builder.knowledge.signals import node_of


class PackageAccess:
    """Asks a policy service; the access policy of a pipeline of packages."""

    def __init__(self, policy: MemoryPolicy) -> None:
        self._policy = policy

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        if not isinstance(question, PackageQuestion):
            raise TypeError(f"asked with a {type(question).__name__}")
        sources = [node_of(one).governed(question.agent.tenant) for one in candidates]
        report = await self._policy.decide(question.agent, sources, DecisionContext(question.query, question.now))
        question.reports.append(report)
        rulings: dict[str, Ruling] = {}
        for decision in report.decisions:
            access = decision.access if decision.ref not in rulings else Access.DENIED
            rulings[decision.ref] = Ruling(access, decision.reason)
        return rulings
