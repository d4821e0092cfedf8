"""Retrieving: memories and strategies are asked side by side, as much as their health allows, within one deadline."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import (
    Failure,
    Gathered,
    HealthProvider,
    HealthState,
    OnDegraded,
    SourceHealth,
    failure_of,
    gather,
    memories_wanted,
)
from context_builder.assembly.metrics import Metrics, report
from context_builder.assembly.sources import MemorySource, RetrievalQuery
from context_builder.errors import (
    DatabaseUnavailable,
    NoMemoryStore,
)
from context_builder.memory.memory import MemoryQuery, MemoryStore, SearchResult
from context_builder.tracing import span


class StoreAccess:
    """Searches a store unless it is down, and tells afterwards how it answered."""

    def __init__(self, store: MemoryStore | None, state: HealthState) -> None:
        self._store = store
        self._state = state
        self._under_way = 0
        self._answered = False
        self._error: Exception | None = None

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        """Search like :meth:`MemoryStore.search`; raises :class:`~context_builder.errors.NoMemoryStore` without a store
        and :class:`~context_builder.errors.DatabaseUnavailable` while it is down.
        """
        if self._store is None:
            raise NoMemoryStore("the builder was given no memory store")
        if self._state is HealthState.DOWN:
            raise DatabaseUnavailable(f"{self._store.name} is not asked: it failed too often")
        self._under_way += 1
        try:
            found = await self._store.search(tenant_id, query)
        except Exception as error:
            self._error = error
            raise
        finally:
            self._under_way -= 1
        self._answered = True
        return found

    def failure(self, deadline: float) -> Failure | None:
        """Return why the store gave nothing, at the end of ``deadline`` seconds; None where nothing failed."""
        if self._store is None or not (self._under_way or self._error):
            return None
        return failure_of(self._store.name, self._error, deadline)

    @property
    def answered(self) -> bool:
        """Return whether a search succeeded."""
        return self._answered


AskStrategy = Callable[[StoreAccess], Awaitable[Sequence[Candidate]]]
"""Asks a strategy, which searches the memory store as it is given."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What came within the deadline.

    ``candidates`` are those of the memories, ``found`` those of the strategies by their names, ``failures`` tells of
    the strategies that gave nothing. ``outcome`` says in words how the memories answered: ``ok``, or why not.
    ``states`` tells the health of each memory by its name when they were asked, ``state`` that of the healthiest: how
    much the prompt may hold.
    """

    candidates: tuple[Sequence[Candidate], ...]
    found: Mapping[str, Sequence[Candidate]]
    failures: Sequence[Failure]
    state: HealthState
    outcome: str
    states: Mapping[str, HealthState]
    seconds: float = 0.0
    is_whole: bool = True
    """True unless something is missing that another try might bring."""

    @property
    def lists(self) -> list[Sequence[Candidate]]:
        """Return all that was found, that of the memories first."""
        return [*self.candidates, *self.found.values()]


class Retriever:
    """Asks memories and strategies, all at once and never for longer than the deadline, as much as their health allows.

    Raises :class:`ValueError` for two memories of one name, by which their health and their failures are told apart.
    """

    def __init__(
        self,
        memories: Sequence[MemorySource],
        store: MemoryStore | None,
        config: AssemblyConfig,
        metrics: Metrics,
        *,
        health_provider: HealthProvider | None = None,
        on_degraded: OnDegraded | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memories = {memory.name: memory for memory in memories}
        if len(self._memories) < len(memories):
            raise ValueError(f"two memories have one name: {', '.join(memory.name for memory in memories)}")
        self._store = store
        self._config = config
        self._metrics = metrics
        self._health = SourceHealth(
            self._memories,
            config,
            metrics,
            health_provider=health_provider,
            on_degraded=on_degraded,
            monotonic=monotonic,
        )

    def with_memory(self, memory: MemorySource) -> Retriever:
        """Return a retriever that asks ``memory`` as well; the health of the others is known to both.

        Raises :class:`ValueError` where there is one of its name.
        """
        if memory.name in self._memories:
            raise ValueError(f"two memories have one name: {memory.name}")
        changed = copy.copy(self)
        changed._memories = {**self._memories, memory.name: memory}
        changed._health = self._health.with_source(memory.name)
        return changed

    async def warm_up(self, patience: float) -> None:
        """Let the memories connect within ``patience`` seconds; a failure does not count against their health."""
        await gather({name: memory.warm_up() for name, memory in self._memories.items()}, patience)

    async def retrieve(self, query: RetrievalQuery | None, strategies: Mapping[str, AskStrategy]) -> RetrievalResult:
        """Retrieve candidates for ``query``, as many as the memories' health allows, and those of the strategies.

        One that fails raises nothing here, and a slow one is cut off.
        """
        with span("context.health"):
            states = self._health.states()
            state = min(states.values(), key=list(HealthState).index, default=HealthState.NORMAL)
        reason = self._why_not(query, state)
        queries = self._queries(query, states) if query is not None and not reason else {}
        if not (queries or strategies):
            return RetrievalResult((), {}, (), state, reason or "ok", states, is_whole=state is not HealthState.DOWN)
        access = StoreAccess(self._store, states[self._store.name] if self._store else state)
        began, started = self._health.monotonic(), time.perf_counter()
        with self._metrics.time_retrieval(state.value), span("context.retrieval"):
            remembered, found = await self._gathered(queries, {name: ask(access) for name, ask in strategies.items()})
        seconds = time.perf_counter() - started
        given = [*remembered.answers.values(), *found.answers.values()]
        report(self._metrics, "observe_retrieval", seconds, sum(map(len, given)))
        self._learn(remembered, access, state, began)
        left_alone = [name for name in states if queries and name not in queries]
        reasons = [reason, *(f"{name}: not asked: {states[name].value}" for name in left_alone)]
        reasons += [f"{failure.name}: {failure.message}" for failure in remembered.failures]
        return RetrievalResult(
            candidates=tuple(remembered.answers.values()),
            found=found.answers,
            failures=found.failures,
            state=state,
            outcome="; ".join(filter(None, reasons)) or "ok",
            states=states,
            seconds=seconds,
            is_whole=not (remembered.failures or found.failures)
            and all(its is HealthState.NORMAL for its in states.values()),
        )

    async def _gathered(
        self, queries: Mapping[str, RetrievalQuery], strategies: Mapping[str, Awaitable[Sequence[Candidate]]]
    ) -> tuple[Gathered[Sequence[Candidate]], Gathered[Sequence[Candidate]]]:
        """Return what the memories and what the strategies give, side by side."""
        asked = gather({name: self._found(name, query) for name, query in queries.items()}, self._config.deadline)
        if not strategies:
            return await asked, Gathered()
        return await asyncio.gather(asked, gather(strategies, self._config.deadline))

    async def _found(self, name: str, query: RetrievalQuery) -> Sequence[Candidate]:
        with span(f"source.{name}"):
            return await self._memories[name].find(query)

    def _queries(self, query: RetrievalQuery, states: Mapping[str, HealthState]) -> dict[str, RetrievalQuery]:
        """Return what each memory is asked for, of those that are healthy enough to be asked."""
        counts = {name: memories_wanted(self._config, state) for name, state in states.items()}
        return {name: replace(query, top_k=count) for name, count in counts.items() if count > 0}

    def _why_not(self, query: RetrievalQuery | None, state: HealthState) -> str:
        """Return why no memory is asked; empty where there is no query, or it is asked."""
        if query is None:
            return ""
        if not self._memories:
            return "no memory"
        if memories_wanted(self._config, state) <= 0:
            return f"not asked: {state.value}"
        return "not asked: no message was given, and nothing was said lately" if query.is_blank else ""

    def _learn(
        self, remembered: Gathered[Sequence[Candidate]], access: StoreAccess, state: HealthState, began: float
    ) -> None:
        """Take for the memories' health what came, and what failed; the store also by what strategies asked of it."""
        failures = {failure.name: failure for failure in remembered.failures}
        if failure := access.failure(self._config.deadline):
            failures.setdefault(failure.name, failure)
        answered = {*remembered.answers, *([self._store.name] if self._store and access.answered else ())}
        self._health.learn(failures.values(), answered - failures.keys(), state, began)
