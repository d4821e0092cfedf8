"""A conversation's topic is smoothed over inferences, and tells when the talk last went on to another subject."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final

from context_builder.analysis.text.words import plain_words
from context_builder.domains import DOMAINS
from context_builder.values import value

SHARE: Final = 0.5
"""What an inference counts for at least; a more confident one counts for as much as its confidence."""

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
"""What an inference counts for in ``subject``: half of it is as old as seven inferences, several minutes."""

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
    subject is no change.
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
        return cls(**{**fields, "active": tuple(fields["active"]), "terms": tuple(fields["terms"])})


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
