"""Stored JSON into which somebody else wrote: each value in it replaced by one of every other type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

WRONG: Final = (None, True, -1, 1.5, 1e300, 2**62, "x", "\x00", "9" * 400, [], [[]], {}, {"x": {}})
"""Values of every type, and beyond what is counted."""


def damaged(value: Any, wrong: tuple[Any, ...] = WRONG, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the place of each value within a JSON value, of a list the first item's, and all with it replaced."""
    for other in wrong:
        yield f"{place or 'it'}={str(other)[:10]!r}", other
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{place}.{name} absent", {known: held for known, held in value.items() if known != name}
            for where, other in damaged(inner, wrong, f"{place}.{name}"):
                yield where, {**value, name: other}
    elif isinstance(value, list) and value:
        for where, other in damaged(value[0], wrong, f"{place}.0"):
            yield where, [other, *value[1:]]
