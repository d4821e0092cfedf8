"""The formatter writes the items that fit as messages, lines and blocks."""

from __future__ import annotations

from typing import Final

from context_builder.assembly.budget.message_tokens import Message
from context_builder.assembly.budget.section import Item
from context_builder.assembly.candidate import ContextType
from context_builder.assembly.prompt.fitting import Fitted
from context_builder.quoting import quoted_line, quoted_lines

_READING_ORDER: Final = (
    ContextType.USER_PREFERENCES,
    ContextType.SUMMARY,
    ContextType.SEMANTIC,
    ContextType.RECENT,
)


class ContextFormatter:
    """Formats the parts of a context as messages and lines."""

    def messages(self, system: str | None, fitted: Fitted) -> list[Message]:
        """Return the chat messages: the system message, what is known, the conversation."""
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        for kind in _READING_ORDER:
            if part := fitted.allocations.get(kind):
                messages += part.section.messages(part.taken)
        return messages

    def history(self, fitted: Fitted) -> list[str]:
        """Return the conversation in lines, oldest first."""
        return [line(item) for item in reversed(fitted.taken(ContextType.RECENT))]

    def block(self, kind: ContextType, fitted: Fitted) -> str | None:
        """Return the text of one block, without its heading."""
        part = fitted.allocations.get(kind)
        messages = part.section.messages(part.taken) if part else []
        return str(messages[0]["content"]).partition("\n")[2] if messages else None


def line(item: Item) -> str:
    """Return a message as a line of text."""
    message = item.message or {}
    speaker = item.candidate.speaker if item.candidate else None
    content = quoted_lines(str(message["content"]))
    return content if speaker else f"{quoted_line(message['role'])}: {content}"
