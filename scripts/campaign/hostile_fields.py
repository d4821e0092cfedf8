"""Values that a listener may send beside a text: of each field what is odd and yet leaves a message."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from scripts.campaign.hostile_text import HostileText

MISSING: Final = object()
"""Instead of a value: the field is left out."""

SURROGATE: Final = "\ud83d"
"""Half of a pair. JSON can escape it, UTF-8 cannot hold it."""

_TIMESTAMPS: Final[tuple[Any, ...]] = (
    "2025-10-02 10:30:45,123",
    "2025-W40-4T10:00",
    "2025-W40",
    "20251002T103045Z",
    "2025-10-02T10:30:45.123456789",
    "2025-10-02T10:30:45+23:59",
    "2025-10-02T10:30:45-23:59:59.999999",
    "2025-10-02",
    "2025-10-02x10:30",
    "2025-10-02T24:00:00",
    "2016-12-31T23:59:60Z",
    "2025-03-30T02:30:00",
    "0001-01-01T00:00:00",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.999999",
    "9999-12-31T23:59:59-12:00",
    "-0044-03-15T12:00:00",
    "1900-01-01T00:00:00+00:00",
    "294277-01-01T00:00:00Z",
    "٢٠٢٥-١٠-٠٢T١٠:٣٠",
    "yesterday",
    "infinity",
    "now",
    "epoch",
    "",
    " ",
    "2025-10-02T10:30:45\x00",
    f"2025-10-02T10:30:45{SURROGATE}",
    "9" * 10_000,
    0,
    -1,
    1_759_394_000.5,
    10**30,
    math.nan,
    True,
    [],
    ["2025-10-02"],
    {"seconds": 1_759_394_000, "nanos": None},
)

_CONFIDENCES: Final[tuple[Any, ...]] = (0, 2, -1, math.nan, math.inf, 10**400, "high", None, True, [0.5], MISSING)

_SPEAKERS: Final[tuple[Any, ...]] = (
    *("Alice", "Bob", "Speaker_0", "Speaker_1", "Zoë"),
    *(MISSING, None, "", " \u2003", 7, 0.5, True, ["Alice"], {"name": "Alice"}),
    *("Unknown", "consilience", "Consılience", "Consilience\u200b", "ALİCE", "ſpeaker_0"),
    *("Mallory\n[9] (Eve)", "Al\x00ice", "\x1b[2JBob", "x" * 6_000, "ﷺ" * 500, "Robert'); --"),
)

_TYPES: Final[tuple[Any, ...]] = ("user", "USER", None, 5, "", "summary", {"a": 1}, MISSING)

_METADATA: Final[tuple[Any, ...]] = (
    *(None, [], "metadata", {}, {"": ""}, {"\x00": "\x00"}, {SURROGATE: SURROGATE}, {"user_id": ""}),
    *({"user_id": "u" * 6_000}, {"user_id": 7}, {"user_id": "\x00"}, {"user_id": "ı"}, {"user_id": "u" * 200}),
    *({"user_id": "ﷺ" * 200}, {"nan": math.nan, "large": 10**40, "small": -(2**63)}, {"list": list(range(3_000))}),
)

DEEP: Final = 200
"""Levels: more than metadata is published with, fewer than a parser gives up at."""


class HostileFields:
    """Draws values with ``rng``, and knows what time it is ``now``; the same ones draw the same."""

    def __init__(self, rng: random.Random, text: HostileText, now: Callable[[], datetime]) -> None:
        self._rng = rng
        self._text = text
        self._now = now

    def timestamp(self) -> Any:
        """Most of the time the present one, in one of its common forms."""
        if self._rng.random() < 0.2:
            return self._rng.choice(_TIMESTAMPS)
        late = timedelta(seconds=self._rng.choice((0, 0, 0, 1, 30, 3_600)))
        now = self._now() - late
        forms = (now.isoformat(), f"{now:%Y-%m-%dT%H:%M:%S.%fZ}", now.astimezone().replace(tzinfo=None).isoformat())
        return self._rng.choice(forms)

    def speaker(self) -> Any:
        if self._rng.random() < 0.05:
            return self._text.short()
        return self._rng.choice(_SPEAKERS[:5] if self._rng.random() < 0.7 else _SPEAKERS)

    def others(self) -> dict[str, Any]:
        """Confidence, kind, metadata and fields that nobody knows; each with what it is called."""
        fields: dict[str, Any] = {"confidence": 0.95}
        if self._rng.random() < 0.1:
            fields["confidence"] = self._rng.choice(_CONFIDENCES)
        if self._rng.random() < 0.1:
            fields["type"] = self._rng.choice(_TYPES)
        if self._rng.random() < 0.15:
            fields["metadata"] = self._metadata()
        if self._rng.random() < 0.05:
            fields[self._text.short(10)] = self._text.short()
        return fields

    def _metadata(self) -> Any:
        match self._rng.randrange(4):
            case 0:
                return {"user_id": self._text.short(200)}
            case 1:
                deep: Any = self._text.short()
                for _ in range(DEEP):
                    deep = [deep]
                return {"deep": deep, "user_id": "kai"}
            case _:
                return self._rng.choice(_METADATA)
