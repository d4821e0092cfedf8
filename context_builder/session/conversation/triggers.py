"""Triggers tell when keywords, domains and summaries are due, on the monotonic clock."""

from __future__ import annotations

from typing import Final

from context_builder.clock import Instant
from context_builder.session.config import SessionConfig

NEVER: Final = float("inf")

RETRY_READING: Final = 5.0
"""Seconds before keywords or domains are asked for again after a failure."""


RESTATE: Final = 1.0
"""Seconds between two inferences of the same messages, of which some were corrected."""

SHORTEST_WAIT: Final = 0.5
"""Seconds between two tries of a summary, however soon another one would be allowed."""


class Triggers:
    """Knows the documented intervals, and the wait after a failure of each kind of task."""

    def __init__(self, rules: SessionConfig) -> None:
        self._rules = rules
        self._keywords_from = 0.0
        self._domains_from = 0.0
        self._summary_from = 0.0
        self.summary_failures = 0

    def keywords_due_at(self) -> float:
        return self._keywords_from

    def domains_due_at(self, last: Instant, new_messages: int) -> float:
        """Return when domains are due: every few messages, or after a while; never without a new message."""
        if not new_messages:
            return NEVER
        due = 0.0 if new_messages >= self._rules.domain_messages else last.monotonic + self._rules.domain_interval
        return max(due, self._domains_from)

    def domains_again_at(self, last: Instant) -> float:
        """Return when domains are due whose messages were corrected since the last inference."""
        return max(last.monotonic + RESTATE, self._domains_from)

    def summary_due_at(self, oldest: float | None, *, at_once: bool) -> float:
        """Return when the oldest message (by monotonic arrival) has been buffered for the window, or ``at_once``."""
        if at_once:
            return self._summary_from
        return NEVER if oldest is None else max(oldest + self._rules.buffer_window, self._summary_from)

    def keywords_failed(self, now: Instant) -> None:
        self._keywords_from = now.monotonic + RETRY_READING

    def domains_failed(self, now: Instant) -> None:
        self._domains_from = now.monotonic + RETRY_READING

    def summary_failed(self, now: Instant, retry_after: float | None = None) -> None:
        """Wait no longer than a breaker that let nothing through, or the model's return would go unnoticed."""
        self.summary_failures += 1
        wait = self._rules.summary_retry
        if retry_after is not None:
            wait = min(wait, max(retry_after, SHORTEST_WAIT))
        self._summary_from = now.monotonic + wait

    def summary_succeeded(self) -> None:
        self.summary_failures = 0

    def hurry(self) -> None:
        """Stop waiting after a failed summary."""
        self._summary_from = 0.0
