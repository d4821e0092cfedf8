"""Measured points of one worker, kept in ``points.json`` beside this, for the simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("points.json")

Point = Mapping[str, Any]
"""Medians of some windows of time; ``others`` is what other work on the machine used of its cores then."""

Points = dict[str, Any]
"""Points by part (``idle``, ``talking`` …), and ``made``: by which command, when and on which machine."""


def read_points(file: Path = FILE) -> Points:
    points: Points = json.loads(file.read_text("utf-8"))
    return points


def write_points(points: Points, file: Path = FILE) -> None:
    file.write_text(json.dumps(points, indent=1, sort_keys=True) + "\n", "utf-8")


def point(points: Points, part: str, **wanted: object) -> Point:
    """Return the point of that part with these parameters; raises KeyError where it was not measured."""
    of_part: Sequence[Point] = points.get(part, ())
    for one in of_part:
        if all(one[name] == value for name, value in wanted.items()):
            return one
    raise KeyError(f"{part} {wanted} was not measured: ./scripts/bench fleet --simulate --measure {part}")
