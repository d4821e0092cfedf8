"""Governing: policies decide access to the sources of a package, and what may only be seen redacted is redacted."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from heapq import nlargest
from operator import attrgetter
from types import MappingProxyType
from typing import Final, NamedTuple

import structlog

from context_builder.analysis.processes import Helpers, TookTooLong
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.govern import Access, AccessQuestion, Redacted, RedactionPolicy, Ruling
from context_builder.assembly.health import told_failure
from context_builder.concurrency import beside_loop
from context_builder.errors import DatabaseError, DatabaseUnavailable
from context_builder.knowledge.artifact import MAX_CONTENT, Sensitivity
from context_builder.knowledge.excerpt import UNFOUND, Part, parts_of
from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.local import said_ref
from context_builder.knowledge.node import KnowledgeNode, is_found_redacted, node_of
from context_builder.knowledge.passages import passages_of
from context_builder.knowledge.services import (
    AccessReport,
    MemoryPolicy,
    MemoryRedaction,
    MetadataIndex,
    SessionSensitivities,
)
from context_builder.memory.memory import Memory
from context_builder.redaction.redactor import RedactorProtocol

log = structlog.get_logger(__name__)

_MOST_PASSAGES: Final = 20
"""Passages of a redacted document that is too long to be looked at."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class PackageQuestion:
    """For which agent, and for what, candidates are wanted; of contents of more than ``longest`` characters parts."""

    agent: Agent
    intent: str
    now: datetime
    longest: int = MAX_CONTENT


class AccessRulings(NamedTuple):
    """How candidates may be seen, by their ids; the report that tells so, None without one.

    ``failures`` tell in words which of policy and redaction did not do its work.
    """

    rulings: Mapping[str, Ruling]
    report: AccessReport | None = None
    failures: Mapping[str, str] = MappingProxyType({})


NO_RULINGS: Final = AccessRulings({})
"""Denies everything."""


class PackageAccess:
    """Asks a policy service, and redacts what may be seen redacted only.

    What is redacted is loaded whole. Without decisions all is denied, without redaction what needs it is withheld.
    """

    def __init__(self, policy: MemoryPolicy, index: MetadataIndex, redactor: PreparedRedactor) -> None:
        self._policy = policy
        self._index = index
        self._redactor = redactor

    async def decide(self, candidates: Sequence[Candidate], question: PackageQuestion) -> AccessRulings:
        """Return how each candidate, which is of a node, may be seen."""
        return await self.rulings(
            candidates, [node_of(one).governed(question.agent.tenant) for one in candidates], question
        )

    async def rulings(
        self, candidates: Sequence[Candidate], sources: Sequence[GovernedSource], question: PackageQuestion
    ) -> AccessRulings:
        """Return how each candidate may be seen, as policies know it by the source in its place."""
        try:
            report = await self._policy.decide(question.agent, sources, DecisionContext(question.intent, question.now))
        except DatabaseError as error:
            denied = {one.id: Ruling(Access.DENIED, "no decision could be had") for one in candidates}
            return AccessRulings(denied, None, {"policy": f"{told_failure(error)}; all is denied"})
        rulings: dict[str, Ruling] = {}
        for one, decision in zip(candidates, report.decisions, strict=True):
            access = decision.access if one.id not in rulings else Access.DENIED
            rulings[one.id] = Ruling(access, decision.reason)
        redacted = [one for one in candidates if rulings[one.id].access is Access.REDACTED]
        if not redacted:
            return AccessRulings(rulings, report)
        shown, failures = await self._redacted(redacted, rulings, question)
        return AccessRulings({**rulings, **shown}, report, failures)

    async def _redacted(
        self, candidates: Sequence[Candidate], rulings: Mapping[str, Ruling], question: PackageQuestion
    ) -> tuple[dict[str, Ruling], dict[str, str]]:
        """Return the rulings of candidates that are redacted, with these as they may be shown; and what failed."""
        failures: dict[str, str] = {}
        nodes = {one.id: node for one in candidates if isinstance(node := one.metadata.get("node"), KnowledgeNode)}
        cut = [ref for ref, node in nodes.items() if node.content is None]
        try:
            nodes |= await self._index.nodes(question.agent.tenant, cut, MAX_CONTENT) if cut else {}
        except DatabaseError as error:
            failures["redaction"] = f"{told_failure(error)}; what is to be redacted is withheld"

        def shown(policy: RedactionPolicy) -> dict[str, Ruling]:
            return {one.id: _redacted(one, nodes.get(one.id), rulings[one.id], policy, question) for one in candidates}

        if failure := await self._redactor.prepare(shown):
            failures["redaction"] = f"{failure}; what is to be redacted is withheld"
        return await beside_loop(shown, self._redactor.policy), failures


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
    return ruling._replace(redacted=redacted, similarity=shared_words(question.intent, redacted.value.text))


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
            one for one in parts_of(content, node.kind, node.ref, question.intent, floor=UNFOUND) if one.likeness > 0
        )
        found = sorted(nlargest(_MOST_PASSAGES, alike, key=attrgetter("likeness")))
    return replace(node, content=None).candidate("", passages=found)


def shared_words(query: str, text: str) -> float:
    """Return the share of the query's different words that a text has."""
    words = set(_WORD.findall(query.casefold()))
    return len(words.intersection(_WORD.findall(text.casefold()))) / len(words) if words else 0.0


class TurnMemories(NamedTuple):
    """Which session a turn is of, and what tells the sensitivities that are stated of a tenant's sessions.

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
        asked = PackageQuestion(self._agent, question.query, question.now)
        governed = [one for one in candidates if one.id in sources]
        decided = await self._access.rulings(governed, [sources[one.id] for one in governed], asked)
        return {**passing, **decided.rulings}

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


QUICK: Final = 2_000
"""Characters that are redacted in some milliseconds."""

LONG: Final = 20_000
"""Characters of a text that is redacted by itself, as long work."""

MUCH: Final = 5 * LONG
"""Characters of shorter texts that are long work together."""

_MOST_ENDED: Final = 1_000
"""Texts that took too long which are remembered."""

_ENDED_SECONDS: Final = 600.0
"""Seconds for which these take no time again; then the failure may have passed."""


class BoundedRedaction:
    """Redacts where it holds up nobody; implements :class:`~context_builder.knowledge.services.MemoryRedaction`.

    ``make`` is a function of a module, by which what ``run`` runs makes the redactor. A text that takes longer than
    that lets it is withheld.
    """

    def __init__(self, make: Callable[[], RedactorProtocol], run: Helpers) -> None:
        self._make = make
        self._run = run
        self._ended: OrderedDict[bytes, float] = OrderedDict()

    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        if sum(map(len, texts)) <= QUICK:
            return await beside_loop(redacted_by, self._make, list(texts))
        short = [text for text in texts if len(text) <= LONG]
        redacted: dict[str, str | None] = {}
        try:
            run = self._run.usual if sum(map(len, short)) <= MUCH else self._run.long
            redacted |= zip(short, await run(redacted_by, self._make, short), strict=True)
            for text in dict.fromkeys(texts):
                if text not in redacted:  # a long one may take all the time there is
                    redacted[text] = await self._alone(text)
        except TookTooLong as error:
            log.warning("redaction.ended", reason=str(error))
        return [redacted.get(text) for text in texts]

    async def _alone(self, text: str) -> str | None:
        digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
        if time.monotonic() - self._ended.get(digest, float("-inf")) < _ENDED_SECONDS:
            return None
        try:
            return (await self._run.long(redacted_by, self._make, [text]))[0]
        except TookTooLong:
            self._ended[digest] = time.monotonic()
            if len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
            raise


def redacted_by(make: Callable[[], RedactorProtocol], texts: Sequence[str]) -> list[str | None]:
    """Return the texts as the redactor of that kind lets them be shown; None for one that it fails at."""
    policy = _policy_of(make)
    return [policy.text(text).text for text in texts]


@cache
def _policy_of(make: Callable[[], RedactorProtocol]) -> RedactionPolicy:
    return RedactionPolicy(make())


class PreparedRedactor:
    """Redacts texts that a service was asked for before, by the same task; fails at any other, which is withheld so.

    Its ``policy`` shows texts as the service redacted them.
    """

    def __init__(self, service: MemoryRedaction) -> None:
        self.policy = RedactionPolicy(self)
        self._service = service
        self._answers: ContextVar[Mapping[str, str | None]] = ContextVar("answers", default=MappingProxyType({}))

    async def prepare(self, show: Callable[[RedactionPolicy], object]) -> str:
        """Ask the service, once, for every text that ``show`` sends through the policy it is given.

        Return what went wrong, in words; empty where nothing did.
        """
        texts = _Texts()
        await beside_loop(show, RedactionPolicy(texts))
        self._answers.set({})
        try:
            redacted = await self._service.redact(list(texts.seen)) if texts.seen else []
        except DatabaseError as error:
            return told_failure(error)
        self._answers.set(dict(zip(texts.seen, redacted, strict=True)))
        return ""

    def redact(self, text: str) -> str:
        """Return what the service made of the text."""
        redacted = self._answers.get().get(text)
        if redacted is None:
            raise DatabaseUnavailable("the redaction service did not redact it")
        return redacted


class _Texts:
    """Notes each text once, in order, and changes none."""

    def __init__(self) -> None:
        self.seen: dict[str, None] = {}

    def redact(self, text: str) -> str:
        self.seen[text] = None
        return text
