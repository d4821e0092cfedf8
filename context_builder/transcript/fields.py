"""Fields of JSON that somebody else wrote: each is what it must be, or an error says which is not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def objects(value: object, name: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects. Raises :class:`ValueError` naming what is none."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    for place, one in enumerate(value):
        if not isinstance(one, dict):
            raise ValueError(f"{name}[{place}] is not an object")
    return value


def text(entry: Mapping[str, Any], key: str, name: str) -> str:
    """Return a text with single blanks between its words. Raises :class:`ValueError`."""
    value = entry.get(key)
    if not isinstance(value, str):
        raise ValueError(f'{name} has no "{key}"')
    return " ".join(value.split())


def number(entry: Mapping[str, Any], key: str, name: str) -> float | None:
    """Return a finite number, also of a text that is one; None where there is none. Raises :class:`ValueError`."""
    value = entry.get(key)
    if value is None:
        return None
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f'"{key}" of {name} is not a number')
    return found
