"""Sections of a prompt: the items that compete for the token budget, as chat messages, and their tokens.

Tokens are counted as OpenAI bills them: each message costs 3 tokens and those of its values, a name 1 more, and the
reply is primed with 3 (OpenAI cookbook, "How to count tokens with tiktoken", ``num_tokens_from_messages``). That is
exact for messages of text; a value that is not text, such as tool calls, is counted as its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import Any, Final, NamedTuple, Protocol

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.quoting import LONGEST_LABEL, RECORD, UNNAMED, quoted_line, quoted_lines

ChatMessage = dict[str, Any]
"""A chat message: ``role``, ``content`` and perhaps ``name`` and others."""

PER_MESSAGE: Final = 3
PER_NAME: Final = 1
REPLY_PRIMING: Final = 3

_CACHED_TEXTS: Final = 8_192
_LONGEST_CACHED: Final = 32_768


class MessageTokenCounter:
    """Counts with any function from a text to its tokens; a text of up to 32,768 characters is counted once."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._count_cached = lru_cache(maxsize=_CACHED_TEXTS)(count)

    def text(self, text: str) -> int:
        """Return the tokens of ``text``."""
        return self._count(text) if len(text) > _LONGEST_CACHED else self._count_cached(text)

    def message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message within a prompt."""
        if len(message) == 2 and type(content := message.get("content")) is str and type(message.get("role")) is str:
            return PER_MESSAGE + self._count_cached(message["role"]) + self.text(content)  # nearly all there are
        tokens = PER_MESSAGE
        for key, value in message.items():
            tokens += self.text(value if type(value) is str else plain(value))
            if key == "name":
                tokens += PER_NAME
        return tokens

    def contents(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Return the tokens of what the messages say, without what the chat format adds."""
        return sum(self.text(plain(one["content"])) for one in messages)

    def prompt(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Return the tokens of a whole prompt."""
        return REPLY_PRIMING + sum(map(self.message, messages))


def plain(value: object) -> str:
    """Return a message's value as the text that is counted for it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


@dataclass(slots=True)
class Item:
    """One thing that a section includes or leaves out as a whole.

    ``value`` is what a knapsack adds up. An item of a dialogue has its ``message`` and, where that calls tools, their
    ``answers``; its text is then the longest of theirs. One of a block has its ``candidate``.
    ``altered`` says what redaction did to it, if anything, and ``withheld`` whether a mark stands for some of it;
    ``tokens`` is what it costs, once that was asked. ``projections`` are shorter texts that may stand for it, the
    longest first, and it is ``summarised`` where one does.
    """

    id: str
    text: str
    value: float = 0.0
    message: ChatMessage | None = None
    answers: tuple[ChatMessage, ...] = ()
    candidate: Candidate | None = None
    clipped: bool = False
    altered: str = ""
    withheld: bool = False
    tokens: int = 0
    projections: tuple[str, ...] = ()
    summarised: bool = False

    @property
    def is_question(self) -> bool:
        """Return whether it is something that an assistant may answer."""
        return self.message is not None and self.message.get("role") == "user"

    @property
    def is_answer(self) -> bool:
        """Return whether an assistant says it, to the last that was said to it."""
        return self.message is not None and self.message.get("role") == "assistant"


class Section(Protocol):
    """A part of a prompt: items in order of precedence, and what they cost.

    Sections are messages of their own, so what they cost adds up exactly to what the prompt costs.
    """

    @property
    def name(self) -> str: ...

    @property
    def contiguous(self) -> bool:
        """Return whether nothing may follow an item that does not fit, as in a history without gaps."""
        ...

    @property
    def items(self) -> Iterable[Item]: ...

    @property
    def opening(self) -> int:
        """Return the tokens that the first item costs beside its own."""
        ...

    def cost(self, item: Item) -> int:
        """Return about how many tokens an item adds."""
        ...

    def measure(self, chosen: Sequence[Item]) -> int:
        """Return the exact tokens of the section with these items; 0 without any."""
        ...

    def messages(self, chosen: Sequence[Item]) -> list[ChatMessage]:
        """Return the section as chat messages; none without items."""
        ...

    def with_text(self, item: Item, text: str) -> Item | None:
        """Return the item with another text, or None when it consists of more than text."""
        ...


class Dialogue:
    """A section of which each item is messages of its own: the newest take precedence, the oldest stand first."""

    contiguous = True
    opening = 0

    def __init__(self, name: str, items: Iterable[Item], counter: MessageTokenCounter) -> None:
        self.name = name
        self.items = items
        self._counter = counter

    def cost(self, item: Item) -> int:
        if not item.tokens:
            item.tokens = self._counter.message(item.message or {})
            if item.answers:
                item.tokens += sum(map(self._counter.message, item.answers))
        return item.tokens

    def measure(self, chosen: Sequence[Item]) -> int:
        return sum([item.tokens or self.cost(item) for item in chosen])

    def messages(self, chosen: Sequence[Item]) -> list[ChatMessage]:
        return [dict(message) for item in reversed(chosen) for message in (item.message or {}, *item.answers)]

    def with_text(self, item: Item, text: str) -> Item | None:
        messages = [item.message or {}, *item.answers]
        place = next((place for place, one in enumerate(messages) if one.get("content") == item.text), None)
        if place is None:
            return None
        messages[place] = {**messages[place], "content": text}
        return replace(item, text=text, message=messages[0], answers=tuple(messages[1:]), tokens=0)


class Block:
    """Renders one system message that lists items under a heading, which says that they are no instructions.

    ``bodies`` returns items as they are quoted, ``numbered`` or behind dashes; ``backwards`` puts the first of them
    last.
    """

    contiguous = False

    def __init__(
        self,
        name: str,
        heading: str,
        items: Sequence[Item],
        counter: MessageTokenCounter,
        *,
        bodies: Callable[[Sequence[Item]], list[str]],
        numbered: bool = False,
        backwards: bool = False,
    ) -> None:
        self.name = name
        self.items = items
        self._heading = f"{heading} {RECORD}"
        self._counter = counter
        self._bodies = dict(zip([(one.id, one.text) for one in items], bodies(items), strict=True))
        self._bodies_of = bodies
        self._numbered = numbered
        self._backwards = backwards

    @property
    def opening(self) -> int:
        return self._counter.message(self._message(self._heading))

    def cost(self, item: Item) -> int:
        if not item.tokens:
            item.tokens = self._counter.text(f"\n{self._entry(1, item)}")
        return item.tokens

    def measure(self, chosen: Sequence[Item]) -> int:
        return sum(map(self._counter.message, self.messages(chosen)))

    def messages(self, chosen: Sequence[Item]) -> list[ChatMessage]:
        if not chosen:
            return []
        shown = reversed(chosen) if self._backwards else chosen
        entries = (self._entry(number, item) for number, item in enumerate(shown, 1))
        return [self._message("\n".join((self._heading, *entries)))]

    def with_text(self, item: Item, text: str) -> Item | None:
        return replace(item, text=text, tokens=0)

    def _entry(self, number: int, item: Item) -> str:
        if (body := self._bodies.get((item.id, item.text))) is None:  # it was clipped
            (body,) = self._bodies_of([item])
            self._bodies[item.id, item.text] = body
        return f"[{number}] {body}" if self._numbered else f"- {body}"

    def _message(self, content: str) -> ChatMessage:
        return {"role": "system", "name": self.name, "content": content}


def labelled(items: Sequence[Item]) -> list[str]:
    """Return each item's text with its source: ``(label)``, and the text below, indented."""
    labels = map(quoted_line, [one.candidate.label if one.candidate else "" for one in items], repeat(LONGEST_LABEL))
    return [f"({label or UNNAMED})\n {text}" for label, text in zip(labels, plain_texts(items), strict=True)]


def plain_texts(items: Sequence[Item]) -> list[str]:
    """Return each item's text."""
    return [*map(quoted_lines, [one.text for one in items])]


class _Style(NamedTuple):
    name: str
    heading: str
    bodies: Callable[[Sequence[Item]], list[str]]
    numbered: bool = False
    backwards: bool = False


_BLOCKS: Final = {
    ContextType.USER_PREFERENCES: _Style("preferences", "User preferences:", plain_texts),
    ContextType.SUMMARY: _Style("summary", "Conversation so far:", plain_texts, backwards=True),
    ContextType.SEMANTIC: _Style("memory", "Relevant memory:", labelled, numbered=True),
}

SECTION_NAMES: Final = (
    {kind: kind.value for kind in ContextType}
    | {kind: style.name for kind, style in _BLOCKS.items()}
    | {ContextType.RECENT: "history"}
)
"""The name of each type's section in receipts."""


def section_of(kind: ContextType, items: Iterable[Item], counter: MessageTokenCounter) -> Section:
    """Return the section of a type with these items, in order of precedence."""
    if kind is ContextType.RECENT:
        return Dialogue(SECTION_NAMES[kind], items, counter)
    style = _BLOCKS[kind]
    return Block(
        style.name,
        style.heading,
        list(items),
        counter,
        bodies=style.bodies,
        numbered=style.numbered,
        backwards=style.backwards,
    )
