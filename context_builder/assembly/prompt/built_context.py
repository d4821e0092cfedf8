"""A turn's prompt, and how it came about."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from context_builder.assembly.budget.message_tokens import Message
from context_builder.assembly.budget.receipt import Receipt, added


@dataclass(frozen=True)
class BuiltContext:
    """Holds a turn's messages, which fit the budget.

    ``token_counts`` has ``system``, ``history``, ``snippets`` and ``user``, the tokens of those contents (of the
    whole memory block, for the snippets), ``summary`` and ``preferences`` when the turn has them, ``overhead``, what
    the chat format adds, and ``total``, their sum: the exact count of ``messages``. ``snippets`` are the memories in
    the prompt, best first, each with ``id``, ``text``, ``score``, ``base_score``, ``recency``, ``signals`` (the score
    of each ranking signal by its name) and ``metadata``; ``history`` is what was kept of it.

    ``debug`` tells how it came about:

    ``session_id``:         the turn's, as are
    ``tenant_id``:          whose memories were asked for, and
    ``user_id``:            whom it was for
    ``somabrain_state``:    health of the first memory when it was asked: ``normal``, ``degraded`` or ``down``
    ``memory_states``:      the same of each memory by its name
    ``memory``:             ``ok``, or what was not asked or gave nothing, and why
    ``retrieval_seconds``:  how long the memories took
    ``snippet_ids``:        of the memories in the prompt, best first
    ``snippet_count``:      how many they are
    ``snippet_tokens``:     of their texts alone, without what stands around them
    ``history_count``:      messages of the history in the prompt
    ``history_trimmed``:    messages of the history that are not
    ``total_tokens``:       ``snippet_tokens`` and those of the history's contents: what was chosen, not all of the
                            prompt, of which ``token_counts["total"]`` tells
    ``withheld``:           texts that could not be redacted and were left out or replaced
    ``max_prompt_tokens``:  the limit that was kept
    ``cached``:             true in a context that was built before; absent otherwise
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
        """Return the receipt of every memory and every message of the history, made when first asked for."""
        return self.write_receipts()

    def copied(self, *, cached: bool = False) -> BuiltContext:
        """Return a copy that shares nothing mutable; ``debug`` tells whether it is ``cached``."""
        return replace(
            self,
            messages=copy.deepcopy(self.messages),
            history=copy.deepcopy(self.history),
            snippets=copy.deepcopy(self.snippets),
            token_counts=dict(self.token_counts),
            debug=copy.deepcopy(self.debug) | ({"cached": True} if cached else {}),
        )

    def added_by(self, tokens: int) -> list[Receipt]:
        """Return the receipts of what ``tokens`` more would add, from the same candidates: no memory is asked again."""
        larger = self.fit_again(tokens).receipts if self.fit_again else ()
        return added(self.receipts, larger)
