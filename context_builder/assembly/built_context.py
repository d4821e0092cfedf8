"""A turn's prompt, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from context_builder.assembly.receipt import Receipt
from context_builder.assembly.tally import Message


@dataclass(frozen=True, slots=True)
class BuiltContext:
    """Messages that fit the budget.

    ``token_counts`` has ``system``, ``history``, ``snippets`` and ``user``, the tokens of those contents (of the
    whole memory block, for the snippets), ``overhead``, what the chat format adds, and ``total``, their sum: the
    exact count of ``messages``. ``snippets`` are the memories in the prompt, best first, each with ``id``, ``text``,
    ``score``, ``base_score``, ``recency`` and ``metadata``; ``history`` is what was kept of it. ``receipts`` say what
    became of every memory and message.
    """

    system_prompt: str
    messages: list[Message]
    token_counts: dict[str, int]
    debug: dict[str, Any]
    snippets: list[dict[str, Any]]
    history: list[Message]
    receipts: list[Receipt]
