"""Gauges show what the model calls of each running session cost."""

from __future__ import annotations

from contextlib import suppress

from context_builder import metrics
from context_builder.session.conversation.usage import TaskUsage, UsageTotals


def show_totals(session_id: str, totals: UsageTotals) -> None:
    """Set the gauges of a session that runs here."""
    for task, spent in totals.tasks.items():
        for kind, tokens in _tokens_by_kind(spent).items():
            metrics.SESSION_TOKENS.labels(session_id, task, kind).set(tokens)
        metrics.SESSION_COST_DOLLARS.labels(session_id, task).set(spent.dollars)


def hide_totals(session_id: str, totals: UsageTotals) -> None:
    """Remove the gauges of a session that no longer runs here."""
    for task, spent in totals.tasks.items():
        with suppress(KeyError):
            for kind in _tokens_by_kind(spent):
                metrics.SESSION_TOKENS.remove(session_id, task, kind)
            metrics.SESSION_COST_DOLLARS.remove(session_id, task)


def _tokens_by_kind(usage: TaskUsage) -> dict[str, int]:
    return {"prompt": usage.prompt_tokens, "cached": usage.cached_tokens, "completion": usage.completion_tokens}
