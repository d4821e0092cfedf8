"""A point that quotes a message is held against it again here when that says something else than before.

It is kept where its quotes are still said, rewritten where the words that changed stand in it, and the sentence then
passes the check of its quotes; otherwise it is retracted. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, Quote
from context_builder.analysis.evidence import EvidenceCheck, Findings
from context_builder.analysis.evidence.names import MOST_NAMES, names_in
from context_builder.quoting import quoted_line, quoted_name
from context_builder.session.summary.citation import CitedMessage
from context_builder.session.summary.point import Point, PointQuote

_WORD: Final = re.compile(r"\w+(?:['’.,-]\w+)*")

ALIKE: Final = 0.5
"""Part of the words of both texts that are the same, below which a message is said to be another one altogether."""

_LONG: Final = 6
"""Letters of a word that says something: function words are short in every language with an alphabet."""

_SEVERAL: Final = 2
"""Words of a message that a point has from it and not by chance."""

_NEAR: Final = 8
"""Messages before and after one that may be about it."""

_NOTHING: Final[Mapping[int, Set[str]]] = {}

MOST_COMPARED: Final = 4_000
"""Characters of a message that are compared word by word, which takes milliseconds."""


@dataclass(frozen=True, slots=True)
class CitedChange:
    """A cited message as it was and as it is now; ``words_differ`` is false where only the speaker does."""

    old: CitedMessage
    new: CitedMessage
    words_differ: bool


def revised(point: Point, change: CitedChange, sources: Mapping[int, CitedMessage]) -> Point | None:
    """Return the point after a message was corrected; None if it is retracted.

    ``sources`` are the messages that it quotes, by id.
    """
    changes, old, new = _Changes(change), change.old, change.new
    if changes.are_other_words:
        return None
    evidence = tuple(one for quote in point.evidence if (one := changes.quote(quote)) is not None)
    if not evidence:
        return None
    renamed = changes.renames and not any(quote.speaker == changes.old_name for quote in evidence)
    text = changes.sentence(point.text)
    by = point.by
    if renamed:
        by = tuple(dict.fromkeys(changes.new_name if name == changes.old_name else name for name in by))
        text = with_name(text, changes.old_name, changes.new_name)
    candidate = replace(point, text=quoted_line(text), by=by, evidence=evidence)
    if not changes.words_differ or _is_said(candidate.text, new):
        return candidate
    before = _check(point, {**sources, old.id: old})
    after = _check(candidate, {**sources, new.id: new})
    is_doubtful = after.rejected not in (None, before.rejected) or set(after.doubts) - set(before.doubts)
    return None if is_doubtful else candidate


def with_name(text: str, old: str, new: str) -> str:
    """Return the text with another name wherever the old one stands as a whole."""
    return renamer({old: new})(text)


def renamer(names: Mapping[str, str]) -> Callable[[str], str]:
    """Return what puts other names, by the old ones, wherever these stand as a whole in a text."""
    longest_first = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
    return lambda text: pattern.sub(lambda found: names[found[0]], text)


def words_that_tell(text: str) -> frozenset[str]:
    """Return the names in a text, and what has digits, by which a sentence is known to tell of it."""
    named = (word for name in islice(names_in(text), MOST_NAMES) for word in _plain(_WORD.finditer(name.word)))
    return frozenset((*named, *(word for word in _plain(_WORD.finditer(text)) if any(map(str.isdigit, word)))))


def long_words(text: str) -> frozenset[str]:
    """Return the words of a text that are long enough to say something."""
    return frozenset(word for word in _plain(_WORD.finditer(text)) if len(word) >= _LONG)


def tells(
    point: Point, words: Set[str], sources: Mapping[int, CitedMessage], beside: Mapping[int, Set[str]] = _NOTHING
) -> bool:
    """Return whether a point has one of the words, though nothing that it rests on has; or several of the long words of
    a message that was said beside one that it rests on, as the answer to what was asked has. ``beside`` has these words
    by the message's id.
    """
    own = [sources[entry_id].text for entry_id in point.ids if entry_id in sources]
    own += [text for quote in point.evidence for text in (quote.text, quote.speaker)]
    said = {word for text in own for word in _plain(_WORD.finditer(text))}
    added = {word for word in _plain(_WORD.finditer(point.text)) if word not in said}
    return not added.isdisjoint(words) or any(
        len(added & near) >= _SEVERAL and any(abs(entry_id - one) <= _NEAR for one in point.ids)
        for entry_id, near in beside.items()
    )


class _Changes:
    """Knows how a message differs from what it was."""

    def __init__(self, change: CitedChange) -> None:
        old, new = change.old, change.new
        self.old_name, self.new_name = quoted_name(old.speaker), quoted_name(new.speaker)
        self.renames = self.old_name != self.new_name
        self.words_differ = change.words_differ
        self._id = old.id
        self._old, self._new = quoted_line(old.text[:MOST_COMPARED]), quoted_line(new.text[:MOST_COMPARED])
        self._old_words, self._new_words = [*_WORD.finditer(self._old)], [*_WORD.finditer(self._new)]
        matcher = SequenceMatcher(None, _plain(self._old_words), _plain(self._new_words), autojunk=False)
        self._codes = matcher.get_opcodes() if self.words_differ else []
        self.are_other_words = self.words_differ and matcher.ratio() < ALIKE

    def quote(self, quote: PointQuote) -> PointQuote | None:
        """Return the quote as the message now has it; None where nothing of it is left."""
        if quote.id != self._id:
            return quote
        text = self._now(quote.text) if self.words_differ else quote.text
        return replace(quote, text=text, speaker=self.new_name) if text else None

    def sentence(self, text: str) -> str:
        """Return a sentence with the words that changed as they are now, where they stand in it."""
        if not self.words_differ:
            return text
        if (now := self._now(text)) is not None:
            return now
        for before, after in self._replaced():
            found = re.search(rf"(?<!\w){re.escape(before)}(?!\w)", text, re.IGNORECASE)
            if found:
                text = text[: found.start()] + after + text[found.end() :]
        return text

    def _now(self, said: str) -> str | None:
        """Return what stands now where ``said`` stood in the message; None where it did not."""
        words = _plain(_WORD.finditer(said))
        old = _plain(self._old_words)
        starts = (place for place in range(len(old) - len(words) + 1) if old[place : place + len(words)] == words)
        start = next(starts, None) if words else None
        if start is None:
            return None
        first, last = self._first(start), self._last(start + len(words))
        if first >= last:
            return ""
        ends_a_sentence = said.rstrip()[-1:] in ".!?…"
        end = self._new_words[last - 1].end()
        sign = self._new[end : end + 1] if ends_a_sentence and self._new[end : end + 1] in ".!?…" else ""
        return self._new[self._new_words[first].start() : end] + sign

    def _first(self, place: int) -> int:
        """Return where the word that begins at ``place`` of the old text begins in the new one."""
        tag, start, _, new_start, _ = next(code for code in self._codes if code[1] <= place < code[2])
        return new_start + place - start if tag == "equal" else new_start

    def _last(self, place: int) -> int:
        """Return where the word that ends at ``place`` of the old text ends in the new one."""
        tag, start, _, new_start, new_end = next(code for code in self._codes if code[1] < place <= code[2])
        return new_start + place - start if tag == "equal" else new_end

    def _replaced(self) -> Iterator[tuple[str, str]]:
        """Yield what stood in the old text and stands otherwise in the new one."""
        for tag, old_start, old_end, new_start, new_end in self._codes:
            if tag in ("replace", "delete"):
                before = self._old[self._old_words[old_start].start() : self._old_words[old_end - 1].end()]
                after = ""
                if tag == "replace":
                    after = self._new[self._new_words[new_start].start() : self._new_words[new_end - 1].end()]
                yield before, after


def _plain(words: Iterable[re.Match[str]]) -> list[str]:
    return [word[0].casefold() for word in words]


def _is_said(sentence: str, message: CitedMessage) -> bool:
    """Return whether the sentence stands so in the message."""
    return _bare(sentence) in _bare(quoted_line(message.text))


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".!?… ")


def _check(point: Point, sources: Mapping[int, CitedMessage]) -> Findings:
    """Return what is wrong with a point, by the messages that it quotes, as far as they were kept."""
    messages = []
    for entry_id in point.ids:
        quotes = [quote for quote in point.evidence if quote.id == entry_id]
        source = sources.get(entry_id)
        text = "" if source is None else source.text
        if source is None or source.clipped:  # whose rest is not at hand
            text = " ".join([text, *(quote.text for quote in quotes)])
        speaker = quotes[0].speaker if source is None else quoted_name(source.speaker)
        messages.append(AnalystMessage(entry_id, speaker, text))
    evidence = tuple(Quote(quote.id, quote.text) for quote in point.evidence)
    return EvidenceCheck(messages).check(DraftPoint(point.text, evidence, point.kind, point.by))
