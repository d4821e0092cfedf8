"""Keyword calls take several messages at once: a lone message does not wait, many share a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from math import inf
from typing import Final

from context_builder.analysis.analyst import AnalystMessage
from context_builder.clock import Instant
from context_builder.session.config import SessionConfig
from context_builder.session.messages.buffered_message import BufferedMessage

RETRY: Final = 5.0
"""Seconds before keywords are asked for again after a failure."""


class KeywordBatches:
    """Chooses the messages of each keyword call; a message is in one call at a time.

    While no call is under way and no more messages are known to come, what there is goes out at once. Otherwise
    messages collect until a batch is full or the oldest of them has waited for the window. After a failure nothing is
    to be asked before ``retry_at`` (monotonic).
    """

    def __init__(self, rules: SessionConfig) -> None:
        self._rules = rules
        self._calls = 0
        self._asked: set[int] = set()
        self._full_at = inf
        self.retry_at = 0.0

    @property
    def due_at(self) -> float:
        """Return when the messages that collect are to go out (monotonic), as far as :meth:`next` knew."""
        return max(self._full_at, self.retry_at)

    def next(
        self,
        entries: Iterable[BufferedMessage],
        now: Instant,
        *,
        at_once: bool = False,
        more_to_come: bool = False,
        most: int | None = None,
        longest: int | None = None,
    ) -> Sequence[BufferedMessage]:
        """Return which of ``entries``, which need keywords, to ask about now, oldest first; none while waiting is
        better. ``at_once`` skips the window; none also when there would be more than ``most``, or ``longest``
        characters of text.
        """
        self._full_at = inf
        if self._calls >= self._rules.keyword_jobs:
            return ()
        wanted = (entry for entry in entries if entry.id not in self._asked)
        batch = list(islice(wanted, self._rules.keyword_batch))
        if not batch or (most is not None and len(batch) > most):
            return ()
        if longest is not None and sum(len(entry.text) for entry in batch) > longest:
            return ()
        if (self._calls or more_to_come) and not at_once and len(batch) < self._rules.keyword_batch:
            due_at = min(entry.entered for entry in batch) + self._rules.keyword_window
            if now.monotonic < due_at:
                self._full_at = due_at
                return ()
        self._calls += 1
        self._asked.update(entry.id for entry in batch)
        return batch

    def over(self, messages: Iterable[AnalystMessage]) -> None:
        """Note that the call about ``messages`` has ended."""
        self._calls -= 1
        self._asked.difference_update(said.id for said in messages)

    def failed(self, messages: Iterable[AnalystMessage], now: Instant) -> None:
        """Note that the call about ``messages`` has failed."""
        self.over(messages)
        self.retry_at = now.monotonic + RETRY

    def dismiss(self) -> None:
        """Let all calls under way come to nothing."""
        self._calls = 0
        self._asked.clear()
