"""Values of JSON that another program wrote: one of another type than is asked for counts as missing."""

from __future__ import annotations

import math
from typing import Any


def object_of(value: object) -> dict[str, Any]:
    """Return the value; an empty object in place of anything else."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """Return the value; an empty list in place of anything else."""
    return value if isinstance(value, list) else []


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list."""
    return [one for one in list_of(value) if isinstance(one, dict)]


def texts_of(value: object, longest: int | None = None) -> list[str]:
    """Return what is in a list as text, of at most ``longest`` characters each."""
    return [str(one)[:longest] for one in list_of(value)]


def number_of(value: object) -> float | None:
    """Return a finite number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None  # type: ignore[arg-type]
