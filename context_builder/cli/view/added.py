"""What a larger budget would add to a prompt or a package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from context_builder.cli.view.palette import plain

if TYPE_CHECKING:
    from context_builder.assembly.budget import Receipt

MOST_NAMED: Final = 10
"""Candidates that are named where more tokens would add many."""


def added_line(added: Sequence[Receipt], tokens: int) -> Text:
    """Return what ``tokens`` more would add."""
    names = [f"{one.id} ({one.tokens:,})" for one in added[:MOST_NAMED]]
    names += [f"{len(added) - MOST_NAMED} others"] if len(added) > MOST_NAMED else []
    return Text(f"{tokens} more tokens would add: {plain(', '.join(names)) or 'nothing'}")
