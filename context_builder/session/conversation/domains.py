"""The domain tracker chooses when and from which messages domains are inferred, and keeps the topic.

A :class:`Topic` is smoothed over inferences, and tells when the talk last went on to another subject.
:class:`DomainGate` spares model calls while plain text analysis is sure that nothing has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from math import inf
from typing import Any, Final

from context_builder.analysis.analyst import DOMAIN_TEXT, Analyst, AnalystMessage, DomainResult
from context_builder.analysis.chunking import excerpt
from context_builder.analysis.text.domains import knows_language
from context_builder.analysis.text.words import plain_words
from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.domains import DOMAINS
from context_builder.errors import AnalystError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.tasks import DomainTask
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.values import value

SHARE: Final = 0.5
"""Least weight of an inference; a more confident one has its confidence as its weight."""

ENTER: Final = 0.3
"""Smoothed confidence from which a domain becomes active."""

LEAVE: Final = 0.15
"""Smoothed confidence below which an active domain is dropped, once it was not found for :data:`HELD`."""

HELD: Final = 90.0
"""Seconds that an active domain stays after it was last found, so that side talk does not make it flicker."""

FORGOTTEN: Final = 0.01
"""Smoothed confidence below which a domain is no longer remembered."""

MAX_ACTIVE: Final = 6
"""Most domains active at once: up to four that a model names, and those that are held beside them."""

SLOW_SHARE: Final = 0.1
"""Weight of an inference in ``subject``, half of which is older than seven inferences, or several minutes."""

BELONGS: Final = 0.2
"""Confidence in ``subject`` from which a domain belongs to it: found three or four times."""

SAME_TERMS: Final = 0.6
"""Part of an inference's keyword stems that recent ones had, from which it is about the same by another name."""

MAX_TERMS: Final = 40
"""Most recent keyword stems that are remembered."""

CLEAR: Final = 0.4
"""Confidence from which a leading domain tells what the talk is about."""

LASTING: Final = 20.0
"""Seconds that another subject lasts at least, over two inferences or more, before the talk has gone on to it."""


@value
class Topic:
    """Smoothed confidences, and the domains that are active by them; a value, so that it can be stored.

    With nothing active an inference counts in full. Otherwise a domain must have been heard clearly or
    repeatedly to enter, and must fade to leave: a confident inference (0.65 and more) changes the leading domain
    at once, a weaker stray is held back.

    Domains that are found side by side belong to one ``subject``, which changes slowly; which of them leads does not
    matter to it. The talk has gone on to another one when a domain that does not belong to it has clearly led for
    :data:`LASTING`, with other keywords; ``changed_at`` (epoch seconds) is then the first moment of that. The first
    subject is not a change.
    """

    confidence: Mapping[str, float] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    found_at: Mapping[str, float] = field(default_factory=dict)
    """Epoch second at which each active domain was last found."""
    subject: Mapping[str, float] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    """Stems of the subject's keywords, the newest last."""
    changed_at: float | None = None
    rising_at: float | None = None
    """Epoch second since which a domain that is none of the subject's leads."""

    @property
    def current(self) -> dict[str, float]:
        """Return active domains with their smoothed confidence, highest first."""
        return {domain: self.confidence[domain] for domain in self.active}

    def after(self, inferred: Mapping[str, float], now: float, keywords: Iterable[str] = ()) -> Topic:
        """Return the topic after one more inference with its keywords, made at epoch second ``now``."""
        share = max(SHARE, *inferred.values()) if self.active and inferred else SHARE if self.active else 1.0
        enter = ENTER if self.active else 0.0
        found_at = {**self.found_at, **dict.fromkeys((d for d, found in inferred.items() if found >= LEAVE), now)}
        held = [domain for domain in self.active if now - found_at.get(domain, now - HELD) < HELD]
        confidence = _smoothed(self.confidence, inferred, share, held)
        staying = [d for d, found in confidence.items() if d in held or found >= (LEAVE if d in self.active else enter)]
        active = tuple(sorted(staying, key=lambda domain: -confidence[domain])[:MAX_ACTIVE])
        kept = {domain: found_at[domain] for domain in active if domain in found_at}
        made = replace(self, confidence=confidence, active=active, found_at=kept)
        return made._about(inferred, now, _stems(keywords)) if inferred else made

    def _about(self, inferred: Mapping[str, float], now: float, stems: Sequence[str]) -> Topic:
        leading = self.active[0] if self.active else None
        if leading is None or self.confidence[leading] < CLEAR:
            return self
        if self.subject and not self._is_of_the_subject(leading, stems):
            if self.rising_at is None:
                return replace(self, rising_at=now)
            if now - self.rising_at < LASTING:
                return self
            return replace(self, subject=dict(inferred), terms=tuple(stems), changed_at=self.rising_at, rising_at=None)
        subject = _smoothed(self.subject, inferred, SLOW_SHARE) if self.subject else dict(inferred)
        terms = tuple(dict.fromkeys(reversed([*self.terms, *stems])))[:MAX_TERMS][::-1]
        return replace(self, subject=subject, terms=terms, rising_at=None)

    def _is_of_the_subject(self, leading: str, stems: Sequence[str]) -> bool:
        known = set(self.terms)
        return self.subject.get(leading, 0.0) >= BELONGS or sum(stem in known for stem in stems) > SAME_TERMS * len(
            stems
        )

    def wire(self) -> dict[str, Any]:
        """Return the topic as the checkpoint keeps it."""
        return {
            "confidence": dict(self.confidence),
            "active": self.active,
            "found_at": dict(self.found_at),
            "subject": dict(self.subject),
            "terms": self.terms,
            "changed_at": self.changed_at,
            "rising_at": self.rising_at,
        }

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Topic:
        """Return what :meth:`wire` wrote."""
        active = tuple(domain for domain in fields["active"] if domain in fields["confidence"])
        return cls(**{**fields, "active": active, "terms": tuple(fields["terms"])})


def _smoothed(
    before: Mapping[str, float], inferred: Mapping[str, float], share: float, held: Iterable[str] = ()
) -> dict[str, float]:
    """Smooth exponentially: ``share`` of what is heard now, the rest from before; what is ``held`` is not forgotten."""
    mixed = {
        domain: round(share * inferred.get(domain, 0.0) + (1 - share) * before.get(domain, 0.0), 3)
        for domain in DOMAINS
        if domain in inferred or domain in before
    }
    mixed |= {domain: FORGOTTEN for domain in held if mixed.get(domain, 0.0) < FORGOTTEN}
    return {domain: value for domain, value in mixed.items() if value >= FORGOTTEN}


def _stems(keywords: Iterable[str]) -> list[str]:
    """Return the stems of the keywords' words, each once."""
    return list(dict.fromkeys(stem for keyword in keywords for stem in plain_words(keyword)))


RETRY: Final = 5.0
"""Seconds before domains are asked for again after a failure."""

RESTATE: Final = 1.0
"""Seconds between two inferences of the same messages, of which some were corrected."""


class DomainTracker:
    """Chooses when domains are inferred, and keeps the topic: ``latest`` is the last result of an analyst, ``last``
    the moment of the last inference, ``new`` how many messages came since; ``skipped`` counts repeated results.
    """

    def __init__(self, rules: SessionConfig, buffer: Buffer, now: Instant) -> None:
        self._rules = rules
        self._buffer = buffer
        self._retry_at = 0.0
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
        """Return the monotonic time of the next inference: every few messages, or after a while. It never comes while
        one is under way, nor without a new message, unless something was corrected since the last one.
        """
        if self._running:
            return inf
        if self._is_stale:
            return max(self.last.monotonic + RESTATE, self._retry_at)
        if not (self.new and self._buffer.entries):
            return inf
        due = 0.0 if self.new >= self._rules.domain_messages else self.last.monotonic + self._rules.domain_interval
        return max(due, self._retry_at)

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
        self._retry_at = now.monotonic + RETRY


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
