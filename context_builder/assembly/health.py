"""A memory's health is a state machine over the outcomes of its calls, with the time passed in.

========  ====================  ========  ========
state     event                 next      for
========  ====================  ========  ========
NORMAL    failure               DEGRADED  15 s
DEGRADED  success, or 15 s      NORMAL
DEGRADED  fifth failure         DOWN      60 s
DOWN      60 s                  DEGRADED  15 s
========  ====================  ========  ========

Failures count when no success came between them; each one in DEGRADED begins its 15 s anew. Calls that were under way
at the same time fail for the same reason, so those that began before the last failure do not count again: a burst of
turns that is too much for a memory is one failure. A circuit breaker (:mod:`context_builder.breaker`) refuses calls and
lets a single one try; here less is asked from the first failure on, and nothing after the fifth. :func:`gather` asks
sources within a deadline, and tells why those that gave nothing did not.
"""

from __future__ import annotations

import asyncio
import copy
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

import structlog

from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.metrics import Metrics, report
from context_builder.errors import (
    ContextBuilderError,
    DatabaseRejected,
    DatabaseUnavailable,
    KnowledgeTimeout,
)

log = structlog.get_logger(__name__)

T = TypeVar("T")


class HealthState(StrEnum):
    """Tells how much is asked of the memory: everything, little, or nothing."""

    NORMAL = "normal"
    DEGRADED = "degraded"
    DOWN = "down"


def memories_wanted(config: AssemblyConfig, state: HealthState) -> int:
    """Return how many memories a prompt may hold while the memory is in ``state``."""
    return {HealthState.NORMAL: config.top_k, HealthState.DEGRADED: config.top_k_degraded}.get(state, 0)


HealthProvider = Callable[[], HealthState]
OnDegraded = Callable[[float], object]


class Health:
    """The health of one memory, by the outcomes of its calls.

    Every ``now`` is in seconds on a clock that never goes back.
    """

    def __init__(
        self, *, degraded_window: float = 15.0, down_window: float = 60.0, failures_until_down: int = 5
    ) -> None:
        self._degraded_window = degraded_window
        self._down_window = down_window
        self._failures_until_down = failures_until_down
        self._failures = 0
        self._failed_at = self._degraded_until = self._down_until = -math.inf

    def state(self, now: float) -> HealthState:
        """Return the state at ``now``."""
        if now < self._down_until:
            return HealthState.DOWN
        return HealthState.DEGRADED if now < self._degraded_until else HealthState.NORMAL

    def succeeded(self, now: float) -> None:
        """Record a call that was answered; one that was under way when the memory went DOWN changes nothing."""
        if self.state(now) is not HealthState.DOWN:
            self.recovered()

    def recovered(self) -> None:
        """Be NORMAL: whoever looked without haste was answered as quickly as a turn wants it."""
        self._failures = 0
        self._degraded_until = self._down_until = -math.inf

    def failed(self, now: float, began: float = math.inf) -> float | None:
        """Record a failed call that began at ``began``; return for how many seconds less is asked, if it got worse."""
        before = self.state(now)
        if before is HealthState.DOWN or began < self._failed_at:
            return None
        self._failed_at = now
        self._failures += 1
        if self._failures >= self._failures_until_down:
            self._failures = 0
            self._down_until = now + self._down_window
            self._degraded_until = self._down_until + self._degraded_window
            return self._down_window
        self._degraded_until = now + self._degraded_window
        return self._degraded_window if before is HealthState.NORMAL else None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a source gave nothing.

    ``reason`` is one word for a metric, ``message`` is for whoever runs the program, ``told`` for whoever asked.
    ``error`` is None when time ran out.
    """

    name: str
    reason: str
    message: str
    told: str
    error: Exception | None = None

    @property
    def counts(self) -> bool:
        """Return whether the failure counts against the source's health; a refused request does not."""
        return not isinstance(self.error, DatabaseRejected)


def failure_of(name: str, error: Exception | None, deadline: float) -> Failure:
    """Return why ``name`` gave nothing: ``error``, or that ``deadline`` seconds ran out.

    What an error says is told only where the words are ours: others quote keys and what people said.
    """
    if error is None:
        return Failure(name, "timeout", f"no answer within {deadline * 1000:.0f} ms", _timed_out(deadline))
    reason = "timeout" if isinstance(error, TimeoutError) else "error"
    kind = type(error).__name__
    message = f"{kind}: {error}" if isinstance(error, ContextBuilderError) else kind
    return Failure(
        name, "rejected" if isinstance(error, DatabaseRejected) else reason, message, told_failure(error), error
    )


def told_failure(error: Exception) -> str:
    """Return what went wrong in words for whoever asked, who is not told which servers there are."""
    match error:
        case KnowledgeTimeout():
            return _timed_out(error.seconds)
        case DatabaseUnavailable() | TimeoutError():
            return "does not answer"
        case DatabaseRejected():
            return "refuses what it was asked"
    return "failed"


def _timed_out(seconds: float) -> str:
    return f"timed out after {seconds:g} s"


@dataclass(slots=True)
class Gathered(Generic[T]):
    """The answers that came in time, by source, and why the other sources gave none."""

    answers: dict[str, T] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


async def gather(questions: Mapping[str, Awaitable[T]], deadline: float) -> Gathered[T]:
    """Return the answers that come within ``deadline`` seconds.

    What is still under way then is cancelled and not waited for: one that takes its time to be cancelled, or
    swallows it, holds up nobody.
    """
    tasks = {name: asyncio.ensure_future(question) for name, question in questions.items()}
    gathered: Gathered[T] = Gathered()
    if not tasks:
        return gathered
    try:
        await asyncio.wait(tasks.values(), timeout=deadline)
    finally:
        _abandon([task for task in tasks.values() if not task.done()])
    for name, task in tasks.items():
        if not task.done() or task.cancelled():
            gathered.failures.append(failure_of(name, None, deadline))
        elif isinstance(error := task.exception(), Exception):
            gathered.failures.append(failure_of(name, error, deadline))
        elif error is not None:
            raise error
        else:
            gathered.answers[name] = task.result()
    return gathered


_abandoned: set[asyncio.Future[Any]] = set()
"""Cancelled and on their way out; held so that they are not collected before."""


def _abandon(tasks: Sequence[asyncio.Future[T]]) -> None:
    for task in tasks:
        _abandoned.add(task)
        task.add_done_callback(_forget)
        task.cancel()


def _forget(task: asyncio.Future[T]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not complain about it


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
        self._asked_in = {state for state in HealthState if memories_wanted(config, state) > 0}
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

    def asked(self) -> frozenset[str]:
        """Return the names of the sources that are healthy enough to be asked now."""
        return frozenset([name for name, state in self.states().items() if state in self._asked_in])

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


def _tell(listener: OnDegraded, seconds: float) -> None:
    """Tell a listener, whose failure is not the turn's."""
    try:
        listener(seconds)
    except Exception:  # the application's own code, of any kind: the turn goes on
        log.exception("memory.on_degraded_failed")
