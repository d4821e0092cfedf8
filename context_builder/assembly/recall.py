"""Asking a turn's memories as much as their health allows, within the deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.gather import Failure, gather
from context_builder.assembly.health import Health, HealthState
from context_builder.assembly.phases import Metrics, phase
from context_builder.assembly.recollection import TurnMemory, Wanted
from context_builder.assembly.rules import AssemblyRules
from context_builder.assembly.turn import Turn

log = structlog.get_logger(__name__)

HealthProvider = Callable[[], HealthState]
OnDegraded = Callable[[float], object]


@dataclass(frozen=True, slots=True)
class Recalled:
    """What the memories gave, their health when they were asked, and ``outcome`` in words: ``ok`` or why not."""

    candidates: tuple[Sequence[Candidate], ...]
    state: HealthState
    outcome: str
    seconds: float = 0.0
    is_whole: bool = True
    """Whether nothing is missing that another try might bring."""


class Recall:
    """Keeps the health of the memories from their outcomes; or asks ``health_provider`` for it, when given.

    ``on_degraded`` is called when less will be asked from now on, with the seconds that lasts.
    """

    def __init__(
        self,
        memories: Sequence[TurnMemory],
        rules: AssemblyRules,
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
        self._health = Health(
            degraded_window=rules.degraded_window,
            down_window=rules.down_window,
            failures_until_down=rules.failures_until_down,
        )

    def state(self) -> HealthState:
        """How the memories are now; their own outcomes tell when the provider cannot."""
        own = self._health.state(self._monotonic())
        if self._health_provider is None:
            return own
        try:
            return HealthState(getattr(provided := self._health_provider(), "value", provided))
        except Exception:  # the application's own code, of any kind: a turn is built without its advice
            log.exception("memory.health_provider_failed")
            return own

    async def warm_up(self) -> None:
        """Have the memories connect; one that fails or is slow is not waited for, and nothing is learned from it."""
        await gather({one.name: one.warm_up() for one in self._memories}, self._rules.deadline)

    async def for_turn(self, turn: Turn) -> Recalled:
        """What fits the turn's message; a memory that fails raises nothing here, and a slow one is cut off."""
        state = self.state()
        top_k = self._rules.memories_wanted(state)
        if reason := self._why_not(turn, state, top_k):
            return Recalled((), state, reason, is_whole=state is not HealthState.DOWN)
        wanted = Wanted(
            query=turn.query,
            top_k=top_k,
            threshold=self._rules.threshold,
            tenant_id=turn.tenant_id,
            session_id=turn.session_id,
            persona_id=turn.persona_id,
            user_id=turn.user_id,
            embedding=turn.query_embedding,
        )
        started = time.perf_counter()
        with phase("retrieval", self._metrics.time_retrieval(state.value)):
            gathered = await gather({one.name: one.find(wanted) for one in self._memories}, self._rules.deadline)
        seconds = time.perf_counter() - started
        candidates = tuple(gathered.answers.values())
        self._metrics.observe_retrieval(seconds, sum(map(len, candidates)))
        self._learn(state, gathered.failures)
        outcome = "; ".join(f"{failure.name}: {failure.message}" for failure in gathered.failures)
        is_whole = not gathered.failures and state is HealthState.NORMAL
        return Recalled(candidates, state, outcome or "ok", seconds, is_whole)

    def _why_not(self, turn: Turn, state: HealthState, top_k: int) -> str:
        if not self._memories:
            return "no memory"
        if top_k <= 0:
            return f"not asked: {state.value}"
        return "" if turn.query.strip() else "not asked: nothing to look for"

    def _learn(self, state: HealthState, failures: Sequence[Failure]) -> None:
        for failure in failures:
            self._metrics.inc_degradation(failure.reason)
            log.warning("memory.failed", memory=failure.name, reason=failure.reason)
        now = self._monotonic()
        if not failures:
            self._health.succeeded(now)
        elif any(failure.counts for failure in failures):
            worse = self._health.failed(now)
            if self._health_provider is not None:
                worse = self._rules.degraded_window if state is HealthState.NORMAL else None
            if worse is not None and self._on_degraded is not None:
                _tell(self._on_degraded, worse)


def _tell(listener: OnDegraded, seconds: float) -> None:
    """A listener's fault is not the turn's."""
    try:
        listener(seconds)
    except Exception:  # the application's own code, of any kind
        log.exception("memory.on_degraded_failed")
