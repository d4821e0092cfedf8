"""The summary scheduler chooses a summary's messages: all there are at its trigger, part by part, oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Final

from context_builder.analysis.analyst import KnownPoint
from context_builder.analysis.chunking import line_of, most_tokens_of, tokens_of
from context_builder.clock import Instant
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.tasks import SummaryPart
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage

SHORTEST_WAIT: Final = 0.5
"""Seconds between two tries of a summary, however soon another one would be allowed."""

MOST_TRIES: Final = 3
"""Failures to summarize the same messages again, after which they stay as they are."""


class DegradedBacklog:
    """Keeps the newest messages that the last resort summarized, up to ``room`` tokens as ``count`` counts them; in
    this process alone, so that an outage costs Redis nothing and a restart leaves things as they are.
    """

    def __init__(self, room: int, count: Callable[[str], int]) -> None:
        self._room = room
        self._count = count
        self._entries: deque[BufferedMessage] = deque()
        self._tokens = 0
        self._tries = 0
        self._model_works = False

    @property
    def is_due(self) -> bool:
        """Return whether any entries wait here and the last summary was the model's."""
        return bool(self._entries) and self._model_works

    @property
    def at_hand(self) -> Sequence[BufferedMessage]:
        """Return the waiting entries, oldest first."""
        return self._entries

    def summarized(self, entries: Sequence[BufferedMessage], *, degraded: bool) -> None:
        """Note that ``entries`` were summarized, by the last resort if ``degraded``."""
        self._model_works = not degraded
        if degraded:
            self._entries.extend(entries)
            self._tokens += sum(self._count(entry.text) for entry in entries)
            while self._tokens > self._room:
                self._drop_oldest()

    def strike(self, entry_id: int) -> None:
        """Drop an entry that was struck."""
        for entry in [one for one in self._entries if one.id == entry_id]:
            self._entries.remove(entry)
            self._tokens -= self._count(entry.text)

    def put_off(self) -> None:
        """Wait for the model's next summary, since the model does not work."""
        self._model_works = False

    def failed(self, entries: Sequence[BufferedMessage]) -> None:
        """Note that nothing better came of ``entries``, the oldest here; in the end they stay as they are."""
        self.put_off()
        self._tries += 1
        if self._tries == MOST_TRIES:
            self.done(entries)

    def done(self, entries: Sequence[BufferedMessage]) -> None:
        """Drop ``entries``, the oldest here, which were summarized again."""
        self._tries = 0
        for _ in entries:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._tokens -= self._count(self._entries.popleft().text)


DEGRADED_PARTS: Final = 10
"""Summary calls that the messages of the last resort fill which are kept to be summarized again."""


class SummaryScheduler:
    """Chooses from the buffer and the pending list; lets go of nothing before :meth:`taken`."""

    def __init__(self, rules: SessionConfig, buffer: Buffer, count_tokens: Callable[[str], int]) -> None:
        self._rules = rules
        self._buffer = buffer
        self._count_tokens = count_tokens
        self._taking: set[int] | None = None
        self._degraded = DegradedBacklog(DEGRADED_PARTS * rules.summary_input, count_tokens)
        self._corrected: dict[int, BufferedMessage] = {}
        self._corrected_was_last = False
        self._room = rules.summary_input
        self._closing = False
        self._retry_at = 0.0
        self._failures = 0
        self.running = False

    def close(self) -> None:
        """Schedule everything from here on without waiting for its age."""
        self._closing = True
        self._retry_at = 0.0

    @property
    def to_summarize_again(self) -> Sequence[BufferedMessage]:
        """Return the summarized messages that are to be summarized again, because they were corrected."""
        return [*self._corrected.values()]

    def summarize_again(self, entry: BufferedMessage) -> None:
        """Have a message summarized again, in place of the points that rest on it alone."""
        self._corrected[entry.id] = entry

    def all_waiting_again(self) -> list[BufferedMessage]:
        """Return all messages that are to be summarized a second time."""
        return [*self._degraded.at_hand, *self._corrected.values()]

    def waiting_again(self, entry_id: int) -> list[BufferedMessage]:
        """Return a message as often as it is to be summarized again."""
        return [entry for entry in self.all_waiting_again() if entry.id == entry_id]

    def strike(self, entry_id: int) -> bool:
        """Drop a message that was struck; return whether it was to be summarized again."""
        self._degraded.strike(entry_id)
        return self._corrected.pop(entry_id, None) is not None

    def dismiss(self) -> None:
        """Let the part under way come to nothing; its messages are taken again."""
        self.running = False

    def due_at(self) -> float:
        """Return the monotonic time when the oldest message has been buffered for the window; at once while a summary
        is under way.
        """
        under_way = self._taking is not None or self._buffer.pending > 0 or self._may_take_degraded() or self._corrected
        if under_way or (self._closing and self._buffer.entries):
            return self._retry_at
        oldest = self._buffer.oldest_entered(keep_last=self._keep_last())
        return inf if oldest is None else max(oldest + self._rules.buffer_window, self._retry_at)

    @property
    def takes_pending_next(self) -> bool:
        """Return whether the next part is the oldest of the pending list, which the caller reads."""
        return bool(self._buffer.pending) and not self._buffer.pinned()

    def next_part(self, pending: Sequence[BufferedMessage], known: Sequence[KnownPoint] = ()) -> SummaryPart | None:
        """Return the next part; ``pending`` when :attr:`takes_pending_next`. No other is chosen until it is over.

        The ``known`` points are shown in the same call, and take their share of its room. Corrected messages take turns
        with all others, so that neither wait for the other's end; when the session ends, they come last.
        """
        self._room = self._rules.summary_input - sum(tokens_of(point.text, self._count_tokens) for point in known)
        takes_corrected = bool(self._corrected) and not (self._corrected_was_last or self._closing)
        part = self._corrected_part() if takes_corrected else None
        if part is None:
            part = self._degraded_part() if self._may_take_degraded() else self._new_part(pending)
        if part is None and self._corrected:
            part = self._corrected_part()
        self._corrected_was_last = part is not None and part.corrected
        self.running = part is not None
        return part

    def failed(self, part: SummaryPart, now: Instant, retry_after: float | None) -> None:
        """Note that the part failed; it is chosen again after a while.

        It waits no longer than a breaker that let nothing through, or the model's return would go unnoticed.
        """
        self.running = False
        if part.corrected:
            pass  # they stay to be summarized again
        elif part.again:
            self._degraded.failed(part.entries)
        else:
            self._degraded.put_off()
        self._failures += 1
        wait = self._rules.summary_retry
        if retry_after is not None:
            wait = min(wait, max(retry_after, SHORTEST_WAIT))
        self._retry_at = now.monotonic + wait

    def taken(self, part: SummaryPart, *, degraded: bool) -> None:
        """Note that the part is summarized, by the last resort if ``degraded``; its messages leave buffer or list."""
        self.running = False
        self._failures = 0
        if part.corrected:
            for entry in part.entries:
                if self._corrected.get(entry.id) is entry:
                    del self._corrected[entry.id]
            self._degraded.summarized(part.entries, degraded=degraded)
            return
        if part.again:
            self._degraded.done(part.entries)
            return
        self._degraded.summarized(part.entries, degraded=degraded)
        if part.from_pending:
            self._buffer.leave_pending(part.entries)
        else:
            self._buffer.remove(entry.id for entry in part.entries)
        if not self._buffer.pending and not self._takeable():
            self._taking = None

    def put_off(self, part: SummaryPart) -> None:
        """Wait for the model, since only the last resort answered a second summary."""
        self.running = False
        self._failures = 0
        self._degraded.failed(part.entries)

    def _corrected_part(self) -> SummaryPart:
        """Return the corrected messages in the order in which they arrived."""
        entries = sorted(self._corrected.values(), key=lambda entry: entry.id)
        return SummaryPart(self._fitting(entries), last_resort=self._cannot_wait(), again=True, corrected=True)

    def _may_take_degraded(self) -> bool:
        idle = self._taking is None and not self._buffer.pending and not self._closing
        return idle and self._degraded.is_due

    def _degraded_part(self) -> SummaryPart:
        """Return the oldest of what the last resort summarized."""
        return SummaryPart(self._fitting(self._degraded.at_hand), again=True)

    def _new_part(self, pending: Sequence[BufferedMessage]) -> SummaryPart | None:
        if self._taking is None:
            taken = (
                self._buffer.without_newest(0) if self._closing else self._buffer.old_before_newest(self._keep_last())
            )
            self._taking = {entry.id for entry in taken}
        from_pending = self.takes_pending_next
        if from_pending:
            entries = self._fitting(pending)
        else:
            entries = self._fitting(self._buffer.pinned() if self._buffer.pending else self._takeable())
            self._buffer.pin(entries)
        if not entries:
            self._taking = None
            return None
        return SummaryPart(entries, from_pending=from_pending, last_resort=self._cannot_wait())

    def _cannot_wait(self) -> bool:
        """Return whether a failing model is waited for no longer: much waits, or the session closes; nor one that
        works, but is too slow for what is said.
        """
        if self._buffer.pending_bytes() > self._rules.pending_max_bytes / 2:
            return True
        return self._failures > 0 and (self._closing or self._too_much_waits())

    def _too_much_waits(self) -> bool:
        waiting = self._buffer.pending + len(self._buffer.entries)
        return waiting > self._rules.pending_max or self._buffer.waiting_tokens() > self._rules.pending_max_tokens

    def _keep_last(self) -> int:
        return 0 if self._closing else self._rules.summary_keep_last

    def _takeable(self) -> list[BufferedMessage]:
        taking = self._taking or ()
        return [entry for entry in self._buffer.ordered() if entry.id in taking]

    def _fitting(self, entries: Sequence[BufferedMessage]) -> list[BufferedMessage]:
        """Return as many of the oldest entries as one call may hold, at least one."""
        without_counting = self._within(entries, most_tokens_of)
        if len(without_counting) == len(entries):
            return without_counting
        return self._within(entries, partial(tokens_of, count=self._count_tokens))

    def _within(self, entries: Sequence[BufferedMessage], size: Callable[[str], int]) -> list[BufferedMessage]:
        part: list[BufferedMessage] = []
        tokens = 0
        for entry in entries:
            tokens += size(line_of(entry.speaker, entry.text))
            if part and tokens > self._room:
                break
            part.append(entry)
        return part
