"""A conversation's topic is smoothed over inferences, and tells when it last changed for good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

from context_builder.domains import DOMAINS
from context_builder.values import value

SHARE: Final = 0.5
"""What an inference counts for at least; a more confident one counts for as much as its confidence."""

ENTER: Final = 0.3
"""Smoothed confidence from which a domain becomes active."""

LEAVE: Final = 0.15
"""Smoothed confidence below which an active domain is dropped."""

FORGOTTEN: Final = 0.01
"""Smoothed confidence below which a domain is no longer remembered."""

MAX_ACTIVE: Final = 4
"""Most domains active at once."""


@value
class Topic:
    """Holds smoothed confidences and the domains that are active by them; a value, so it can be stored.

    With nothing active an inference counts in full. Otherwise a domain must have been heard clearly or
    repeatedly to enter, and must fade to leave: a confident inference (0.65 and more) changes the leading domain
    at once, a weaker stray is held back.

    The topic has changed for good when another domain than ``settled`` leads after two inferences in a row;
    ``changed_at`` (epoch seconds) is then the moment of the first of the two. The first topic is no change.
    """

    confidence: Mapping[str, float] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    settled: str | None = None
    changed_at: float | None = None
    rising: str | None = None
    """The domain that leads since ``rising_at``, once only so far."""
    rising_at: float = 0.0

    @property
    def current(self) -> dict[str, float]:
        """Return active domains with their smoothed confidence, highest first."""
        return {domain: self.confidence[domain] for domain in self.active}

    def after(self, inferred: Mapping[str, float], now: float) -> Topic:
        """Return the topic after one more inference, made at epoch second ``now``."""
        share = max(SHARE, *inferred.values()) if self.active and inferred else SHARE if self.active else 1.0
        enter = ENTER if self.active else 0.0
        confidence = _smoothed(self.confidence, inferred, share)
        staying = [d for d, value in confidence.items() if value >= (LEAVE if d in self.active else enter)]
        active = tuple(sorted(staying, key=lambda domain: -confidence[domain])[:MAX_ACTIVE])
        return replace(self, confidence=confidence, active=active)._led_by(active[0] if active else None, now)

    def _led_by(self, leading: str | None, now: float) -> Topic:
        if leading is None or leading == self.settled:
            return replace(self, rising=None)
        if self.settled is None:
            return replace(self, settled=leading)
        if leading != self.rising:
            return replace(self, rising=leading, rising_at=now)
        return replace(self, settled=leading, changed_at=self.rising_at, rising=None)

    def wire(self) -> dict[str, Any]:
        """Return the topic as the checkpoint keeps it."""
        return {
            "confidence": dict(self.confidence),
            "active": self.active,
            "settled": self.settled,
            "changed_at": self.changed_at,
            "rising": self.rising,
            "rising_at": self.rising_at,
        }

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Topic:
        return cls(**{**fields, "active": tuple(fields["active"])})


def _smoothed(before: Mapping[str, float], inferred: Mapping[str, float], share: float) -> dict[str, float]:
    """Smooth exponentially: ``share`` of what is heard now, the rest from before."""
    mixed = {
        domain: round(share * inferred.get(domain, 0.0) + (1 - share) * before.get(domain, 0.0), 3)
        for domain in DOMAINS
        if domain in inferred or domain in before
    }
    return {domain: value for domain, value in mixed.items() if value >= FORGOTTEN}
