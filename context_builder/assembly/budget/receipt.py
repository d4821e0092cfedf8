"""A receipt tells what became of a candidate, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from context_builder.assembly.budget.allocation import Allocation
from context_builder.assembly.budget.section import Item
from context_builder.assembly.candidate import Candidate, Signal

BEGINNING: Final = 200
"""Characters of a text that its receipt shows."""


class Outcome(StrEnum):
    """Tells how a candidate left the pipeline."""

    INCLUDED = "included"
    REDACTED = "redacted"
    SUMMARISED = "summarised"
    CLIPPED = "clipped"
    DROPPED = "dropped"
    WITHHELD = "withheld"
    DENIED = "denied"


class Receipt(NamedTuple):
    """Tells a candidate's outcome and the reason; ``tokens`` is what it takes in the prompt, 0 when it is left out.

    ``text`` is the beginning of it as it may be shown; empty for what was withheld, denied, or never looked at.
    ``score`` is the weighted sum of ``signals``. What was both redacted and clipped or summarised is called by the
    latter, and its reason tells both.
    """

    id: str
    section: str
    outcome: Outcome
    reason: str = ""
    tokens: int = 0
    score: float = 0.0
    signals: tuple[Signal, ...] = ()
    origins: tuple[str, ...] = ()
    text: str = ""

    def signal(self, name: str) -> float | None:
        """Return the score of the signal ``name``; None where the candidate was not ranked by it."""
        return next((one.score for one in self.signals if one.name == name), None)


def receipts_of(part: Allocation) -> Iterator[Receipt]:
    """Return a receipt for every item that was considered, those in the prompt first."""
    name = part.section.name
    for item in part.taken:
        outcome, reason = _what_happened(item)
        accepted = receipt(item.id, item.candidate, name, outcome, reason, part.section.cost(item))
        yield accepted._replace(text=item.text[:BEGINNING])
    for item, reason in part.left:
        yield receipt(item.id, item.candidate, name, Outcome.DROPPED, reason)._replace(text=item.text[:BEGINNING])


def receipt(
    name: str, candidate: Candidate | None, section: str, outcome: Outcome, reason: str = "", tokens: int = 0
) -> Receipt:
    """Return the receipt of a candidate, or of a message, which has no score."""
    if candidate is None:
        return Receipt(name, section, outcome, reason, tokens)
    return Receipt(name, section, outcome, reason, tokens, candidate.score, candidate.signals, candidate.origins)


def added(before: Iterable[Receipt], after: Iterable[Receipt]) -> list[Receipt]:
    """Return the receipts of what a larger limit adds: in the prompt ``after``, and not wholly ``before``."""
    held: dict[tuple[str, str], int] = {}
    for one in before:  # several may have one id: of those found twice, the one that was kept counts
        held[one.section, one.id] = max(one.tokens, held.get((one.section, one.id), 0))
    return [one for one in after if one.tokens > held.get((one.section, one.id), 0)]


def _what_happened(item: Item) -> tuple[Outcome, str]:
    if item.withheld:
        return Outcome.WITHHELD, item.altered
    if item.clipped or item.summarised:
        outcome = Outcome.CLIPPED if item.clipped else Outcome.SUMMARISED
        return outcome, ", ".join(part for part in (item.altered, "too large for what was left") if part)
    return (Outcome.REDACTED, item.altered) if item.altered else (Outcome.INCLUDED, "")
