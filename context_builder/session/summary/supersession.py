"""Supersession finds the earlier decision that a later one replaces, by words. Pure; misses beat wrong answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from context_builder.analysis.analyst import PointKind
from context_builder.session.summary.point import Point

LEAST_SHARED: Final = 2
"""Words of its topic that a decision has in common with the one it replaces, at least."""

LEAST_SHARE: Final = 0.4
"""Of the words of the replaced decision, so many at least are those that both have."""

_REPLACES: Final = re.compile(
    r"\b(?:instead|no longer|rather than|any ?more|anymore|overrul\w+|supersed\w+|replac(?:e|es|ed|ing)"
    r"|switch(?:es|ed|ing)? (?:from|to)|chang(?:e|es|ed|ing) (?:from|to)|cancel(?:s|led|ling|ed)?|revers(?:e|es|ed))\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{4,}|\d+")
_COMMON: Final = frozenset(
    "about after agreed also anymore been before between cancel decided decision from have instead into just keep"
    " longer more must only other rather replace shall should some switch than that their them then there they this"
    " those through"
    " until want were what when which will with would".split()
)


def replaced_by(decision: Point, earlier: Iterable[Point]) -> Point | None:
    """Return the decision among ``earlier`` points that ``decision`` replaces: the one with most of the same words, of
    several the latest. None unless the words say that something is replaced, and enough of them are about the same.
    """
    if decision.kind is not PointKind.DECISION or not _REPLACES.search(decision.text):
        return None
    words = _topic(decision.text)
    best: tuple[int, float, int] | None = None
    found: Point | None = None
    for point in earlier:
        if point.kind is not PointKind.DECISION or point.id == decision.id or point.time > decision.time:
            continue
        held = _topic(point.text)
        shared = len(words & held)
        if shared < LEAST_SHARED or shared < LEAST_SHARE * len(held):
            continue
        if best is None or (shared, point.time, point.id) >= best:
            best, found = (shared, point.time, point.id), point
    return found


def _topic(text: str) -> set[str]:
    """Return the words that tell what a text is about, without their plural ``s``."""
    return {
        word.removesuffix("s") for word in (found.casefold() for found in _WORD.findall(text)) if word not in _COMMON
    }
