"""Several sections, filled one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from context_builder.assembly.budget import Allocation, Choose, TokenBudget
from context_builder.assembly.section import Section


def fit(sections: Sequence[Section], *, required: int, limit: int, choose: Choose = "greedy") -> dict[str, Allocation]:
    room = TokenBudget(required, limit, choose)
    return {section.name: room.fill(section) for section in sections}
