"""The domain tracker chooses when and from which messages domains are inferred, and keeps the topic.

:class:`DomainGate` spares model calls while plain text analysis is sure that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import DOMAIN_TEXT, Analyst, AnalystMessage, DomainResult
from context_builder.analysis.chunking import excerpt
from context_builder.analysis.text.domains import knows_language
from context_builder.analysis.text.words import plain_words
from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.errors import AnalystError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.tasks import DomainTask
from context_builder.session.conversation.topic import Topic
from context_builder.session.conversation.triggers import NEVER, Triggers
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage


class DomainTracker:
    """Chooses when domains are inferred, and keeps the topic: ``latest`` is the last result of an analyst, ``last``
    the moment of the last inference, ``new`` how many messages came since; ``skipped`` counts repeated results.
    """

    def __init__(self, rules: SessionConfig, buffer: Buffer, triggers: Triggers, now: Instant) -> None:
        self._rules = rules
        self._buffer = buffer
        self._triggers = triggers
        self._running = False
        self._asked: Instant | None = None
        self.latest = DomainResult({}, (), analyst="")
        self.topic = Topic()
        self.last = now
        self.new = 0
        self.skipped = 0
        self._is_stale = False

    def restate(self) -> None:
        """Infer the domains again soon, since what they were inferred from says something else now."""
        self._is_stale = True

    def strike(self, text: str) -> None:
        """Keep no keyword that nothing but a struck message has, and let an inference under way come to nothing."""
        said = text.casefold()
        others = "\n".join(entry.text for entry in (*self._buffer.departed, *self._buffer.ordered())).casefold()
        words = {word for word in plain_words(said) if word not in set(plain_words(others))}
        kept = [one for one in self.latest.keywords if one.casefold() not in said or one.casefold() in others]
        self.latest = replace(self.latest, keywords=tuple(kept))
        self.topic = replace(self.topic, terms=tuple(term for term in self.topic.terms if term not in words))
        self._running, self._is_stale = False, True

    def due_at(self) -> float:
        """Return the monotonic time of the next inference; never while one is under way."""
        if self._running:
            return NEVER
        if self._is_stale:
            return self._triggers.domains_again_at(self.last)
        return self._triggers.domains_due_at(self.last, self.new if self._buffer.entries else 0)

    def next(self, now: Instant, last_id: int, longest: int | None = None) -> DomainTask | None:
        """Return the newest messages as a task, the last of them ``last_id``; None when there are none, or they have
        more than ``longest`` characters of text."""
        newest = self._buffer.newest(self._rules.domain_window)
        self._is_stale = self._is_stale and longest is not None
        if not newest or (longest is not None and sum(len(entry.text) for entry in newest) > longest):
            return None
        self._running, self._asked, self._is_stale = True, now, False
        standing = self.latest if self.latest.analyst else None
        return DomainTask([entry.for_analyst() for entry in newest], last_id, self.new, standing)

    def was_asked_at(self, now: Instant) -> bool:
        """Return once whether this is the very moment at which a task was handed out."""
        asked, self._asked = self._asked, None
        return asked == now

    def fold(self, task: DomainTask, result: DomainResult, now: Instant) -> list[BufferedMessage]:
        """Fold in the result, and return the entries that it tagged."""
        self._running = False
        if result.repeated:
            self.skipped += 1
        else:
            self.latest = result
        self.topic = self.topic.after(result.confidence, now.wall, result.keywords)
        self.new -= task.new
        self.last = now
        untagged = [entry for entry in self._buffer.entries.values() if not entry.domains and entry.id <= task.through]
        tagged = untagged if result.confidence else []
        for entry in tagged:
            entry.tag(result)
        return tagged

    def failed(self, now: Instant) -> None:
        self._running = False
        self._triggers.domains_failed(now)


MOST_IN_A_ROW: Final = 2
"""Results repeated before the model is asked all the same."""


class DomainGate:
    """Repeats the model's last result while plain text analysis recognises its leading domain, :data:`MOST_IN_A_ROW`
    times at most.

    It must lead in the recent messages and in the newest among them by themselves: that no word of another domain was
    found shows nothing, least of all in a language that the vocabularies do not know. ``plain`` is the plain text
    analysis, which works off the loop.
    """

    def __init__(self, plain: Analyst) -> None:
        self._plain = plain
        self._in_a_row = 0

    async def repeated(self, task: DomainTask) -> DomainResult | None:
        """Return the last result again; ``None`` when the model is to be asked."""
        standing, newest = task.standing, task.messages[-task.new :]
        if standing is None or standing.analyst == self._plain.name or self._in_a_row >= MOST_IN_A_ROW:
            return None
        if not knows_language([excerpt(message.text, DOMAIN_TEXT) for message in newest]):
            return None
        with suppress(AnalystError):
            if all([await self._recognises(standing, messages) for messages in (newest, task.messages)]):
                self._in_a_row += 1
                return replace(standing, usage=Usage(), repeated=True)
        return None

    def model_answered(self) -> None:
        """Note that the model has read the messages of the last :meth:`repeated`."""
        self._in_a_row = 0

    async def _recognises(self, standing: DomainResult, messages: Sequence[AnalystMessage]) -> bool:
        heard = (await self._plain.infer_domains(messages)).domains
        return bool(heard) and heard[:1] == standing.domains[:1]
