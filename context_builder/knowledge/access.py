"""Policies decide access to the sources of a package, and the record keeps the decisions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from context_builder.assembly.access import Access, AccessQuestion, Ruling
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.gather import told_failure
from context_builder.errors import KnowledgeError
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.local import said_ref
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.package_request import PackageQuestion
from context_builder.knowledge.redaction import PreparedRedactor
from context_builder.knowledge.services import MemoryPolicy
from context_builder.knowledge.signals import node_of
from context_builder.memory.memory import Memory

SessionSensitivities: TypeAlias = Callable[[str, Iterable[str]], Awaitable[Mapping[str, str]]]
"""Returns the sensitivities of those of a tenant's sessions of which any is stated."""


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
        return await self.rulings(candidates, sources, question)

    async def rulings(
        self, candidates: Sequence[Candidate], sources: Sequence[GovernedSource], question: PackageQuestion
    ) -> Mapping[str, Ruling]:
        """Return a ruling for each candidate by its id, as policies know it by the source in its place."""
        try:
            report = await self._policy.decide(question.agent, sources, DecisionContext(question.query, question.now))
        except KnowledgeError as error:
            question.failures["policy"] = f"{told_failure(error)}; all is denied"
            return {one.id: Ruling(Access.DENIED, "no decision could be had") for one in candidates}
        question.reports.append(report)
        rulings: dict[str, Ruling] = {}
        for one, decision in zip(candidates, report.decisions, strict=True):
            access = decision.access if one.id not in rulings else Access.DENIED
            rulings[one.id] = Ruling(access, decision.reason)
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


class TurnMemories(NamedTuple):
    """Holds which session a turn is of, and what tells the sensitivities that are stated of a tenant's sessions."""

    session_id: str
    sensitivities: SessionSensitivities


class TurnAccess:
    """Decides for an agent's turn about what knowledge offers and, with ``memories``, about what memories do.

    What was said in the turn's own session passes, as it does in the turn's history; so do, without ``memories``, all
    that memories offer.
    """

    def __init__(self, access: PackageAccess, agent: Agent, memories: TurnMemories | None = None) -> None:
        self._access = access
        self._agent = agent
        self._memories = memories

    async def decide(self, candidates: Sequence[Candidate], question: AccessQuestion) -> Mapping[str, Ruling]:
        passing = {one.id: Ruling(Access.READ) for one in candidates}
        sources = await self._sources(candidates)
        if not sources:
            return passing
        agent = self._agent
        asked = PackageQuestion(
            question.query, question.now, agent.tenant, agent.sub, agent=agent, reports=[], failures={}
        )
        governed = [one for one in candidates if one.id in sources]
        return {**passing, **await self._access.rulings(governed, [sources[one.id] for one in governed], asked)}

    async def _sources(self, candidates: Sequence[Candidate]) -> dict[str, GovernedSource]:
        """Return what is decided about, by the candidates' ids, as policies know it."""
        tenant = self._agent.tenant
        known = {one.id: node for one in candidates if isinstance(node := one.metadata.get("node"), KnowledgeNode)}
        sources = {name: node.governed(tenant) for name, node in known.items()}
        if self._memories is None:
            return sources
        own, sensitivities = self._memories
        said = {one.id: one.memory for one in candidates if one.memory and one.memory.session_id != own}
        return sources | dict(zip(said, await memory_sources(tenant, list(said.values()), sensitivities), strict=True))


async def memory_sources(
    tenant_id: str, memories: Sequence[Memory], sensitivities: SessionSensitivities
) -> list[GovernedSource]:
    """Return memories as policies know them: messages and points as in packages, under the same refs."""
    sessions = {one.session_id for one in memories if one.session_id is not None}
    stated = await sensitivities(tenant_id, sessions) if sessions else {}
    return [
        GovernedSource(
            ref=said_ref(one) or one.id,
            tenant=tenant_id,
            kind=one.metadata.get("point") or "claim" if one.kind == "point" else one.kind,
            sensitivity=stated.get(one.session_id or "", Sensitivity.INTERNAL.value),
            session=one.session_id or "",
            tags=frozenset(one.tags),
        )
        for one in memories
    ]
