"""Which messages domains are inferred from, and when; and the topic that comes of it."""

from __future__ import annotations

from context_builder.analysis.analyst import DomainResult
from context_builder.clock import Instant
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.tasks import DomainTask
from context_builder.session.conversation.topic import Topic
from context_builder.session.conversation.triggers import NEVER, Triggers
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage


class DomainTracker:
    """``reading`` is the last inference that an analyst made, ``last`` the moment of the last one at all, ``new`` how
    many messages came since; ``skipped`` counts those that repeated a reading.
    """

    def __init__(self, rules: SessionConfig, buffer: Buffer, triggers: Triggers, now: Instant) -> None:
        self._rules = rules
        self._buffer = buffer
        self._triggers = triggers
        self._running = False
        self._asked: Instant | None = None
        self.reading = DomainResult({}, (), analyst="")
        self.topic = Topic()
        self.last = now
        self.new = 0
        self.skipped = 0

    def due_at(self) -> float:
        """Monotonic time of the next inference; never while one is under way."""
        if self._running:
            return NEVER
        return self._triggers.domains_due_at(self.last, self.new if self._buffer.entries else 0)

    def next(self, now: Instant, last_id: int) -> DomainTask | None:
        """The newest messages, of which ``last_id`` is the last; nothing when there are none."""
        newest = self._buffer.newest(self._rules.domain_window)
        if not newest:
            return None
        self._running, self._asked = True, now
        standing = self.reading if self.reading.analyst else None
        return DomainTask([entry.said() for entry in newest], last_id, self.new, standing, self._is_in_doubt())

    def was_asked_at(self, now: Instant) -> bool:
        """Whether this is the very moment at which work was handed out; told once."""
        asked, self._asked = self._asked, None
        return asked == now

    def fold(self, work: DomainTask, reading: DomainResult, now: Instant) -> list[BufferedMessage]:
        """Take in the reading; the entries that it tagged."""
        self._running = False
        if reading.repeated:
            self.skipped += 1
        else:
            self.reading = reading
        self.topic = self.topic.after(reading.confidence, now.wall)
        self.new -= work.new
        self.last = now
        untagged = [entry for entry in self._buffer.entries.values() if not entry.domains and entry.id <= work.through]
        tagged = untagged if reading.confidence else []
        for entry in tagged:
            entry.tag(reading)
        return tagged

    def failed(self, now: Instant) -> None:
        self._running = False
        self._triggers.domains_failed(now)

    def _is_in_doubt(self) -> bool:
        """Whether the last reading's leading domain does not lead yet, or for the first time."""
        return self.topic.rising is not None or self.reading.domains[:1] != list(self.topic.active[:1])
