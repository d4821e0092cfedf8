"""Fitting: what of a selection the token limit has room for, so that nothing is said twice. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from context_builder.assembly.budget import TOO_OLD, Allocation, Outcome, Receipt, TokenBudget, receipt, receipts_of
from context_builder.assembly.candidate import ContextType
from context_builder.assembly.govern import RedactionPolicy
from context_builder.assembly.section import SECTION_NAMES, ChatMessage, Item, MessageTokenCounter, plain, section_of
from context_builder.assembly.select import Selection
from context_builder.quoting import quoted_message, repeated
from context_builder.spoken_dates import undated

_IN_HISTORY: Final = "already in the history"
_IN_MEMORY: Final = "already in the memory"
_FEWEST: Final = 20
"""Characters of a point's words from which on a text that has them is known to tell the point."""


@dataclass(slots=True)
class Fitted:
    """What of a selection fits: the allocation of each section, in the order in which they were filled."""

    selection: Selection
    limit: int
    history: History
    allocations: dict[ContextType, Allocation] = field(default_factory=dict)
    duplicates: list[Receipt] = field(default_factory=list)
    """Receipts of what another section tells already."""

    def taken(self, kind: ContextType) -> Sequence[Item]:
        """Return the items of a section that are in the prompt, in order of precedence."""
        return self.allocations[kind].taken if kind in self.allocations else ()

    @property
    def memories(self) -> int:
        """Return how many memories are in the prompt."""
        return len(self.taken(ContextType.SEMANTIC))

    @property
    def tokens(self) -> int:
        """Return the tokens of all sections together."""
        return sum(part.tokens for part in self.allocations.values())

    @property
    def refused(self) -> Iterator[Receipt]:
        """Return receipts of candidates that never competed: withheld, too dissimilar, or present elsewhere."""
        yield from self.selection.refused
        yield from self.duplicates

    def receipts(self) -> Iterator[Receipt]:
        """Return the receipt of every candidate and every message of the history."""
        for kind, part in self.allocations.items():
            yield from receipts_of(part)
            if kind is not ContextType.RECENT or not self.selection.draft.history:
                seen = len(part.taken) + len(part.left)
                past = self.selection.items.get(kind, ())[seen:] if part.section.contiguous else ()
                yield from (_receipt(item, kind, TOO_OLD) for item in past)
        yield from self.refused
        yield from self.history.receipts()

    def offered_tokens(self, counter: MessageTokenCounter, total: int) -> tuple[int, int]:
        """Return the tokens of all that competed for a prompt of ``total`` tokens, as given and as redacted.

        Messages that are long past are counted as they were given: nobody redacted them. Takes as long as counting
        the whole history does, so it is not for where a turn waits.
        """
        left = sum(part.section.cost(item) for part in self.allocations.values() for item, _ in part.left)
        redacted = total + left + sum(map(counter.message, self.history.unseen))
        masked = sum(counter.text(before) - counter.text(after) for before, after in self.selection.masked)
        spoken = sum(counter.message(before) - counter.message(after) for before, after in self.history.masked)
        return redacted + masked + spoken, redacted

    def without_duplicates(self, kind: ContextType, present_texts: Mapping[str, str]) -> list[Item]:
        """Return a section's items that neither an earlier section nor ``present_texts`` contains wholly.

        The others get a receipt in ``duplicates`` that says where they are.
        """
        items = self.selection.items.get(kind, ())
        if kind is self.selection.draft.keeps_duplicates:
            return list(items)
        present: dict[str, str] = {}
        for other, part in self.allocations.items():
            whole = [item for item in part.taken if not (item.clipped or item.summarised)]
            if other is not ContextType.RECENT:
                for item, wordings in zip(whole, _wordings(whole), strict=True):
                    present |= dict.fromkeys((item.id, *wordings), f"already in the {part.section.name}")
        words = present_texts if kind in (ContextType.SEMANTIC, ContextType.SUMMARY) else {}
        taken = [item for item in self.taken(ContextType.SEMANTIC) if not (item.clipped or item.summarised)]
        memories = {text for wordings in _wordings(taken) for text in wordings}
        left = []
        for item, wordings in zip(items, _wordings(items), strict=True):
            why = next(filter(None, (*map(present.get, (item.id, *wordings)), *map(words.get, wordings))), None)
            if why is None and (known := _words_of_point(item)):
                why = words.get(known) or (_IN_MEMORY if _is_told(known, memories, _holders(item)) else None)
            if why is None:
                left.append(item)
            else:
                self.duplicates.append(_receipt(item, kind, why))
        return left

    def history_texts(self) -> set[str]:
        """Return the texts of the history's items, and the contents of their messages."""
        kept = [item for item in self.taken(ContextType.RECENT) if not item.clipped]
        spoken = [message for item in kept if item.answers for message in (item.message or {}, *item.answers)]
        contents = [message.get("content") for message in spoken]
        contents += [item.candidate.text for item in kept if item.candidate]
        return {item.text.strip() for item in kept} | {content.strip() for content in contents if type(content) is str}


def fit(selection: Selection, limit: int, counter: MessageTokenCounter, redaction: RedactionPolicy) -> Fitted:
    """Return the selection within ``limit`` tokens, filled section by section in the draft's order.

    The history goes through ``redaction`` as far as it is looked at. What an earlier section tells is left out of a
    later one, once it is known to be there. A memory or a point that the history tells too makes room; should the
    history then have no room for it after all, it comes back for good. Raises
    :class:`~context_builder.errors.TokenLimitExceeded` when the required messages are over.
    """
    present_texts = dict(selection.draft.present_texts)
    summary = selection.items.get(ContextType.SUMMARY, ())
    holders = {known: _holders(item) for item in summary if (known := _words_of_point(item))}
    lost: set[str] = set()
    while True:
        fitted = _once(selection, limit, present_texts, counter, redaction)
        memories = fitted.taken(ContextType.SEMANTIC)
        points = {known for item in fitted.taken(ContextType.SUMMARY) if (known := _words_of_point(item))}
        has_removed = len(present_texts) > len(selection.draft.present_texts)
        spoken = fitted.history_texts() if memories or points or has_removed else set()
        asked = [words for words, why in present_texts.items() if why == _IN_HISTORY]
        if gone := {words for words in asked if not _is_told(words, spoken, holders.get(words, ()))}:
            lost |= gone
            present_texts = {words: why for words, why in present_texts.items() if words not in gone}
            continue
        twice = {words for wordings in _wordings(memories) for words in wordings if words in spoken}
        twice |= {known for known in points if _is_told(known, spoken, holders[known])}
        if twice := twice - lost:
            present_texts |= dict.fromkeys(twice, _IN_HISTORY)
        else:
            return fitted


def _once(
    selection: Selection,
    limit: int,
    present_texts: Mapping[str, str],
    counter: MessageTokenCounter,
    redaction: RedactionPolicy,
) -> Fitted:
    draft = selection.draft
    budget = TokenBudget(counter.prompt(draft.required), limit, draft.config.choose)
    fitted = Fitted(selection, limit, History(draft.history, redaction))
    for kind in draft.order:
        dialogue = kind is ContextType.RECENT and draft.history
        items = fitted.history if dialogue else fitted.without_duplicates(kind, present_texts)
        fitted.allocations[kind] = budget.fill(section_of(kind, items, counter))
    return fitted


def _receipt(item: Item, kind: ContextType, reason: str) -> Receipt:
    return receipt(item.id, item.candidate, SECTION_NAMES[kind], Outcome.DROPPED, reason)


def _words_of_point(item: Item) -> str:
    """Return the words of a summary's point, without heading and speaker; empty where they are too few to go by."""
    words = str(item.candidate.metadata.get("words", "")).strip() if item.candidate else ""
    return words if len(words) >= _FEWEST and item.text.endswith(words) else ""


def _holders(item: Item) -> tuple[str, ...]:
    """Return who said a point that stands as it was said: the names before its words, behind its heading."""
    before = item.text.removesuffix(_words_of_point(item)).removesuffix(": ")
    return tuple(before.rpartition(": ")[2].split(", ")) if before else ()


def _is_told(words: str, texts: Collection[str], holders: Sequence[str]) -> bool:
    """Return whether one of the ``texts`` is just these words, or has them as a sentence that a holder of them says.

    Somebody else may quote a point in order to deny it.
    """
    if words in texts:
        return True
    said = (text.removeprefix(f"{name}: ") for text in texts for name in holders if text.startswith(f"{name}: "))
    return any(words in text and _has_sentence(text, words) and repeated(text) != words for text in said)


def _has_sentence(text: str, words: str) -> bool:
    return re.search(rf"(?:^|[.!?…] +){re.escape(words)}(?= |$)", text) is not None


def _wordings(items: Sequence[Item]) -> list[tuple[str, ...]]:
    """Return the ways another section may word each item: with its speaker before it or without, and without dates."""
    speakers = [item.candidate.speaker if item.candidate else None for item in items]
    dated = [item.text.strip() for item in items]
    found: list[tuple[str, ...]] = [()] * len(items)
    for texts in (dated, [text.strip() for text in map(undated, dated)]):
        quoted = map(quoted_message, speakers, texts)
        for place, (speaker, text, message) in enumerate(zip(speakers, texts, quoted, strict=True)):
            found[place] += (text, f"{speaker}: {text}", message.strip()) if speaker else (text,)
    return found


HISTORY: Final = "history"

_ANSWERS: Final = frozenset({"tool", "function"})
"""Roles of a tool's answer, which chat endpoints take directly after the message that called it and nowhere else."""

_CALLS: Final = ("tool_calls", "function_call")


class History:
    """The history as items, newest first, each redacted only when it is considered: old messages cost nothing.

    A message that calls tools is one item with their answers. Chat endpoints take neither without the other: an
    answer whose call is not there, and a call whose answers are not all there, are passed over, with a receipt.
    ``masked`` are the messages looked at that redaction changed, before and after.
    """

    def __init__(self, messages: Sequence[ChatMessage], policy: RedactionPolicy) -> None:
        self._messages = messages
        self._policy = policy
        self.masked: list[tuple[ChatMessage, ChatMessage]] = []
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

    def before(self, kept: int) -> Sequence[ChatMessage]:
        """Return the messages older than the newest ``kept`` items."""
        return self._messages[: self._begins[kept - 1]] if kept else self._messages

    @property
    def unseen(self) -> Sequence[ChatMessage]:
        """Return the oldest messages, which were never considered."""
        return self._messages[: self._seen_from]

    def receipts(self) -> Iterator[Receipt]:
        """Return the receipts of messages that never became items: those that miss another, then the oldest, newest
        first.
        """
        yield from self._refused
        for place in range(self._seen_from - 1, -1, -1):
            yield Receipt(_name(place), HISTORY, Outcome.DROPPED, TOO_OLD)

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


def _missing(messages: Sequence[ChatMessage], begin: int, end: int) -> str:
    """Return what a chat endpoint would miss: the call of an answer, or the answer of a tool called by an id."""
    first = messages[begin]
    if first.get("role") in _ANSWERS:
        return "what it answers"
    if not isinstance(calls := first.get("tool_calls"), list):
        return ""
    answered = [answer.get("tool_call_id") for answer in messages[begin + 1 : end]]
    ids = (one.get("id") for one in calls if isinstance(one, Mapping))
    return "" if all(one in answered for one in ids if isinstance(one, str)) else "what answers it"


def _text(message: ChatMessage) -> str:
    content = message["content"]
    return content if type(content) is str else plain(content)
