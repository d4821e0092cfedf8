"""How candidates read in a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from context_builder.assembly.budget.allocation import Allocation
from context_builder.assembly.budget.message_tokens import Message, MessageTokenCounter
from context_builder.assembly.budget.section import Block, Dialogue, Item, Section, listed, numbered
from context_builder.assembly.candidate import ContextType
from context_builder.quoting import quoted_line, quoted_lines

PRIORITY: Final = (
    ContextType.RECENT,
    ContextType.SUMMARY,
    ContextType.SEMANTIC,
    ContextType.USER_PREFERENCES,
)
"""What is kept first, after the system message."""

_READING_ORDER: Final = (
    ContextType.USER_PREFERENCES,
    ContextType.SUMMARY,
    ContextType.SEMANTIC,
    ContextType.RECENT,
)

_BLOCKS: Final = {
    ContextType.SUMMARY: ("summary", "Conversation so far:", listed),
    ContextType.SEMANTIC: ("memory", "Relevant memory:", numbered),
    ContextType.USER_PREFERENCES: ("preferences", "User preferences:", listed),
}


class ContextFormatter:
    """Turns items into sections that compete for tokens, and what was taken of them into messages and lines."""

    def __init__(self, tally: MessageTokenCounter) -> None:
        self._tally = tally

    def sections(self, items: Mapping[ContextType, Sequence[Item]]) -> list[Section]:
        """A section a type that has items, in the order in which they are kept."""
        return [self._section(kind, items[kind]) for kind in PRIORITY if items.get(kind)]

    def messages(self, system: str | None, parts: Mapping[str, Allocation]) -> list[Message]:
        """The chat messages: the system message, what is known, the conversation."""
        messages: list[Message] = [{"role": "system", "content": system}] if system else []
        for kind in _READING_ORDER:
            if part := parts.get(name_of(kind)):
                messages += part.section.messages(part.taken)
        return messages

    def history(self, parts: Mapping[str, Allocation]) -> list[str]:
        """The conversation in lines, oldest first."""
        part = parts.get(name_of(ContextType.RECENT))
        return [line(item) for item in reversed(part.taken)] if part else []

    def block(self, kind: ContextType, parts: Mapping[str, Allocation]) -> str | None:
        """The text of one block, without its heading."""
        part = parts.get(name_of(kind))
        messages = part.section.messages(part.taken) if part else []
        return str(messages[0]["content"]).partition("\n")[2] if messages else None

    def _section(self, kind: ContextType, items: Sequence[Item]) -> Section:
        if kind is ContextType.RECENT:
            return Dialogue(kind.value, items, self._tally)
        name, heading, entry = _BLOCKS[kind]
        return Block(name, heading, items, self._tally, entry=entry, backwards=kind is ContextType.SUMMARY)


def name_of(kind: ContextType) -> str:
    """The name of a type's section."""
    return _BLOCKS[kind][0] if kind in _BLOCKS else kind.value


def line(item: Item) -> str:
    """A message as a line of text."""
    message = item.message or {}
    speaker = item.candidate.speaker if item.candidate else None
    content = quoted_lines(str(message["content"]))
    return content if speaker else f"{quoted_line(message['role'])}: {content}"
