"""Asking memories and strategies as much as the memories' health allows, within one deadline."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from context_builder import tracing
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import Health, HealthState
from context_builder.assembly.metrics import Metrics, phase, report, span
from context_builder.assembly.retrieval.gather import Failure, Gathered, gather
from context_builder.assembly.retrieval.source import MemorySource, RetrievalQuery
from context_builder.assembly.retrieval.store_source import StoreAccess
from context_builder.memory.memory import MemoryStore

log = structlog.get_logger(__name__)

HealthProvider = Callable[[], HealthState]
OnDegraded = Callable[[float], object]

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


class SourceHealth:
    """Keeps the health of each source from how it answered; or asks ``health_provider`` for it, when given.

    ``on_degraded`` is called when less will be asked from now on, with the seconds that lasts.
    """

    def __init__(
        self,
        names: Iterable[str],
        config: AssemblyConfig,
        metrics: Metrics,
        *,
        health_provider: HealthProvider | None = None,
        on_degraded: OnDegraded | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._health_provider = health_provider
        self._on_degraded = on_degraded
        self.monotonic = monotonic
        self._health = {name: self._new() for name in names}

    def with_source(self, name: str) -> SourceHealth:
        """Return the health of one more source, and of these: what is learned of them is known to both."""
        changed = copy.copy(self)
        changed._health = {**self._health, name: self._new()}
        return changed

    def states(self) -> dict[str, HealthState]:
        """Return the health of each source: what the provider says of all, else what was learned."""
        now, provided = self.monotonic(), self._provided()
        return {name: provided or health.state(now) for name, health in self._health.items()}

    def asks(self, name: str) -> bool:
        """Return whether the source of this name is healthy enough to be asked now."""
        return self._config.memories_wanted(self.states()[name]) > 0

    def recovered(self, name: str) -> None:
        """Ask the source of this name for everything again."""
        self._health[name].recovered()

    def learn(self, failures: Iterable[Failure], answered: Collection[str], state: HealthState, began: float) -> None:
        """Take what failed, and what answered, of questions asked at ``began``, when the healthiest was ``state``."""
        now = self.monotonic()
        worse: list[float | None] = []
        for failure in failures:
            report(self._metrics, "inc_degradation", failure.reason)
            log.warning("memory.failed", memory=failure.name, reason=failure.reason)
            if failure.counts and (health := self._health.get(failure.name)) is not None:
                worse.append(health.failed(now, began))
        for name in answered:
            if (health := self._health.get(name)) is not None:
                health.succeeded(now)
        if worse and self._health_provider is not None:
            worse = [self._config.degraded_window if state is HealthState.NORMAL else None]
        if self._on_degraded is not None and (lasting := [seconds for seconds in worse if seconds is not None]):
            _tell(self._on_degraded, max(lasting))

    def _new(self) -> Health:
        return Health(
            degraded_window=self._config.degraded_window,
            down_window=self._config.down_window,
            failures_until_down=self._config.failures_until_down,
        )

    def _provided(self) -> HealthState | None:
        """Return what the provider says; None without one, and when it cannot tell."""
        if self._health_provider is None:
            return None
        try:
            return HealthState(getattr(provided := self._health_provider(), "value", provided))
        except Exception:  # the application's own code, of any kind: a turn is built without its advice
            log.exception("memory.health_provider_failed")
            return None


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
        with span("health"):
            states = self._health.states()
            state = min(states.values(), key=list(HealthState).index, default=HealthState.NORMAL)
        reason = self._why_not(query, state)
        queries = self._queries(query, states) if query is not None and not reason else {}
        if not (queries or strategies):
            return RetrievalResult((), {}, (), state, reason or "ok", states, is_whole=state is not HealthState.DOWN)
        access = StoreAccess(self._store, states[self._store.name] if self._store else state)
        began, started = self._health.monotonic(), time.perf_counter()
        with phase("retrieval", self._metrics.time_retrieval(state.value)):
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
        with tracing.span(f"source.{name}"):
            return await self._memories[name].find(query)

    def _queries(self, query: RetrievalQuery, states: Mapping[str, HealthState]) -> dict[str, RetrievalQuery]:
        """Return what each memory is asked for, of those that are healthy enough to be asked."""
        counts = {name: self._config.memories_wanted(state) for name, state in states.items()}
        return {name: replace(query, top_k=count) for name, count in counts.items() if count > 0}

    def _why_not(self, query: RetrievalQuery | None, state: HealthState) -> str:
        """Return why no memory is asked; empty where the query is none, or is asked."""
        if query is None:
            return ""
        if not self._memories:
            return "no memory"
        if self._config.memories_wanted(state) <= 0:
            return f"not asked: {state.value}"
        return "not asked: nothing to look for" if query.is_blank else ""

    def _learn(
        self, remembered: Gathered[Sequence[Candidate]], access: StoreAccess, state: HealthState, began: float
    ) -> None:
        """Take for the memories' health what came, and what failed; the store also by what strategies asked of it."""
        failures = {failure.name: failure for failure in remembered.failures}
        if failure := access.failure(self._config.deadline):
            failures.setdefault(failure.name, failure)
        answered = {*remembered.answers, *([self._store.name] if self._store and access.answered else ())}
        self._health.learn(failures.values(), answered - failures.keys(), state, began)


def _tell(listener: OnDegraded, seconds: float) -> None:
    """Tell a listener, whose failure is not the turn's."""
    try:
        listener(seconds)
    except Exception:  # the application's own code, of any kind: the turn goes on
        log.exception("memory.on_degraded_failed")
