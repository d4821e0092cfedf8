"""The domain tracker chooses when and from which messages domains are inferred, and keeps the topic.

:class:`DomainGate` spares model calls while plain text analysis is sure that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import Analyst, DomainResult
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

    def due_at(self) -> float:
        """Return the monotonic time of the next inference; never while one is under way."""
        if self._running:
            return NEVER
        return self._triggers.domains_due_at(self.last, self.new if self._buffer.entries else 0)

    def next(self, now: Instant, last_id: int, longest: int | None = None) -> DomainTask | None:
        """Return the newest messages as a task, the last of them ``last_id``; None when there are none, or they have
        more than ``longest`` characters of text."""
        newest = self._buffer.newest(self._rules.domain_window)
        if not newest or (longest is not None and sum(len(entry.text) for entry in newest) > longest):
            return None
        self._running, self._asked = True, now
        standing = self.latest if self.latest.analyst else None
        return DomainTask([entry.for_analyst() for entry in newest], last_id, self.new, standing, self._is_in_doubt())

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
        self.topic = self.topic.after(result.confidence, now.wall)
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

    def _is_in_doubt(self) -> bool:
        """Return whether the last result's leading domain does not lead yet, or for the first time."""
        return self.topic.rising is not None or self.latest.domains[:1] != list(self.topic.active[:1])


MOST_IN_A_ROW: Final = 6
"""Readings taken again before the model is asked all the same."""

Confidence = Mapping[str, float]
"""Of domains, highest first; empty when nothing points to one."""


def is_unchanged(names: Collection[str], recent: Confidence, newest: Confidence) -> bool:
    """Return whether plain text analysis finds no domain but those of ``names``: none leads in the ``recent`` messages,
    and the ``newest`` among them, by themselves, speak for one of the names or for nothing.
    """
    leading = _leading(recent)
    return (leading is None or leading in names) and (not newest or any(name in newest for name in names))


class DomainGate:
    """Repeats the model's last result while plain text analysis agrees with it, :data:`MOST_IN_A_ROW` times at most.

    The two agree on the leading domain, or they differ as they did both of the last two times the model was asked: it
    may well call biology what the vocabularies call ecology. Agreement also ends a doubt about what the model said
    once; silence about every domain does not. ``plain`` is the plain text analysis, which works off the loop.
    """

    def __init__(self, plain: Analyst) -> None:
        self._plain = plain
        self._heard: str | None = None
        self._judged: tuple[str | None, str | None] | None = None
        self._other_name: str | None = None
        self._in_a_row = 0

    async def repeated(self, task: DomainTask) -> DomainResult | None:
        """Return the last result again; ``None`` when the model is to be asked."""
        self._heard = None
        with suppress(AnalystError):
            recent = (await self._plain.infer_domains(task.messages)).confidence
            newest = (await self._plain.infer_domains(task.messages[-task.new :])).confidence
            self._heard = _leading(recent)
            if task.standing is not None and self._stands(task.standing, recent, newest, in_doubt=task.in_doubt):
                self._in_a_row += 1
                return replace(task.standing, usage=Usage(), repeated=True)
        return None

    def judged(self, result: DomainResult) -> None:
        """Note that the messages of the last :meth:`repeated` were read by the model after all."""
        judgement = _leading(result.confidence), self._heard
        self._other_name = self._heard if judgement == self._judged else None
        self._judged = judgement
        self._in_a_row = 0

    def _stands(self, result: DomainResult, recent: Confidence, newest: Confidence, *, in_doubt: bool) -> bool:
        if result.analyst == self._plain.name or self._in_a_row >= MOST_IN_A_ROW or (in_doubt and not recent):
            return False
        names = result.domains[:1]
        if self._other_name is not None and not in_doubt:
            names.append(self._other_name)
        return is_unchanged(names, recent, newest)


def _leading(confidence: Confidence) -> str | None:
    return next(iter(confidence), None)
