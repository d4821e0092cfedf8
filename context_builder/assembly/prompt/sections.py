"""The sections of a prompt: their names, their headings, and how their items read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from context_builder.assembly.budget.message_tokens import MessageTokenCounter
from context_builder.assembly.budget.section import Block, Dialogue, Item, Section, listed, numbered
from context_builder.assembly.candidate import ContextType


class _Style(NamedTuple):
    name: str
    heading: str
    entry: Callable[[int, Item], str]
    backwards: bool = False


_BLOCKS: Final = {
    ContextType.USER_PREFERENCES: _Style("preferences", "User preferences:", listed),
    ContextType.SUMMARY: _Style("summary", "Conversation so far:", listed, backwards=True),
    ContextType.SEMANTIC: _Style("memory", "Relevant memory:", numbered),
}

_NAMES: Final = {kind: style.name for kind, style in _BLOCKS.items()} | {ContextType.RECENT: "history"}


def name_of(kind: ContextType) -> str:
    """Return the name of a type's section in receipts."""
    return _NAMES.get(kind, kind.value)


def section_of(kind: ContextType, items: Iterable[Item], counter: MessageTokenCounter) -> Section:
    """Return the section of a type with these items, in order of precedence."""
    if kind is ContextType.RECENT:
        return Dialogue(name_of(kind), items, counter)
    style = _BLOCKS[kind]
    return Block(style.name, style.heading, list(items), counter, entry=style.entry, backwards=style.backwards)
