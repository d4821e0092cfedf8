"""Access to the sources of a package is decided by policies, and noted for the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from context_builder.assembly.access import Access, AccessQuestion, Ruling
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.gather import told_failure
from context_builder.errors import KnowledgeError
from context_builder.knowledge.governance import Agent, DecisionContext
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.package_request import PackageQuestion
from context_builder.knowledge.redaction import PreparedRedactor
from context_builder.knowledge.services import MemoryPolicy
from context_builder.knowledge.signals import node_of


class PackageAccess:
    """Asks a policy service; the access policy of a pipeline of packages.

    What may be seen redacted only is ``prepared``, where another service redacts. What fails is noted in the question:
    without decisions all is denied, without redaction what needs it is withheld.
    """

    def __init__(self, policy: MemoryPolicy, prepared: PreparedRedactor | None = None) -> None:
        self._policy = policy
        self._prepared = prepared

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        if not isinstance(question, PackageQuestion):
            raise TypeError(f"asked with a {type(question).__name__}")
        sources = [node_of(one).governed(question.agent.tenant) for one in candidates]
        try:
            report = await self._policy.decide(question.agent, sources, DecisionContext(question.query, question.now))
        except KnowledgeError as error:
            question.failures["policy"] = f"{told_failure(error)}; all is denied"
            return {one.id: Ruling(Access.DENIED, "no decision could be had") for one in candidates}
        question.reports.append(report)
        rulings: dict[str, Ruling] = {}
        for decision in report.decisions:
            access = decision.access if decision.ref not in rulings else Access.DENIED
            rulings[decision.ref] = Ruling(access, decision.reason)
        if self._prepared is not None:
            await self._prepare(self._prepared, candidates, rulings, question)
        return rulings

    async def _prepare(
        self,
        prepared: PreparedRedactor,
        candidates: Sequence[Candidate],
        rulings: Mapping[str, Ruling],
        question: PackageQuestion,
    ) -> None:
        redacted = [one for one in candidates if rulings[one.id].access is Access.REDACTED]

        def show(policy: RedactionPolicy) -> None:
            for one in redacted:
                policy.candidate(one)

        if failure := await prepared.prepare(show):
            question.failures["redaction"] = f"{failure}; what is to be redacted is withheld"


class TurnAccess:
    """Decides for an agent's turn about what knowledge offers; what memories offer passes, as in turns without it."""

    def __init__(self, access: PackageAccess, agent: Agent) -> None:
        self._access = access
        self._agent = agent

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        rulings = {one.id: Ruling(Access.READ) for one in candidates}
        known = [one for one in candidates if isinstance(one.metadata.get("node"), KnowledgeNode)]
        if not known:
            return rulings
        agent = self._agent
        asked = PackageQuestion(
            question.query, question.now, agent.tenant, agent.sub, agent=agent, reports=[], failures={}
        )
        return {**rulings, **await self._access.decide(known, asked)}
