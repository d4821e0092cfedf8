"""The sources of a package: what is pinned, like the intent, near in the graph, and of these fields or this scope."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import Access
from context_builder.assembly.health import Gathered, HealthState, SourceHealth, gather
from context_builder.assembly.metrics import Metrics, report
from context_builder.clock import Clock
from context_builder.concurrency import Background, answer_within
from context_builder.errors import ContextBuilderError
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.node import KnowledgeNode, is_found_redacted
from context_builder.knowledge.request import (
    ContextBuildRequest,
    GraphRetrieval,
    MetadataRetrieval,
    SemanticRetrieval,
)
from context_builder.knowledge.services import (
    GraphProjection,
    KnowledgeGraph,
    MetadataIndex,
    VectorDocument,
    VectorMemory,
)
from context_builder.tracing import span

T = TypeVar("T")

PINNED: Final = "pinned"
SEMANTIC: Final = "semantic"
GRAPH: Final = "graph"
METADATA: Final = "metadata"

LEFT_ALONE: Final = "not asked for now: it failed too often"
"""Why a source that is down gave nothing."""

SEEDS: Final = 20
"""Of what is like the intent, so many of the best are where walks begin."""

SHARPNESS: Final = 4
SHARPNESS_BY_MEANING: Final = 8
"""What is alike weighs as a seed by this power of its similarity, so that walks begin at the most alike. Similarities
made of two rankings, by meaning and by words, lie closer together."""

_NAMED: Final = 1.0
"""Weight of a seed that the request names."""

_ROUNDS: Final = 3
"""Further searches without what may not be seen."""

_MOST_DENIED: Final = 10
"""Sources that are looked for, once a package is answered, of what its agent may not know of: for the record alone."""

_MOST: Final = 1_000
"""Sources that a search is asked for at most."""


class Admission(Protocol):
    """Tells what an agent may see, so that nothing else takes the place of what it may, or leads there."""

    async def access(self, nodes: Sequence[KnowledgeNode]) -> Mapping[str, Access]:
        """Return how each node may be seen, by its ref; a node that is left out may not be."""
        ...

    async def sensitivities(self) -> frozenset[str]:
        """Return the sensitivities of what may be seen or known of; empty where these do not tell, or all may be."""
        ...

    async def begins(self, refs: Sequence[str]) -> frozenset[str]:
        """Return those of the refs, of nodes and of sessions, where a walk in the graph may begin."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageQuery:
    """What a request wants, of a tenant. Of contents of more than ``longest`` characters only projections are wanted.

    Without an ``admission``, every source may be seen.
    """

    request: ContextBuildRequest
    tenant: str
    longest: int
    admission: Admission | None = None


class SimilarNodes(NamedTuple):
    """What is like an intent, and what of it may lead to more in the graph.

    Of what is ``unsearched``, by its sensitivities, only what is at least as alike as the ``floor`` would be found.
    """

    found: Sequence[VectorDocument]
    leading: Sequence[VectorDocument]
    unsearched: frozenset[str] = frozenset()
    floor: float = 0.0


class NearNodes(NamedTuple):
    """Nodes near to where walks began, and the neighbourhood they are of; None where there was nowhere to begin."""

    nodes: Sequence[KnowledgeNode]
    projection: GraphProjection | None


@dataclass(frozen=True, slots=True)
class PackageFindings:
    """What the sources of a package gave in time; ``missing`` says why a source that was wanted gave nothing."""

    pinned: Mapping[str, KnowledgeNode] = field(default_factory=dict)
    similar: SimilarNodes | None = None
    near: NearNodes | None = None
    described: Sequence[KnowledgeNode] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def unsearched(self) -> frozenset[str]:
        """Return the sensitivities of what was not searched, because the agent may not know of it."""
        return self.similar.unsearched if self.similar else frozenset()

    @property
    def offered(self) -> int:
        """Return how many candidates the lists have, which take a while to make."""
        similar = self.similar.found if self.similar else ()
        near = self.near.nodes if self.near else ()
        return len(self.pinned) + len(similar) + len(near) + len(self.described)

    def lists(self) -> list[list[Candidate]]:
        """Return what each source offers for the package."""
        return [
            [one.candidate(PINNED) for one in self.pinned.values()],
            similar_candidates(self.similar) if self.similar else [],
            near_candidates(self.near) if self.near else [],
            [one.candidate(METADATA) for one in self.described],
        ]


class PackageSources:
    """Asks the sources side by side; the graph as soon as it is known what is like the intent.

    Pinned sources are waited for ``pinned_time`` seconds, the others until the deadline of ``config``; the graph waits
    half of that for what is like the intent, and goes on with what the request names. Sources that failed too often are
    left alone for a while, but for pinned ones.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        vectors: VectorMemory,
        index: MetadataIndex,
        config: AssemblyConfig,
        metrics: Metrics,
        pinned_time: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._graph = graph
        self._vectors = vectors
        self._index = index
        self._deadline = config.deadline
        self._pinned_time = pinned_time
        self._metrics = metrics
        self.health = SourceHealth((SEMANTIC, GRAPH, METADATA), config, metrics, monotonic=monotonic)

    async def retrieve(self, query: PackageQuery) -> PackageFindings:
        """Return what the sources that the request wants give in time. A source that fails raises nothing here."""
        with span("context.health"):
            asked = query.request.retrieval
            wants = {SEMANTIC: asked.semantic, GRAPH: asked.graph, METADATA: asked.metadata}
            wanted = [name for name, what in wants.items() if what is not None]
            healthy = self.health.asked()
            names = [name for name in wanted if name in healthy]
        missing = {name: LEFT_ALONE for name in wanted if name not in names}
        if not (names or query.request.pinned):
            return PackageFindings(missing=missing)
        began, started = self.health.monotonic(), time.perf_counter()
        with self._metrics.time_retrieval(HealthState.NORMAL.value), span("context.retrieval"):
            pinned, found = await self._gathered(query, names)
        answers = {**pinned.answers, **found.answers}
        failures = [*pinned.failures, *found.failures]
        findings = PackageFindings(
            pinned=answers.get(PINNED, {}),
            similar=answers.get(SEMANTIC),
            near=answers.get(GRAPH),
            described=answers.get(METADATA, ()),
            missing={**missing, **{one.name: one.told for one in failures}},
        )
        report(self._metrics, "observe_retrieval", time.perf_counter() - started, findings.offered)
        self.health.learn(failures, answers.keys(), HealthState.NORMAL, began)
        return findings

    async def _gathered(self, query: PackageQuery, names: Collection[str]) -> tuple[Gathered[Any], Gathered[Any]]:
        """Return what is pinned, and what the sources of these names give."""
        if not query.request.pinned:
            return Gathered(), await gather(self.questions(query, names), self._deadline)
        pinned = _traced(PINNED, self._index.nodes(query.tenant, query.request.pinned, query.longest))
        return await asyncio.gather(
            gather({PINNED: pinned}, self._pinned_time), gather(self.questions(query, names), self._deadline)
        )

    def questions(self, query: PackageQuery, names: Collection[str] = (SEMANTIC, GRAPH)) -> dict[str, Awaitable[Any]]:
        """Return what to await for the answers of these sources; the search for what is like the intent has begun."""
        asked = query.request.retrieval
        questions: dict[str, Awaitable[Any]] = {}
        search: asyncio.Task[SimilarNodes] | None = None
        if asked.semantic is not None and SEMANTIC in names:
            search = asyncio.create_task(_traced(SEMANTIC, similar(self._vectors, query, asked.semantic)))
            questions[SEMANTIC] = search
        if asked.graph is not None and GRAPH in names:
            questions[GRAPH] = self._near(query, asked.graph, search)
        if asked.metadata is not None and METADATA in names:
            questions[METADATA] = _traced(METADATA, described(self._index, query, asked.metadata))
        return questions

    async def unknown(self, query: PackageQuery, findings: PackageFindings) -> list[KnowledgeNode]:
        """Return what is like the intent, of what was not searched because the agent may not know of it: a few nodes.

        Raises :class:`~context_builder.errors.DatabaseError`.
        """
        asked, similar = query.request.retrieval.semantic, findings.similar
        if asked is None or similar is None:
            return []
        few = asked.model_copy(update={"top_k": min(asked.top_k, _MOST_DENIED)})
        found = await _alike(self._vectors, query, few, sensitivities=similar.unsearched)
        return [one.node for one in found if one.similarity >= similar.floor]

    async def _near(
        self, query: PackageQuery, asked: GraphRetrieval, search: asyncio.Task[SimilarNodes] | None
    ) -> NearNodes:
        found = await answer_within(self._deadline / 2, search) if search is not None else None
        leading = found.leading if found is not None else ()
        return await _traced(GRAPH, near(self._graph, query, asked, leading))


async def _traced(name: str, answer: Awaitable[T]) -> T:
    with span(f"source.{name}"):
        return await answer


def similar_candidates(similar: SimilarNodes) -> list[Candidate]:
    """Return what is like the intent as candidates."""
    return [one.node.candidate(SEMANTIC, similarity=one.similarity, passages=one.passages) for one in similar.found]


def near_candidates(near: NearNodes) -> list[Candidate]:
    """Return what is near as candidates."""
    proximity = near.projection.proximity if near.projection is not None else {}
    return [node.candidate(GRAPH, proximity=proximity.get(node.ref, 0.0)) for node in near.nodes]


async def near(
    graph: KnowledgeGraph, query: PackageQuery, asked: GraphRetrieval, leading: Sequence[VectorDocument]
) -> NearNodes:
    """Return what is connected with the sessions of the scope, with pinned sources, the task, and what is alike."""
    request = query.request
    named = [*(f"session:{session}" for session in request.scope.session_ids), *request.pinned]
    if named and query.admission is not None:
        begins = await query.admission.begins(named)
        named = [ref for ref in named if ref in begins]
    seeds = dict.fromkeys(named, _NAMED)
    if request.task_id:
        seeds[f"task:{request.task_id}"] = _NAMED
    alike = {one.node.ref: one for one in sorted(leading, key=_seed, reverse=True)[:SEEDS]}
    sharpness = SHARPNESS_BY_MEANING if any(one.by_meaning for one in alike.values()) else SHARPNESS
    for ref, one in alike.items():
        seeds[ref] = seeds.get(ref, 0.0) + _seed(one) ** sharpness
    if not seeds:
        return NearNodes((), None)
    known = {one.node.ref: one.node for one in leading}
    found = await graph.neighbourhood(query.tenant, seeds, asked, query.longest, known)
    nodes = {one.ref: one for one in found.nodes} | {ref: one.node for ref, one in alike.items()}
    return NearNodes(list(nodes.values()), found)


def _seed(document: VectorDocument) -> float:
    return max(document.similarity, document.seed)


async def similar(vectors: VectorMemory, query: PackageQuery, asked: SemanticRetrieval) -> SimilarNodes:
    """Return what is like the intent, found as if there were nothing that may not be seen.

    What there is of that comes last, for the record. Where sensitivities tell what the agent may know of, nothing else
    is searched, so that the time does not tell of it.
    """
    if query.admission is None:
        found = list(await _alike(vectors, query, asked))
        return SimilarNodes(found, found)
    known_of = await query.admission.sensitivities()
    found = list(await _alike(vectors, query, asked, sensitivities=known_of))
    floor = found[-1].similarity if len(found) >= asked.top_k else 0.0
    without: set[str] = set()
    denied: dict[str, VectorDocument] = {}
    access = await query.admission.access([one.node for one in found])
    for _ in range(_ROUNDS):
        hidden = [one for one in found if access.get(one.node.ref, Access.DENIED) is Access.DENIED]
        if not access or not hidden:
            break
        denied |= {one.node.ref: one for one in hidden}
        seen = {one.node.session for one in found if one not in hidden}
        without |= {ref for one in hidden if (ref := _left_out(one, seen))}
        most = min(asked.top_k + len(denied), _MOST)
        found = list(await _alike(vectors, query, asked.model_copy(update={"top_k": most}), without, known_of))
        access = await query.admission.access([one.node for one in found])
    allowed = [one for one in found if access.get(one.node.ref, Access.DENIED) is not Access.DENIED][: asked.top_k]
    denied |= {one.node.ref: one for one in found if access.get(one.node.ref, Access.DENIED) is Access.DENIED}
    leading = [one for one in allowed if access[one.node.ref] is Access.READ or is_found_redacted(one.node)]
    unsearched = frozenset(Sensitivity) - known_of if known_of else frozenset[str]()
    return SimilarNodes([*allowed, *denied.values()], leading, unsearched, floor)


async def _alike(
    vectors: VectorMemory,
    query: PackageQuery,
    asked: SemanticRetrieval,
    without: Collection[str] = (),
    sensitivities: Collection[str] = (),
) -> Sequence[VectorDocument]:
    intent = query.request.intent
    if not intent.strip():
        return ()
    given = {"without": without, "sensitivities": sensitivities}
    more = {name: value for name, value in given.items() if value}
    return await vectors.search(query.tenant, intent, asked, query.request.scope, query.longest, **more)


def _left_out(hidden: VectorDocument, seen: Collection[str]) -> str:
    """Return the ref that a search leaves out with what is hidden; empty where others of its session are seen."""
    if not hidden.node.session:
        return hidden.node.ref
    return "" if hidden.node.session in seen else f"session:{hidden.node.session}"


async def described(index: MetadataIndex, query: PackageQuery, asked: MetadataRetrieval) -> list[KnowledgeNode]:
    """Return what has the fields that are asked for, or is of the scope: as many as are asked for of what may be seen,
    and what is found with them that may not.
    """
    found = await index.find(query.tenant, asked, query.request.scope, query.longest)
    if query.admission is None or len(found) < asked.limit:
        return found
    most = asked.limit
    while True:
        access = await query.admission.access(found)
        allowed = [one for one in found if access.get(one.ref, Access.DENIED) is not Access.DENIED]
        if not access or len(allowed) >= asked.limit or len(found) < most or most >= _MOST:
            denied = [one for one in found if access.get(one.ref, Access.DENIED) is Access.DENIED]
            return [*allowed[: asked.limit], *denied]
        most = min(4 * most, _MOST)
        found = await index.find(
            query.tenant, asked.model_copy(update={"limit": most}), query.request.scope, query.longest
        )


PATIENCE: Final = 10.0
"""Seconds that a search may take which no package waits for."""


class VectorRecovery:
    """Lets the vectors be asked again once a search takes less than ``deadline`` seconds.

    A database that has just started reads from disk what the next search finds in memory, so that the first searches
    miss every deadline.
    """

    def __init__(
        self, vectors: VectorMemory, health: SourceHealth, background: Background, clock: Clock, deadline: float
    ) -> None:
        self._vectors = vectors
        self._health = health
        self._background = background
        self._clock = clock
        self._deadline = deadline
        self._is_running = False

    async def search(self, tenant_id: str, request: ContextBuildRequest) -> float:
        """Search as the request asks, and return the seconds that took; ``inf`` if it failed."""
        asked = request.retrieval.semantic or SemanticRetrieval()
        began = self._clock.now().monotonic
        try:
            async with asyncio.timeout(PATIENCE):
                await self._vectors.search(tenant_id, request.intent, asked, request.scope, 0)
        except (ContextBuilderError, TimeoutError):
            return math.inf
        return self._clock.now().monotonic - began

    def begin(self, tenant_id: str, request: ContextBuildRequest) -> None:
        """Begin a search in the background, unless one is under way."""
        if not self._is_running:
            self._is_running = self._background.start("search again", self._recover(tenant_id, request))

    async def _recover(self, tenant_id: str, request: ContextBuildRequest) -> None:
        try:
            if await self.search(tenant_id, request) < self._deadline:
                self._health.recovered(SEMANTIC)
        finally:
            self._is_running = False
