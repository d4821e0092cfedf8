"""A turn's history as items that are kept or dropped as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from context_builder.assembly.budget.message_tokens import Message, plain
from context_builder.assembly.budget.receipt import Outcome, Receipt
from context_builder.assembly.budget.section import Item
from context_builder.assembly.redaction_policy import RedactionPolicy

HISTORY: Final = "history"

_ANSWERS: Final = frozenset({"tool", "function"})
"""Roles of a tool's answer, which chat endpoints take directly after the message that called it and nowhere else."""

_CALLS: Final = ("tool_calls", "function_call")


class History:
    """Holds the items, newest first, each redacted only when it is considered: old messages cost nothing.

    A message that calls tools is one item with their answers. Chat endpoints take neither without the other: an
    answer whose call is not there, and a call whose answers are not all there, are passed over, with a receipt.
    ``masked`` are the messages looked at that redaction changed, before and after.
    """

    def __init__(self, messages: Sequence[Message], policy: RedactionPolicy) -> None:
        self._messages = messages
        self._policy = policy
        self.masked: list[tuple[Message, Message]] = []
        self._begins: list[int] = []
        self._seen_from = len(messages)
        self._refused: list[Receipt] = []

    def __iter__(self) -> Iterator[Item]:
        messages, is_free, end = self._messages, self._policy.is_free, len(self._messages)
        while end > 0:
            begin = end - 1
            if len(messages[begin]) > 2 or messages[begin].get("role") in _ANSWERS:
                begin = self._call(begin)
                if missing := _missing(messages, begin, end):
                    dropped = Receipt(_span(begin, end), HISTORY, Outcome.DROPPED, f"{missing} is not there")
                    self._refused.append(dropped)
                    self._seen_from = end = begin
                    continue
            self._begins.append(begin)
            self._seen_from = begin
            if end - begin > 1:
                yield self._exchange(begin, end)
            elif is_free:  # nearly all there are
                yield Item(_name(begin), _text(messages[begin]), 0.0, messages[begin])
            else:
                yield self._redacted(begin)
            end = begin

    def before(self, kept: int) -> Sequence[Message]:
        """Return the messages older than the newest ``kept`` items."""
        return self._messages[: self._begins[kept - 1]] if kept else self._messages

    @property
    def unseen(self) -> Sequence[Message]:
        """Return the oldest messages, which were never considered."""
        return self._messages[: self._seen_from]

    def receipts(self) -> Iterator[Receipt]:
        """Return the receipts of messages that never became items: those that miss another, then the oldest, newest
        first.
        """
        yield from self._refused
        for place in range(self._seen_from - 1, -1, -1):
            yield Receipt(_name(place), HISTORY, Outcome.DROPPED, "older than what fits")

    def _call(self, answer: int) -> int:
        """Return the place of the message whose tool call is answered; the answer's own place when there is none."""
        place = answer
        while place > 0 and self._messages[place].get("role") in _ANSWERS:
            place -= 1
        return place if any(self._messages[place].get(key) for key in _CALLS) else answer

    def _redacted(self, place: int) -> Item:
        message, altered, withheld = self._policy.message(self._messages[place])
        if altered:
            self.masked.append((self._messages[place], message))
        return Item(_name(place), _text(message), 0.0, message, altered=altered, withheld=withheld)

    def _exchange(self, begin: int, end: int) -> Item:
        """Return a call of tools with their answers."""
        given = self._messages[begin:end]
        redacted = [self._policy.message(message) for message in given]
        self.masked += ((before, one.value) for before, one in zip(given, redacted, strict=True) if one.altered)
        call, *answers = (one.value for one in redacted)
        return Item(
            _span(begin, end),
            max(map(_text, (call, *answers)), key=len),
            message=call,
            answers=tuple(answers),
            altered=", ".join(dict.fromkeys(one.altered for one in redacted if one.altered)),
            withheld=any(one.withheld for one in redacted),
        )


def _name(place: int) -> str:
    return f"{HISTORY}-{place}"


def _span(begin: int, end: int) -> str:
    return _name(begin) if end - begin == 1 else f"{_name(begin)}..{end - 1}"


def _missing(messages: Sequence[Message], begin: int, end: int) -> str:
    """Return what a chat endpoint would miss: the call of an answer, or the answer of a tool called by an id."""
    first = messages[begin]
    if first.get("role") in _ANSWERS:
        return "what it answers"
    if not isinstance(calls := first.get("tool_calls"), list):
        return ""
    answered = [answer.get("tool_call_id") for answer in messages[begin + 1 : end]]
    ids = (one.get("id") for one in calls if isinstance(one, Mapping))
    return "" if all(one in answered for one in ids if isinstance(one, str)) else "what answers it"


def _text(message: Message) -> str:
    content = message["content"]
    return content if type(content) is str else plain(content)
