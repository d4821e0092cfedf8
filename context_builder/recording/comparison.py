"""A comparison puts two understandings of the same messages side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from context_builder.recording.understanding import RecordedMessage, RecordedPoint, Understanding


@dataclass(frozen=True, slots=True)
class KeywordPair:
    """Holds the keywords of a message by either side; ``alike`` is their Jaccard index, letters' case aside."""

    message: RecordedMessage
    left: tuple[str, ...]
    right: tuple[str, ...]
    alike: float


@dataclass(frozen=True, slots=True)
class DomainPair:
    """Holds the domains in force after a message, most confident first."""

    message: RecordedMessage
    left: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def same_leading(self) -> bool:
        return self.left[:1] == self.right[:1]

    @property
    def alike(self) -> float:
        return jaccard(self.left, self.right)


@dataclass(frozen=True, slots=True)
class PointPair:
    """Holds points that cite a message in common; one side is None where the other has nothing of the kind."""

    left: RecordedPoint | None
    right: RecordedPoint | None

    @property
    def same_text(self) -> bool:
        return self.left is not None and self.right is not None and self.left.text == self.right.text


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds everything both sides have; ``uncompared`` counts messages with keywords on one side only."""

    keywords: Sequence[KeywordPair]
    domains: Sequence[DomainPair]
    points: Sequence[PointPair]
    uncompared: int

    def figures(self) -> dict[str, Any]:
        """Return the agreement by task; shares and means in 0..1, null where there is nothing to compare."""
        return {
            "keywords": {
                "messages": len(self.keywords),
                "one_side_only": self.uncompared,
                "jaccard": _mean(pair.alike for pair in self.keywords),
            },
            "domains": {
                "inferences": len(self.domains),
                "same_leading": _mean(float(pair.same_leading) for pair in self.domains),
                "jaccard": _mean(pair.alike for pair in self.domains),
            },
            "points": {
                "matched": sum(pair.left is not None and pair.right is not None for pair in self.points),
                "same_text": sum(pair.same_text for pair in self.points),
                "only_left": sum(pair.right is None for pair in self.points),
                "only_right": sum(pair.left is None for pair in self.points),
            },
        }


def compare(left: Understanding, right: Understanding) -> Comparison:
    """Compare two understandings of the same messages."""
    shared = [message for message in left.keywords if message in right.keywords]
    return Comparison(
        keywords=[_keywords(message, left.keywords[message], right.keywords[message]) for message in shared],
        domains=_domains(left, right),
        points=_match(left.points, right.points),
        uncompared=len(left.keywords) + len(right.keywords) - 2 * len(shared),
    )


def jaccard(left: Iterable[str], right: Iterable[str]) -> float:
    """Return the Jaccard index of two sets; 1 when both are empty."""
    one, other = ({word.casefold() for word in words} for words in (left, right))
    return len(one & other) / len(one | other) if one or other else 1.0


def _keywords(message: RecordedMessage, left: tuple[str, ...], right: tuple[str, ...]) -> KeywordPair:
    return KeywordPair(message, left, right, jaccard(left, right))


def _domains(left: Understanding, right: Understanding) -> list[DomainPair]:
    """Return, for every message after which either side inferred domains, what each had inferred last.

    Where one has inferred nothing yet there is nothing to compare.
    """
    order = {message: place for place, message in enumerate([*left.messages.values(), *right.messages.values()])}
    pairs: list[DomainPair] = []
    of_left: list[str] | None = None
    of_right: list[str] | None = None
    for message in sorted({*left.domains, *right.domains}, key=lambda message: order[message]):
        of_left, of_right = left.domains.get(message, of_left), right.domains.get(message, of_right)
        if of_left is not None and of_right is not None:
            pairs.append(DomainPair(message, tuple(of_left), tuple(of_right)))
    return pairs


def _match(left: Sequence[RecordedPoint], right: Sequence[RecordedPoint]) -> list[PointPair]:
    """Return each point with the most similar one that cites a message in common, the most similar pairs first."""
    citing: dict[RecordedMessage, list[int]] = {}
    for index, point in enumerate(right):
        for message in point.cites:
            citing.setdefault(message, []).append(index)
    likeness: dict[tuple[int, int], float] = {}
    for index, point in enumerate(left):
        for other in dict.fromkeys(i for message in point.cites for i in citing.get(message, ())):
            likeness[index, other] = _likeness(point, right[other])
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for index, other in sorted(likeness, key=lambda pair: -likeness[pair]):
        if index not in partner and other not in taken:
            partner[index] = other
            taken.add(other)
    pairs = [PointPair(point, right[partner[i]] if i in partner else None) for i, point in enumerate(left)]
    return [*pairs, *(PointPair(None, point) for index, point in enumerate(right) if index not in taken)]


def _likeness(left: RecordedPoint, right: RecordedPoint) -> float:
    cites = len(left.cites & right.cites) / len(left.cites | right.cites)
    return cites + jaccard(left.text.split(), right.text.split())


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None
