"""Domains over time: a stray message does not flip them, a change of topic does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from context_builder.analysis.text.domains import MAX_ACTIVE, smoothed

SHARE: Final = 0.5
"""What the newest inference counts for."""

ENTER: Final = 0.3
"""Smoothed confidence from which a domain becomes active."""

LEAVE: Final = 0.15
"""Smoothed confidence below which an active domain is dropped."""


@dataclass(frozen=True, slots=True)
class DomainTracker:
    """Smoothed confidences and the domains that are active by them; a value, so it can be stored.

    The first inference counts in full. Afterwards a domain must be confirmed to enter and must
    fade to leave (hysteresis).
    """

    confidence: Mapping[str, float] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    started: bool = False
    changed: bool = False
    """Whether the leading domain is another one than before this inference."""

    def observe(self, inferred: Mapping[str, float]) -> DomainTracker:
        """The tracker after one more inference."""
        confidence = smoothed(self.confidence, inferred, SHARE if self.started else 1.0)
        confidence = {domain: round(value, 3) for domain, value in confidence.items() if value >= 0.01}
        enter = ENTER if self.started else 0.0
        staying = [d for d, value in confidence.items() if value >= (LEAVE if d in self.active else enter)]
        active = tuple(sorted(staying, key=lambda domain: -confidence[domain])[:MAX_ACTIVE])
        changed = bool(self.active and active) and active[0] != self.active[0]
        return DomainTracker(confidence, active, started=self.started or bool(inferred), changed=changed)

    @property
    def current(self) -> dict[str, float]:
        """Active domains with their smoothed confidence, highest first."""
        return {domain: self.confidence[domain] for domain in self.active}
