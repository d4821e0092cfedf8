"""Times from the beginning of a recording, as people and programs write them."""

from __future__ import annotations

import re
from typing import Final

CLOCK: Final = r"(?:\d{1,6}\s?:\s?)?\d{1,3}\s?:\s?\d{1,3}(?:\s?[.,:]\s?\d{1,9})?"
"""``1:02:03.500`` and its like: hours may be missing, digits single, a fraction of any length."""

_CLOCK: Final = re.compile(r"(?:(\d{1,6}):)?(\d{1,3}):(\d{1,3})(?:[.,](\d{1,9}))?")
_FRAMES: Final = re.compile(r"(\d{1,6}:\d{1,3}:\d{1,3}):(\d{1,3})")


def offset(time: str) -> float:
    """Return the seconds of a time such as ``00:01:02,500``, ``1:2.5`` or ``0:00:01:12`` (frames, which are ignored).

    Raises :class:`ValueError`.
    """
    given = "".join(time.split())
    if frames := _FRAMES.fullmatch(given):
        given = frames[1]
    found = _CLOCK.fullmatch(given)
    if found is None:
        raise ValueError(f"{time[:40]!r} is not a time such as 00:01:02.500")
    hours, minutes, whole, fraction = found.groups(default="0")
    return int(hours) * 3600 + int(minutes) * 60 + int(whole) + float(f"0.{fraction}")
