"""The allocation chooses the items of a section that fit the token budget, whatever comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from context_builder.assembly.budget.section import Item, Section
from context_builder.assembly.budget.truncate import MARK, clipped
from context_builder.assembly.candidate import ContextType
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


Choose = Literal["greedy", "knapsack"]


@dataclass(slots=True)
class Allocation:
    """Holds the items of a section that are in the prompt, in order of precedence, and those that are not, and why."""

    section: Section
    taken: list[Item] = field(default_factory=list)
    left: list[tuple[Item, str]] = field(default_factory=list)
    tokens: int = 0


class TokenBudget:
    """Holds what ``required`` tokens leave of ``limit``, and fills it section by section.

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


def fit(sections: Sequence[Section], *, required: int, limit: int, choose: Choose = "greedy") -> dict[str, Allocation]:
    """Fill what ``required`` tokens leave of ``limit``, section by section in the order given.

    The tokens of all parts and the required ones never exceed ``limit``. Raises
    :class:`~context_builder.errors.TokenLimitExceeded` when the required ones alone do.
    """
    room = TokenBudget(required, limit, choose)
    return {section.name: room.fill(section) for section in sections}


def _fill(section: Section, room: int, choose: Choose) -> Allocation:
    if section.contiguous:
        part = _newest(section, room)
    elif choose == "knapsack":
        part = _most_valuable(section, room)
    else:
        part = _greedy(section, room)
    _shrink(part, room)
    if not part.taken and part.left:
        _clip_first(part, room)
    return part


def _newest(section: Section, room: int) -> Allocation:
    part = Allocation(section)
    cost_of, take = section.cost, part.taken.append
    for item in section.items:
        cost = cost_of(item)
        if cost > room:
            part.left.append((item, _too_large(cost, room)))
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


def _too_large(cost: int, room: int) -> str:
    return f"does not fit: {cost} tokens where {room} are left"
