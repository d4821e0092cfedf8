"""Where something personal is in a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

PRECEDENCE: Final = ("EMAIL_ADDRESS", "IBAN_CODE", "CREDIT_CARD", "IP_ADDRESS", "US_SSN", "PHONE_NUMBER")
"""Which kind wins where two are found in one place: the one with more checks behind it."""


class Finding(NamedTuple):
    """``text[start:end]`` is of this kind; kinds are named as Presidio names them."""

    start: int
    end: int
    kind: str


def apart(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in order, none overlapping another: by precedence, then the longer one."""
    kept: list[Finding] = []
    for found in sorted(findings, key=lambda one: (PRECEDENCE.index(one.kind), one.start - one.end)):
        place = bisect_left(kept, found)
        before_ends = place == 0 or kept[place - 1].end <= found.start
        if before_ends and (place == len(kept) or found.end <= kept[place].start):
            kept.insert(place, found)
    return kept
