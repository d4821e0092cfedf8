"""Policies decide access to the sources of a package, and the record keeps the decisions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from operator import attrgetter
from typing import Final, NamedTuple

from context_builder.assembly.access import Access, AccessQuestion, Redacted, Ruling
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.retrieval.gather import told_failure
from context_builder.errors import DatabaseError
from context_builder.knowledge.artifact import MAX_CONTENT, Sensitivity
from context_builder.knowledge.excerpt import Part, parts_of
from context_builder.knowledge.filling import UNFOUND
from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.local import said_ref
from context_builder.knowledge.node import KnowledgeNode, is_found_redacted
from context_builder.knowledge.package_request import PackageQuestion
from context_builder.knowledge.passages import passages_of
from context_builder.knowledge.redaction import PreparedRedactor
from context_builder.knowledge.services import MemoryPolicy, MetadataIndex, SessionSensitivities
from context_builder.knowledge.signals import node_of
from context_builder.memory.memory import Memory

_MOST_PASSAGES: Final = 20
"""Passages of a redacted document that is too long to be looked at."""

_WORD: Final = re.compile(r"\w+")


class PackageAccess:
    """Asks a policy service, and redacts what may be seen redacted only; the access policy of a pipeline of packages.

    What is redacted is loaded whole. It is ``prepared``, where another service redacts. What fails is noted in the
    question: without decisions all is denied, without redaction what needs it is withheld.
    """

    def __init__(
        self,
        policy: MemoryPolicy,
        index: MetadataIndex,
        redaction: RedactionPolicy,
        prepared: PreparedRedactor | None = None,
    ) -> None:
        self._policy = policy
        self._index = index
        self._redaction = redaction
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
        except DatabaseError as error:
            question.failures["policy"] = f"{told_failure(error)}; all is denied"
            return {one.id: Ruling(Access.DENIED, "no decision could be had") for one in candidates}
        question.reports.append(report)
        rulings: dict[str, Ruling] = {}
        for one, decision in zip(candidates, report.decisions, strict=True):
            access = decision.access if one.id not in rulings else Access.DENIED
            rulings[one.id] = Ruling(access, decision.reason)
        redacted = [one for one in candidates if rulings[one.id].access is Access.REDACTED]
        return {**rulings, **await self._redacted(redacted, rulings, question)} if redacted else rulings

    async def _redacted(
        self, candidates: Sequence[Candidate], rulings: Mapping[str, Ruling], question: PackageQuestion
    ) -> dict[str, Ruling]:
        """Return the rulings of candidates that are redacted, with these as they may be shown."""
        nodes = {one.id: node for one in candidates if isinstance(node := one.metadata.get("node"), KnowledgeNode)}
        cut = [ref for ref, node in nodes.items() if node.content is None]
        try:
            nodes |= await self._index.nodes(question.agent.tenant, cut, MAX_CONTENT) if cut else {}
        except DatabaseError as error:
            question.failures["redaction"] = f"{told_failure(error)}; what is to be redacted is withheld"

        def shown(policy: RedactionPolicy) -> dict[str, Ruling]:
            return {one.id: _redacted(one, nodes.get(one.id), rulings[one.id], policy, question) for one in candidates}

        if self._prepared is not None and (failure := await self._prepared.prepare(shown)):
            question.failures["redaction"] = f"{failure}; what is to be redacted is withheld"
        return await asyncio.to_thread(shown, self._redaction)


def _redacted(
    candidate: Candidate, node: KnowledgeNode | None, ruling: Ruling, policy: RedactionPolicy, question: PackageQuestion
) -> Ruling:
    """Return the ruling with the candidate as it may be shown, and as alike the query as that is."""
    if node is None:
        redacted = policy.candidate(candidate)
        is_told = True
    elif node.content is None:
        return ruling._replace(redacted=Redacted(candidate, "withheld: it could not be had whole", withheld=True))
    else:
        shown, altered, withheld = node.redacted(policy)
        is_told = not is_found_redacted(node)
        redacted = Redacted(_shown(candidate, shown, question, is_told=is_told), altered, withheld)
    if not (redacted.altered and is_told):
        return ruling._replace(redacted=redacted)
    return ruling._replace(redacted=redacted, similarity=shared_words(question.query, redacted.value.text))


def _shown(candidate: Candidate, node: KnowledgeNode, question: PackageQuestion, *, is_told: bool) -> Candidate:
    """Return the candidate of a redacted node.

    Which passages were found is kept unless that tells (``is_told``) what was redacted; they are parted anew, since a
    search may know their headings as they were. Of a content that is too long to be looked at, the passages that share
    words with the query are.
    """
    content = node.content or ""
    known = {} if is_told else {one.passage.text: one.likeness for one in candidate.metadata.get("passages", ())}
    found = [
        Part(place, one, known[one.text])
        for place, one in enumerate(passages_of(content, node.kind, node.ref) if known else ())
        if one.text in known
    ]
    if len(content) <= question.longest:
        return node.candidate("", passages=found)
    if not found:
        alike = (
            one for one in parts_of(content, node.kind, node.ref, question.query, floor=UNFOUND) if one.likeness > 0
        )
        found = sorted(nlargest(_MOST_PASSAGES, alike, key=attrgetter("likeness")))
    return replace(node, content=None).candidate("", passages=found)


def shared_words(query: str, text: str) -> float:
    """Return the share of the query's different words that a text has."""
    words = set(_WORD.findall(query.casefold()))
    return len(words.intersection(_WORD.findall(text.casefold()))) / len(words) if words else 0.0


class TurnMemories(NamedTuple):
    """Holds which session a turn is of, and what tells the sensitivities that are stated of a tenant's sessions.

    Without a session, what was said in the turn's own is decided about as what was said in others.
    """

    session_id: str | None
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
        said = {one.id: one.memory for one in candidates if one.memory and (not own or one.memory.session_id != own)}
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
