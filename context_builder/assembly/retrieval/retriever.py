"""Asking a turn's memories as much as their health allows, within the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.health import Health, HealthState
from context_builder.assembly.phases import Metrics, phase, report, span
from context_builder.assembly.retrieval.gather import Gathered, gather
from context_builder.assembly.retrieval.source import RetrievalQuery, TurnMemory
from context_builder.assembly.turn import Turn

log = structlog.get_logger(__name__)

HealthProvider = Callable[[], HealthState]
OnDegraded = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What the memories gave, and ``outcome`` in words: ``ok`` or why not.

    ``states`` tells the health of each memory by its name when they were asked, ``state`` that of the healthiest: how
    much the turn may hold.
    """

    candidates: tuple[Sequence[Candidate], ...]
    state: HealthState
    outcome: str
    states: Mapping[str, HealthState]
    seconds: float = 0.0
    is_whole: bool = True
    """Whether nothing is missing that another try might bring."""


class Retriever:
    """Keeps the health of each memory from its outcomes; or asks ``health_provider`` for it, when given.

    ``on_degraded`` is called when less will be asked from now on, with the seconds that lasts.
    """

    def __init__(
        self,
        memories: Sequence[TurnMemory],
        rules: AssemblyConfig,
        metrics: Metrics,
        *,
        health_provider: HealthProvider | None = None,
        on_degraded: OnDegraded | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memories = memories
        self._rules = rules
        self._metrics = metrics
        self._health_provider = health_provider
        self._on_degraded = on_degraded
        self._monotonic = monotonic
        self._health = [
            Health(
                degraded_window=rules.degraded_window,
                down_window=rules.down_window,
                failures_until_down=rules.failures_until_down,
            )
            for _ in memories
        ]

    async def warm_up(self, patience: float) -> None:
        """Have the memories connect within ``patience`` seconds; nothing is learned from one that does not."""
        await gather({one.name: one.warm_up() for one in self._memories}, patience)

    async def for_turn(self, turn: Turn) -> RetrievalResult:
        """What fits the turn's message; a memory that fails raises nothing here, and a slow one is cut off."""
        with span("health"):
            states = self._states()
            state = _healthiest(states)
        named = {memory.name: its for memory, its in zip(self._memories, states, strict=True)}
        if reason := self._why_not(turn, state):
            return RetrievalResult((), state, reason, named, is_whole=state is not HealthState.DOWN)
        asked = {
            memory.name: memory.find(self._wanted(turn, top_k))
            for memory in self._memories
            if (top_k := self._rules.memories_wanted(named[memory.name])) > 0
        }
        unasked = [f"{name}: not asked: {its.value}" for name, its in named.items() if name not in asked]
        began, started = self._monotonic(), time.perf_counter()
        with phase("retrieval", self._metrics.time_retrieval(state.value)):
            gathered = await gather(asked, self._rules.deadline)
        seconds = time.perf_counter() - started
        candidates = tuple(gathered.answers.values())
        report(self._metrics, "observe_retrieval", seconds, sum(map(len, candidates)))
        self._learn(state, gathered, began)
        told = [*unasked, *(f"{failure.name}: {failure.message}" for failure in gathered.failures)]
        is_whole = not told and all(its is HealthState.NORMAL for its in states)
        return RetrievalResult(candidates, state, "; ".join(told) or "ok", named, seconds, is_whole)

    @property
    def is_down(self) -> bool:
        """Whether no memory is to be asked now."""
        return _healthiest(self._states()) is HealthState.DOWN

    def _states(self) -> list[HealthState]:
        """The health of each memory: what the provider says of all, else what was learned."""
        now, provided = self._monotonic(), self._provided()
        return [provided or health.state(now) for health in self._health]

    def _provided(self) -> HealthState | None:
        """What the provider says; None without one, and when it cannot tell."""
        if self._health_provider is None:
            return None
        try:
            return HealthState(getattr(provided := self._health_provider(), "value", provided))
        except Exception:  # the application's own code, of any kind: a turn is built without its advice
            log.exception("memory.health_provider_failed")
            return None

    def _wanted(self, turn: Turn, top_k: int) -> RetrievalQuery:
        return RetrievalQuery(
            query=turn.query,
            top_k=top_k,
            threshold=self._rules.threshold,
            tenant_id=turn.tenant_id,
            session_id=turn.session_id,
            persona_id=turn.persona_id,
            user_id=turn.user_id,
            embedding=turn.query_embedding,
        )

    def _why_not(self, turn: Turn, state: HealthState) -> str:
        if not self._memories:
            return "no memory"
        if self._rules.memories_wanted(state) <= 0:
            return f"not asked: {state.value}"
        return "" if turn.query.strip() else "not asked: nothing to look for"

    def _learn(self, state: HealthState, gathered: Gathered[list[Candidate]], began: float) -> None:
        now = self._monotonic()
        failures = {failure.name: failure for failure in gathered.failures}
        worse: list[float | None] = []
        for memory, health in zip(self._memories, self._health, strict=True):
            if memory.name in gathered.answers:
                health.succeeded(now)
            elif (failure := failures.get(memory.name)) is not None:
                report(self._metrics, "inc_degradation", failure.reason)
                log.warning("memory.failed", memory=failure.name, reason=failure.reason)
                if failure.counts:
                    worse.append(health.failed(now, began))
        if worse and self._health_provider is not None:
            worse = [self._rules.degraded_window if state is HealthState.NORMAL else None]
        if self._on_degraded is not None and (lasting := [seconds for seconds in worse if seconds is not None]):
            _tell(self._on_degraded, max(lasting))


def _healthiest(states: Sequence[HealthState]) -> HealthState:
    return min(states, key=list(HealthState).index, default=HealthState.NORMAL)


def _tell(listener: OnDegraded, seconds: float) -> None:
    """A listener's fault is not the turn's."""
    try:
        listener(seconds)
    except Exception:  # the application's own code, of any kind: the turn goes on
        log.exception("memory.on_degraded_failed")
