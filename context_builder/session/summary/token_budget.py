"""This module makes a summary's points fit its token budget: it shortens, then merges them, oldest first.

Loss is spread: a point is merged again only when all the others that are not among the newest have been
merged as often, so that the beginning of a long session keeps its share; the newest at most lose function words.
What identifies things goes last, and what other points tell as well goes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.session.summary.compression import LEVELS, condense, essence, telling
from context_builder.session.summary.point import Point, rendered

NEWEST: Final = 8
"""Points that are left alone for as long as the others have anything to spare."""

MERGED_CONTENT: Final = 8
"""Content words that each of two merged points keeps, besides what identifies things."""

MERGED_WORDS: Final = 24
"""Words that a merged point is cut to when merging alone is not enough."""


def fit(points: Sequence[Point], budget: int, count: Callable[[str], int]) -> list[Point]:
    """Return the points, shortened as little as it takes for their text to fit ``budget`` as ``count`` counts."""
    fitting = _Fitting(points, count)
    for _ in fitting.steps(budget):
        if fitting.cost <= budget and count(rendered(fitting.points)) <= budget:
            break
    return fitting.points


class _Fitting:
    """Shortens points; ``cost`` adds up the lines, so that a step counts one line; the whole is counted at the end."""

    def __init__(self, points: Sequence[Point], count: Callable[[str], int]) -> None:
        self.points = list(points)
        self._count = count
        self._costs = [self._cost_of(point) for point in self.points]
        self.cost = sum(self._costs)
        self._occurrences: Counter[str] | None = None

    def steps(self, budget: int) -> Iterator[None]:
        """Shorten a little at a time, beginning with nothing at all."""
        yield
        for level, newest in ((1, NEWEST), (1, 0), (LEVELS, NEWEST)):
            yield from self._condense(level, newest)
        yield from self._merge(NEWEST)
        yield from self._condense(LEVELS, 0)
        yield from self._merge(0)
        if self.points:
            self.points = list(_clipped(self.points[0], budget, self._count))

    def _condense(self, level: int, newest: int) -> Iterator[None]:
        for at in range(max(0, len(self.points) - newest)):
            point = self.points[at]
            if point.level < level:
                occurrences = self._word_counts() if level == LEVELS else None
                self._replace(at, 1, replace(point, text=condense(point.text, level, occurrences), level=level))
                yield

    def _merge(self, newest: int) -> Iterator[None]:
        """Merge neighbours, each as often as the others, until there is one point besides the ``newest``."""
        level = LEVELS + 1
        while len(self.points) > newest + 1:
            yield from self._merge_pairs(level, newest)
            yield from self._cut(level, newest)
            level += 1

    def _merge_pairs(self, level: int, newest: int) -> Iterator[None]:
        at = 0
        while at + 1 < len(self.points) - newest:
            first, second = self.points[at : at + 2]
            if first.level < level and second.level < level:
                self._replace(at, 2, self._merged(first, second, level))
                yield
            at += 1

    def _merged(self, first: Point, second: Point, level: int) -> Point:
        occurrences = self._word_counts()
        before = essence(first.text, occurrences, content=MERGED_CONTENT)
        occurrences.subtract(_words(first.text) - _words(before))
        repeated = {word.lower() for word in before.split()}
        after = essence(second.text, occurrences, content=MERGED_CONTENT)
        after = " ".join(word for word in after.split() if word.lower() not in repeated)
        occurrences.update(_words(first.text) - _words(before))
        kind = first.kind if first.kind is second.kind else PointKind.CLAIM
        text = f"{before}; {after}" if after else before
        return replace(first, text=text, kind=kind, level=level).citing(first, second)

    def _cut(self, level: int, newest: int) -> Iterator[None]:
        for at in range(max(0, len(self.points) - newest)):
            point = self.points[at]
            if point.level == level and len(telling(point.text)) > MERGED_WORDS:
                text = essence(point.text, self._word_counts(), content=MERGED_WORDS, most=MERGED_WORDS)
                self._replace(at, 1, replace(point, text=text))
                yield

    def _replace(self, at: int, length: int, point: Point) -> None:
        """Put ``point`` in the place of ``length`` points."""
        if self._occurrences is not None:
            for old in self.points[at : at + length]:
                self._occurrences.subtract(_words(old.text))
            self._occurrences.update(_words(point.text))
        cost = self._cost_of(point)
        self.cost += cost - sum(self._costs[at : at + length])
        self.points[at : at + length] = [point]
        self._costs[at : at + length] = [cost]

    def _word_counts(self) -> Counter[str]:
        """Return in how many points each word occurs."""
        if self._occurrences is None:
            self._occurrences = Counter(word for point in self.points for word in _words(point.text))
        return self._occurrences

    def _cost_of(self, point: Point) -> int:
        return self._count(point.render() + "\n")


def _words(text: str) -> set[str]:
    return {word.lower for word in telling(text)}


def _clipped(point: Point, budget: int, count: Callable[[str], int]) -> Iterator[Point]:
    """Yield a single point of the words that fit, before a mark; nothing if not even the mark fits."""
    words = point.text.split()
    while words:
        del words[len(words) * 3 // 4 :]
        clipped = replace(point, text=" ".join([*words, "…"]), level=max(point.level, LEVELS))
        if count(clipped.render()) <= budget:
            yield clipped
            return
