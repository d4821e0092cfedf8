"""The comparison view shows two recordings of the same messages side by side: agreement, then differences. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from context_builder.recording.comparison import DomainPair, KeywordPair, PointPair
from context_builder.recording.library import ComparedRecordings
from context_builder.recording.understanding import RecordedMessage, RecordedPoint, Understanding

MOST: Final = 20
"""Differences that are shown of each task, the least alike first."""


@dataclass(frozen=True, slots=True)
class Word:
    """Holds a word of one side; ``only`` where the other side has not got it."""

    text: str
    only: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a difference, and the messages that it is about."""

    about: tuple[RecordedMessage, ...]
    left: tuple[Word, ...]
    right: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class DifferingPart:
    """Holds the differences of one task; ``more`` are not shown."""

    heading: str
    about: str
    rows: tuple[Row, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Holds how far both agree in one task; ``share`` is 0 to 1, None where there is nothing to compare."""

    name: str
    share: float | None
    text: str


@dataclass(frozen=True, slots=True)
class SideView:
    """Names a side, and the analysts of its results."""

    name: str
    made_by: tuple[tuple[str, int], ...]
    failed: int


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Holds both sides, their agreement, and their differences."""

    left: SideView
    right: SideView
    agreement: tuple[Agreement, ...]
    parts: tuple[DifferingPart, ...]


def comparison_view(compared: ComparedRecordings, left: str, right: str) -> ComparisonView:
    """Return the view of two recordings with these names."""
    found = compared.comparison
    keywords = sorted((one for one in found.keywords if one.alike < 1), key=lambda one: one.alike)
    domains = sorted((one for one in found.domains if one.left != one.right), key=lambda one: one.alike)
    points = [one for one in found.points if not one.same_text]
    parts = (
        _part("Keywords that differ", "Message", [_of_words(one) for one in keywords]),
        _part("Domains that differ", "After", [_of_words(one) for one in domains]),
        _part("Points that differ", "Cited", [_of_points(one) for one in points]),
    )
    return ComparisonView(
        _side(left, compared.left),
        _side(right, compared.right),
        tuple(_agreement(found.figures())),
        tuple(part for part in parts if part.rows),
    )


def _side(name: str, understood: Understanding) -> SideView:
    return SideView(name, tuple(understood.analysts.most_common()), understood.failed)


def _agreement(figures: dict[str, dict[str, Any]]) -> Sequence[Agreement]:
    keywords, domains, points = figures["keywords"], figures["domains"], figures["points"]
    aside = f", {keywords['one_side_only']:,} on one side only" if keywords["one_side_only"] else ""
    matched = f"{points['matched']:,} about the same messages ({points['same_text']:,} in the same words)"
    return [
        Agreement("Keywords", keywords["jaccard"], f"in common, over {keywords['messages']:,} messages{aside}"),
        Agreement("Leading domain", domains["same_leading"], f"the same, over {domains['inferences']:,} times"),
        Agreement("Domains", domains["jaccard"], "in common"),
        Agreement("Points", None, f"{matched}, {points['only_left']:,} only left, {points['only_right']:,} only right"),
    ]


def _part(heading: str, about: str, rows: Sequence[Row]) -> DifferingPart:
    return DifferingPart(heading, about, tuple(rows[:MOST]), max(0, len(rows) - MOST))


def _of_words(pair: KeywordPair | DomainPair) -> Row:
    return Row((pair.message,), _words(pair.left, pair.right), _words(pair.right, pair.left))


def _words(mine: Sequence[str], others: Sequence[str]) -> tuple[Word, ...]:
    known = {word.casefold() for word in others}
    return tuple(Word(word, word.casefold() not in known) for word in mine)


def _of_points(pair: PointPair) -> Row:
    cited = {one for point in (pair.left, pair.right) if point is not None for one in point.cites}
    ordered = sorted(cited, key=lambda one: (one.text, one.speaker, one.again))
    return Row(tuple(ordered), _point(pair.left), _point(pair.right))


def _point(point: RecordedPoint | None) -> tuple[Word, ...]:
    return () if point is None else (Word(point.kind.value, only=False), Word(point.text, only=False))
