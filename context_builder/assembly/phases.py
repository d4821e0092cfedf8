"""The phases of building a context, timed and traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from context_builder import tracing


def span(phase: str) -> AbstractContextManager[object]:
    """Open the span ``context.<phase>`` around a piece of work."""
    return tracing.span(f"context.{phase}")


Timer = AbstractContextManager[object]


class Metrics(Protocol):
    """Defines the metrics a builder reports to; :class:`ContextBuilderMetrics` reports to Prometheus.

    Metrics that have them are also told ``observe_retrieval(seconds, snippets)``, ``observe_utilization(share)`` and
    ``inc_degradation(reason)``.
    """

    def time_total(self) -> Timer: ...
    def time_retrieval(self, state: str) -> Timer: ...
    def time_salience(self) -> Timer: ...
    def time_ranking(self) -> Timer: ...
    def time_redaction(self) -> Timer: ...
    def time_tokenisation(self) -> Timer: ...
    def time_prompt(self) -> Timer: ...
    def record_tokens(
        self, before_budget: int, after_budget: int, after_redaction: int, prompt_tokens: int
    ) -> None: ...
    def inc_prompt(self) -> None: ...
    def inc_snippets(self, stage: str, count: int = 1) -> None: ...


def report(metrics: Metrics, method: str, *figures: object) -> None:
    """Call the optional ``method`` of ``metrics``, if they have it."""
    if (reported := getattr(metrics, method, None)) is not None:
        reported(*figures)


@contextmanager
def phase(name: str, timer: Timer) -> Iterator[None]:
    """Time one phase, in a span of its name."""
    with timer, span(name):
        yield
