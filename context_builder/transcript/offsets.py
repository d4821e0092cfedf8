"""Times from the beginning of a recording, as people and programs write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final

CLOCK: Final = r"(?:\d{1,6}\s?:\s?)?\d{1,3}\s?:\s?\d{1,3}(?:\s?[.,:;]\s?\d{1,9})?"
"""``1:02:03.500`` and its like: hours may be missing, digits single, a fraction of any length."""

_CLOCK: Final = re.compile(r"(?:(\d{1,6}):)?(\d{1,3}):(\d{1,3})(?:[.,](\d{1,9}))?")
_DURATION: Final = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")
_FRAMES: Final = re.compile(r"(\d{1,6}:\d{1,3}:\d{1,3})[:;](\d{1,3})")


HALF: Final = r"(?:\s?[AaPp]\.?[Mm]\b\.?)"
"""Morning or afternoon, behind a time of the day."""

_OF_DAY: Final = re.compile(rf"(?P<hour>\d{{1,2}})(?P<rest>:\d{{2}})(?P<seconds>:\d{{2}})?(?P<half>{HALF})")
_DAY: Final = 86_400.0
_EVENING: Final = 20 * 3600
_MORNING: Final = 4 * 3600


def is_of_day(time: str) -> bool:
    """Return whether a time is one of the day, such as ``9:00 AM``, not one from the beginning."""
    return bool(_OF_DAY.fullmatch(time.strip()))


def since_first(times: Sequence[float]) -> list[float]:
    """Return times of the day, in seconds, as seconds from the first one; a long way back is past midnight."""
    midnights = accumulate((after < before - _DAY / 2 for before, after in pairwise(times)), initial=0)
    return [time + days * _DAY - times[0] for time, days in zip(times, midnights, strict=True)] if times else []


def since_first_of_day(times: Sequence[str]) -> list[float] | None:
    """Return times of the day as seconds from the first one; None where they count from a beginning.

    ``9:00 AM`` is one of the day. So is ``23:58``, where the only ways back are from late evening to after midnight.
    """
    if times and all(map(is_of_day, times)):
        return since_first([offset(time) for time in times])
    colons = {time.count(":") for time in times}
    if colons not in ({1}, {2}):
        return None
    try:
        told = [offset(time) * (60 if colons == {1} else 1) for time in times]
    except ValueError:
        return None
    falls = [(before, after) for before, after in pairwise(told) if after < before]
    if not falls or max(told) >= _DAY or not all(before >= _EVENING and after < _MORNING for before, after in falls):
        return None
    return since_first(told)


def offset(time: str) -> float:
    """Return the seconds of a time such as ``00:01:02,500``, ``1:2.5`` or ``0:00:01:12`` (frames, which are ignored).

    Of a time of the day, such as ``9:00 AM``, they count from midnight. Raises :class:`ValueError`.
    """
    if of_day := _OF_DAY.fullmatch(time.strip()):
        hour = int(of_day["hour"]) % 12 + (12 if of_day["half"].strip().lower().startswith("p") else 0)
        time = f"{hour}{of_day['rest']}{of_day['seconds'] or ':00'}"
    given = "".join(time.split())
    if frames := _FRAMES.fullmatch(given):
        given = frames[1]
    found = _CLOCK.fullmatch(given)
    if found is None:
        raise ValueError(f"{time[:40]!r} is not a time such as 00:01:02.500")
    hours, minutes, whole, fraction = found.groups(default="0")
    return int(hours) * 3600 + int(minutes) * 60 + int(whole) + float(f"0.{fraction}")


def duration(value: object) -> float | None:
    """Return the seconds of a duration as ISO 8601 has it, such as ``PT1M3.5S``; None of anything else."""
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    hours, minutes, seconds = (float(one or 0) for one in found.groups())
    return hours * 3600 + minutes * 60 + seconds
