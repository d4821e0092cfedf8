"""The budget chooses the items of a section that fit a token limit, whatever comes in, and receipts tell the choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple

from context_builder.assembly.candidate import Candidate, ContextType, Signal
from context_builder.assembly.config import AssemblyConfig, Choose
from context_builder.assembly.section import Item, Section
from context_builder.errors import TokenLimitExceeded

Chosen = tuple[int, float, Any]
"""A set: its cost, its value, and its last place with the set before, as a chain."""


def best_subset(values: Sequence[float], costs: Sequence[int], room: int) -> list[int]:
    """Return the places, in order, of the items whose values add up to the most within ``room``.

    Keeps the sets that no other set beats in both cost and value (Nemhauser and Ullmann, 1969): never more
    than ``room`` + 1 of them, and far fewer as a rule. Values are positive, costs not negative.
    """
    if sum(costs) <= room:
        return list(range(len(costs)))
    best: list[Chosen] = [(0, 0.0, None)]
    for place, (value, cost) in enumerate(zip(values, costs, strict=True)):
        grown = [(c + cost, v + value, (place, chain)) for c, v, chain in best if c + cost <= room]
        best = _undominated(best, grown)
    places: list[int] = []
    chain = best[-1][2]
    while chain is not None:
        place, chain = chain
        places.append(place)
    return places[::-1]


def _undominated(these: Sequence[Chosen], those: Sequence[Chosen]) -> list[Chosen]:
    """Merge both, in ascending order of cost and value, without those that something cheaper is worth."""
    kept: list[Chosen] = []
    top, at, end = -1.0, 0, len(these)
    for other in those:
        cost, value, _ = other
        while at < end and (these[at][0] < cost or (these[at][0] == cost and these[at][1] >= value)):
            if these[at][1] > top:
                kept.append(these[at])
                top = these[at][1]
            at += 1
        if value > top:
            kept.append(other)
            top = value
    kept.extend(one for one in these[at:] if one[1] > top)
    return kept


def token_limit(config: AssemblyConfig, asked: int | None = None, default: int | None = None) -> int:
    """Return a prompt's token limit: the requested one, else the window's rest, else the default; at most the window.

    Without a ``default``, it is the config's.
    """
    if config.window is None:
        return asked if asked is not None else default or config.max_prompt_tokens
    free = max(int((config.window - config.reply_tokens) * (1 - (config.margin or 0.0))), 1)
    return free if asked is None else min(asked, free)


@dataclass(slots=True)
class Allocation:
    """The items of a section that are in the prompt, in order of precedence, and those left out, with the reason."""

    section: Section
    taken: list[Item] = field(default_factory=list)
    left: list[tuple[Item, str]] = field(default_factory=list)
    tokens: int = 0


class TokenBudget:
    """The room that ``required`` tokens leave of ``limit``, which is filled section by section.

    Raises :class:`~context_builder.errors.TokenLimitExceeded` when the required ones alone are over.
    """

    def __init__(self, required: int, limit: int, choose: Choose = "greedy") -> None:
        if required > limit:
            raise TokenLimitExceeded(required, limit)
        self._left = limit - required
        self._choose = choose

    def fill(self, section: Section) -> Allocation:
        """Take the items of a section that fit into the room that is left."""
        part = _fill(section, self._left, self._choose)
        self._left -= part.tokens
        return part


def _fill(section: Section, room: int, choose: Choose) -> Allocation:
    if section.contiguous:
        part = _newest(section, room)
    elif choose == "knapsack":
        part = _most_valuable(section, room)
    else:
        part = _greedy(section, room)
    _shrink(part, room)
    if section.contiguous and part.left:
        _begin_with_a_question(part)
    if not part.taken and part.left and (len(part.left) == 1 or not part.left[0][0].is_answer):
        _clip_first(part, room)
    return part


def _newest(section: Section, room: int) -> Allocation:
    part = Allocation(section)
    cost_of, take, items = section.cost, part.taken.append, iter(section.items)
    for item in items:
        cost = cost_of(item)
        if cost > room:
            part.left.append((item, _too_large(cost, room)))
            if not part.taken and item.is_answer:
                part.left += ((older, TOO_OLD) for older in islice(items, 1))
            break
        room -= cost
        take(item)
    return part


def _greedy(section: Section, room: int) -> Allocation:
    part = Allocation(section)
    room -= section.opening
    for item in section.items:
        cost = section.cost(item)
        if cost <= room:
            room -= cost
            part.taken.append(item)
        elif (
            shorter := next((one for one in projected(section, item) if section.cost(one) <= room), None)
        ) is not None:
            room -= section.cost(shorter)
            part.taken.append(shorter)
        else:
            part.left.append((item, _too_large(cost, max(room, 0))))
    return part


def projected(section: Section, item: Item) -> Iterator[Item]:
    """Yield the item with each of its shorter texts in its place, the longest first."""
    for text in item.projections:
        shorter = section.with_text(item, text)
        if shorter is not None:
            shorter.summarised = True
            yield shorter


def _most_valuable(section: Section, room: int) -> Allocation:
    items = list(section.items)
    costs = [section.cost(item) for item in items]
    values = [max(item.value, 1e-9) for item in items]
    taken = set(best_subset(values, costs, room - section.opening)) if room > section.opening else set()
    part = Allocation(section)
    for place, item in enumerate(items):
        if place in taken:
            part.taken.append(item)
        else:
            part.left.append((item, f"{costs[place]} tokens are worth more spent on others"))
    return part


def _shrink(part: Allocation, room: int) -> None:
    """Give up the last items as long as the exact count is over: what was added up can be off by a token or two."""
    part.tokens = part.section.measure(part.taken)
    while part.tokens > room:
        part.left.insert(0, (part.taken.pop(), _too_large(part.tokens, room)))
        part.tokens = part.section.measure(part.taken)


def _begin_with_a_question(part: Allocation) -> None:
    """Give up the oldest answers of a dialogue that was cut between them and what they answer."""
    asked = max((place for place, item in enumerate(part.taken) if item.is_question), default=-1)
    answers = (place for place, item in enumerate(part.taken) if item.is_answer and place > asked)
    begin = next(answers, len(part.taken))
    part.left[:0] = [(item, _UNASKED) for item in part.taken[begin:]]
    del part.taken[begin:]
    part.tokens = part.section.measure(part.taken)


def _clip_first(part: Allocation, room: int) -> None:
    """Take the beginning of the first item, since nothing fits as a whole."""
    section, (item, _) = part.section, part.left[0]

    def fits(text: str) -> bool:
        shorter = section.with_text(item, text)
        return shorter is not None and section.measure([shorter]) <= room

    text = _whole_lines(item.text, fits) if _is_summary(item) else clipped(item.text, fits)
    shorter = None if text is None else section.with_text(item, text)
    if shorter is not None:
        shorter.clipped = True
        part.left.pop(0)
        part.taken = [shorter]
        part.tokens = section.measure(part.taken)


def _is_summary(item: Item) -> bool:
    """Return whether the item's sentences were checked as wholes: what is cut off may be their "not" or "unless"."""
    one = item.candidate
    return one is not None and (
        one.type is ContextType.SUMMARY or (one.memory is not None and one.memory.kind == "point")
    )


def _whole_lines(text: str, fits: Callable[[str], bool]) -> str | None:
    lines = text.splitlines()
    while len(lines) > 1:
        lines.pop()
        if fits(beginning := "\n".join([*lines, MARK])):
            return beginning
    return None


_UNASKED: Final = "what it answers does not fit"

TOO_OLD: Final = "older than what fits"


def _too_large(cost: int, room: int) -> str:
    return f"does not fit: {cost} tokens where {room} are left"


MARK: Final = "…"

SHORTEST: Final = 16
"""Characters below which a beginning says nothing any more."""

_WORD: Final = 24
"""Characters given up so as not to cut within a word."""


def clipped(text: str, fits: Callable[[str], bool]) -> str | None:
    """Return about the longest beginning of ``text``, with a mark, that ``fits``; None when not even a short one does.

    Gallops, then halves the range down to 1/64 of the length, so that a long text is never counted as a whole.
    """
    low = SHORTEST
    if len(text) <= low or not fits(shortened(text, low)):
        return None
    high = low
    while high < len(text):
        high = min(2 * low, len(text))
        if not fits(shortened(text, high)):
            break
        low = high
    while high - low > max(4, low // 64):
        middle = (low + high) // 2
        if fits(shortened(text, middle)):
            low = middle
        else:
            high = middle
    return shortened(text, low)


def shortened(text: str, length: int) -> str:
    """Return at most ``length`` characters of ``text`` and the mark, cut between words where there are any."""
    if length >= len(text):
        return text + MARK
    space = text.rfind(" ", max(1, length - _WORD), length + 1)
    return text[: space if space > 0 else length].rstrip() + MARK


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
