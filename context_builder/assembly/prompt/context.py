"""A context put together from strategies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from context_builder.assembly.budget.message_tokens import Message
from context_builder.assembly.budget.receipt import Receipt
from context_builder.quoting import without_tokens


class ModelType(StrEnum):
    """Tells how a model takes its input as one text."""

    PLAIN = "plain"
    CHATML = "chatml"


@dataclass(frozen=True, slots=True)
class ContextMetadata:
    """Tells whose context it is, its size and time; ``total_tokens`` is exact, chat overhead included."""

    user_id: str | None
    conversation_id: str | None
    total_tokens: int
    message_count: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Context:
    """Holds what a model should know, within the token limit as chat ``messages``, as plain text, and as ChatML.

    ChatML takes more room than messages do, so some that ``messages`` hold may not be in it. ``relevant`` are the
    memories found, best first. ``skipped`` names each optional strategy that failed, and why.
    """

    system_message: str | None
    conversation_history: list[str]
    user_preferences: str | None
    metadata: ContextMetadata
    summary: str | None = None
    relevant: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    skipped: tuple[str, ...] = ()
    fit_for: Callable[[ModelType], Context] | None = field(default=None, repr=False, compare=False)

    def copied(self, *, cached: bool = False) -> Context:
        """Return a copy that shares nothing mutable."""
        return replace(
            self,
            conversation_history=list(self.conversation_history),
            relevant=list(self.relevant),
            messages=copy.deepcopy(self.messages),
            receipts=list(self.receipts),
        )

    def format_for_model(self, model: ModelType = ModelType.PLAIN) -> str:
        """Return the whole context as one text, within the token limit.

        Raises :class:`~context_builder.errors.ContextError` when nothing fits as ChatML.
        """
        return (self if self.fit_for is None else self.fit_for(model)).written(model)

    def written(self, model: ModelType) -> str:
        """Return the content of ``messages`` as one text, however long."""
        if model is ModelType.CHATML:
            return "\n".join(f"<|im_start|>{one['role']}\n{self._chatml(one)}<|im_end|>" for one in self.messages)
        parts = (self.format_system(), "\n".join(self.format_history()))
        return "\n\n".join(part for part in parts if part)

    def _chatml(self, message: Message) -> str:
        """Return the content of a message, in which only the application's own may hold tokens of the format."""
        content = str(message["content"])
        return content if content == self.system_message else without_tokens(content)

    def format_history(self) -> list[str]:
        """Return the conversation, a line a message, oldest first."""
        return list(self.conversation_history)

    def format_system(self) -> str | None:
        """Return the system message, then preferences, summary and memories; None without any."""
        known = [str(message["content"]) for message in self.messages if message["role"] == "system"]
        return "\n\n".join(known) or None
