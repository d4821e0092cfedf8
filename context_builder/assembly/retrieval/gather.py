"""Asking memories, all at once and never for longer than the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from context_builder.errors import (
    ContextBuilderError,
    DatabaseRejected,
    DatabaseUnavailable,
    KnowledgeTimeout,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Tells why a source gave nothing.

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


@dataclass(slots=True)
class Gathered(Generic[T]):
    """Holds the answers that came in time, by source, and the sources that gave none."""

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


def failure_of(name: str, error: Exception | None, deadline: float) -> Failure:
    """Return why ``name`` gave nothing: ``error``, or that ``deadline`` seconds ran out.

    What an error says is told only where the words are ours: others quote keys and what people said.
    """
    if error is None:
        return Failure(name, "timeout", f"no answer within {deadline * 1000:.0f} ms", _timed_out(deadline))
    reason = "timeout" if isinstance(error, TimeoutError) else "error"
    kind = type(error).__name__
    message = f"{kind}: {error}" if isinstance(error, ContextBuilderError) else kind
    if isinstance(error, DatabaseRejected):
        reason = "rejected"
    return Failure(name, reason, message, told_failure(error), error)


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
