"""A turn's prompt, and how it came about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from context_builder.assembly.receipt import Receipt, added
from context_builder.assembly.tally import Message


@dataclass(frozen=True)
class BuiltContext:
    """Messages that fit the budget.

    ``token_counts`` has ``system``, ``history``, ``snippets`` and ``user``, the tokens of those contents (of the
    whole memory block, for the snippets), ``summary`` when the turn has one, ``overhead``, what the chat format adds,
    and ``total``, their sum: the exact count of ``messages``. ``snippets`` are the memories in the prompt, best first,
    each with ``id``, ``text``, ``score``, ``base_score``, ``recency`` and ``metadata``; ``history`` is what was kept
    of it.
    """

    system_prompt: str
    messages: list[Message]
    token_counts: dict[str, int]
    debug: dict[str, Any]
    snippets: list[dict[str, Any]]
    history: list[Message]
    write_receipts: Callable[[], list[Receipt]] = field(default=list, repr=False, compare=False)
    fit_again: Callable[[int], BuiltContext] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def receipts(self) -> list[Receipt]:
        """What became of every memory and every message of the history; written when first asked for."""
        return self.write_receipts()

    def added_by(self, tokens: int) -> list[Receipt]:
        """What a limit larger by ``tokens`` would add, from the same candidates: no memory is asked again."""
        larger = self.fit_again(tokens).receipts if self.fit_again else ()
        return added(self.receipts, larger)
