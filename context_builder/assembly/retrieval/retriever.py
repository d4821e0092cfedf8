"""Asking memories and strategies as much as the memories' health allows, within one deadline."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from context_builder import tracing
from context_builder.assembly.access import Access, Ruling
from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import Health, HealthState
from context_builder.assembly.phases import Metrics, phase, report, span
from context_builder.assembly.retrieval.gather import Failure, Gathered, gather
from context_builder.assembly.retrieval.source import MemorySource, RetrievalQuery
from context_builder.assembly.retrieval.store_source import StoreAccess
from context_builder.memory.memory import MemoryStore

log = structlog.get_logger(__name__)

HealthProvider = Callable[[], HealthState]
OnDegraded = Callable[[float], object]

LEFT_ALONE: Final = "not asked for now: it failed too often"
"""Why a memory that is down gave nothing."""

AskStrategy = Callable[[StoreAccess], Awaitable[Sequence[Candidate]]]
"""Asks a strategy, which searches the memory store as it is given."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Holds what came within the deadline.

    ``candidates`` are those of the memories, ``found`` those of the strategies by their names, ``failures`` tells of
    the strategies that gave nothing. ``outcome`` says in words how the memories answered: ``ok``, or why not.
    ``states`` tells the health of each memory by its name when they were asked, ``state`` that of the healthiest: how
    much the prompt may hold. ``missing`` tells whoever asked why a memory gave nothing, by its name. ``rulings`` are
    those of an access policy by candidate, ``denied`` what it denies, which is in neither of the others.
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
    missing: Mapping[str, str] = field(default_factory=dict)
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    denied: Sequence[Candidate] = ()

    def is_redacted(self, name: str) -> bool:
        """Return whether an access policy lets the candidate of this id be seen redacted only."""
        return (ruling := self.rulings.get(name)) is not None and ruling.access is Access.REDACTED

    def governed(self, rulings: Mapping[str, Ruling]) -> RetrievalResult:
        """Return the result as ``rulings`` let it be seen: without what they deny, redacted where they redact.

        A candidate without a ruling is denied.
        """
        denied: dict[str, Candidate] = {}

        def allowed(candidates: Sequence[Candidate]) -> list[Candidate]:
            kept = []
            for one in candidates:
                if (ruling := rulings.get(one.id)) is None or ruling.access is Access.DENIED:
                    denied.setdefault(one.id, one)
                else:
                    kept.append(_as_ruled(one, ruling))
            return kept

        return replace(
            self,
            candidates=tuple(map(allowed, self.candidates)),
            found={name: allowed(candidates) for name, candidates in self.found.items()},
            rulings=rulings,
            denied=tuple(denied.values()),
        )


class Retriever:
    """Asks memories and strategies, all at once and never for longer than the deadline.

    It keeps the health of each memory from its outcomes; or asks ``health_provider`` for it, when given.
    ``on_degraded`` is called when less will be asked from now on, with the seconds that lasts. Memories that are
    ``required`` are asked whatever became of them before, and waited for as many seconds as that says, by name. Raises
    :class:`ValueError` for two memories of one name, by which their health and their failures are told apart.
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
        required: Mapping[str, float] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memories = {memory.name: memory for memory in memories}
        if len(self._memories) < len(memories):
            raise ValueError(f"two memories have one name: {', '.join(memory.name for memory in memories)}")
        self._store = store
        self._config = config
        self._metrics = metrics
        self._health_provider = health_provider
        self._on_degraded = on_degraded
        self._monotonic = monotonic
        self._required = dict(required or {})
        self._health = {name: _new_health(config) for name in self._memories if name not in self._required}

    def with_memory(self, memory: MemorySource) -> Retriever:
        """Return a retriever that asks ``memory`` as well; the health of the others is known to both.

        Raises :class:`ValueError` where there is one of its name.
        """
        if memory.name in self._memories:
            raise ValueError(f"two memories have one name: {memory.name}")
        changed = copy.copy(self)
        changed._memories = {**self._memories, memory.name: memory}
        changed._health = {**self._health, memory.name: _new_health(self._config)}
        return changed

    async def warm_up(self, patience: float) -> None:
        """Let the memories connect within ``patience`` seconds; a failure does not count against their health."""
        await gather({name: memory.warm_up() for name, memory in self._memories.items()}, patience)

    def asks(self, name: str) -> bool:
        """Return whether the memory of this name would be asked now: it is healthy enough."""
        return self._config.memories_wanted(self._states()[name]) > 0

    def recovered(self, name: str) -> None:
        """Ask the memory of this name for everything again."""
        self._health[name].recovered()

    async def retrieve(self, query: RetrievalQuery | None, strategies: Mapping[str, AskStrategy]) -> RetrievalResult:
        """Retrieve candidates for ``query``, as many as the memories' health allows, and those of the strategies.

        One that fails raises nothing here, and a slow one is cut off.
        """
        with span("health"):
            states = self._states()
            state = _healthiest(states.values())
        reason = self._why_not(query, state)
        wanted = [name for name in states if query is not None and query.asks(name)]
        queries = self._queries(query, states) if query is not None and not reason else {}
        if not (queries or strategies):
            is_whole = state is not HealthState.DOWN
            missing = dict.fromkeys(wanted, LEFT_ALONE)
            return RetrievalResult((), {}, (), state, reason or "ok", states, is_whole=is_whole, missing=missing)
        access = StoreAccess(self._store, states[self._store.name] if self._store else state)
        began, started = self._monotonic(), time.perf_counter()
        with phase("retrieval", self._metrics.time_retrieval(state.value)):
            remembered, found = await self._gathered(queries, {name: ask(access) for name, ask in strategies.items()})
        seconds = time.perf_counter() - started
        given = [*remembered.answers.values(), *found.answers.values()]
        report(self._metrics, "observe_retrieval", seconds, sum(map(len, given)))
        self._learn(state, remembered, access, began)
        left_alone = [name for name in wanted if queries and name not in queries]
        missing = dict.fromkeys(left_alone, LEFT_ALONE) | {one.name: one.told for one in remembered.failures}
        reasons = [reason, *(f"{name}: not asked: {states[name].value}" for name in left_alone)]
        reasons += [f"{failure.name}: {failure.message}" for failure in remembered.failures]
        failures = [*remembered.failures, *found.failures]
        return RetrievalResult(
            candidates=tuple(remembered.answers.values()),
            found=found.answers,
            failures=found.failures,
            state=state,
            outcome="; ".join(filter(None, reasons)) or "ok",
            states=states,
            seconds=seconds,
            is_whole=not failures and all(its is HealthState.NORMAL for its in states.values()),
            missing=missing,
        )

    async def _gathered(
        self, queries: Mapping[str, RetrievalQuery], strategies: Mapping[str, Awaitable[Sequence[Candidate]]]
    ) -> tuple[Gathered[Sequence[Candidate]], Gathered[Sequence[Candidate]]]:
        """Return what the memories and what the strategies give, side by side within one deadline, but for memories
        that are required: each has its own."""
        asked = {name: self._found(name, query) for name, query in queries.items()}
        required = [gather({name: asked.pop(name)}, self._required[name]) for name in queries if name in self._required]
        remembered = gather(asked, self._config.deadline)
        if not (strategies or required):
            return await remembered, Gathered()
        *of_memories, found = await asyncio.gather(*required, remembered, gather(strategies, self._config.deadline))
        answers = {name: answer for one in of_memories for name, answer in one.answers.items()}
        return Gathered(answers, [failure for one in of_memories for failure in one.failures]), found

    async def _found(self, name: str, query: RetrievalQuery) -> Sequence[Candidate]:
        with tracing.span(f"source.{name}"):
            return await self._memories[name].find(query)

    def _queries(self, query: RetrievalQuery, states: Mapping[str, HealthState]) -> dict[str, RetrievalQuery]:
        """Return what each memory is asked for, of those that are healthy enough to be asked."""
        counts = {name: self._config.memories_wanted(state) for name, state in states.items()}
        return {name: replace(query, top_k=count) for name, count in counts.items() if count > 0 and query.asks(name)}

    def _states(self) -> dict[str, HealthState]:
        """Return the health of each memory: what the provider says of all, else what was learned."""
        now, provided = self._monotonic(), self._provided()
        states = dict.fromkeys(self._memories, HealthState.NORMAL)
        return states | {name: provided or health.state(now) for name, health in self._health.items()}

    def _provided(self) -> HealthState | None:
        """Return what the provider says; None without one, and when it cannot tell."""
        if self._health_provider is None:
            return None
        try:
            return HealthState(getattr(provided := self._health_provider(), "value", provided))
        except Exception:  # the application's own code, of any kind: a turn is built without its advice
            log.exception("memory.health_provider_failed")
            return None

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
        self, state: HealthState, remembered: Gathered[Sequence[Candidate]], access: StoreAccess, began: float
    ) -> None:
        """Take what came, and what failed, for the memories' health."""
        now = self._monotonic()
        failures = {failure.name: failure for failure in remembered.failures}
        if failure := access.failure(self._config.deadline):
            failures.setdefault(failure.name, failure)
        answered = {*remembered.answers, *([self._store.name] if self._store and access.answered else ())}
        worse: list[float | None] = []
        for name in self._memories:
            health = self._health.get(name)
            if (failure := failures.get(name)) is not None:
                report(self._metrics, "inc_degradation", failure.reason)
                log.warning("memory.failed", memory=name, reason=failure.reason)
                if failure.counts and health is not None:
                    worse.append(health.failed(now, began))
            elif name in answered and health is not None:
                health.succeeded(now)
        if worse and self._health_provider is not None:
            worse = [self._config.degraded_window if state is HealthState.NORMAL else None]
        if self._on_degraded is not None and (lasting := [seconds for seconds in worse if seconds is not None]):
            _tell(self._on_degraded, max(lasting))


def _as_ruled(candidate: Candidate, ruling: Ruling) -> Candidate:
    """Return the candidate as its ruling shows it; how it was found stays, but for what redaction took out."""
    if ruling.redacted is None or ruling.redacted.withheld:
        return candidate
    score = candidate.base_score
    if ruling.similarity is not None and score:
        score = ruling.similarity
    shown = ruling.redacted.value
    return replace(shown, base_score=score, score=score, origins=candidate.origins, evidence=candidate.evidence)


def _new_health(config: AssemblyConfig) -> Health:
    return Health(
        degraded_window=config.degraded_window,
        down_window=config.down_window,
        failures_until_down=config.failures_until_down,
    )


def _healthiest(states: Iterable[HealthState]) -> HealthState:
    return min(states, key=list(HealthState).index, default=HealthState.NORMAL)


def _tell(listener: OnDegraded, seconds: float) -> None:
    """Tell a listener, whose failure is not the turn's."""
    try:
        listener(seconds)
    except Exception:  # the application's own code, of any kind: the turn goes on
        log.exception("memory.on_degraded_failed")
