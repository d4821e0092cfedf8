"""An excerpt shows a source by those of its passages that fit an intent, in their order, and marks what is left out.

Passages that a search found have its score. Others, as those of a text that had to be redacted, are compared with the
intent by their words.

:class:`Filling` chooses the passages of a package: the most valuable ones first, whatever source they are of. A passage
is worth its source's score, and more the more it is like the intent. The more of a source is shown, the less further
passages of it are worth; those beside the best in its section are worth a share of what that is, because they are about
the same thing. Then the best of the sources for which there was no room are shown by their headings and a line of their
best passage, so that whoever reads knows that they are there. What is left at the end is filled with the beginning of a
passage.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from context_builder.assembly.budget import MARK, clipped
from context_builder.assembly.section import Item
from context_builder.knowledge.passages import Passage, passages_of
from context_builder.quoting import quoted_lines

GAP: Final = "[…]"

SIZES: Final = (1_600, 640, 256, 100)
"""Most words of the excerpts that may stand for a pinned source."""

_STEM: Final = 5
"""First letters by which words are taken for the same: a rough stemmer of most languages."""

_PAIRED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
"""Letters of scripts without blanks between words, and Korean's, whose particles have none before them."""

_TOKEN: Final = re.compile(rf"[{_PAIRED}]+|[^\W_{_PAIRED}]{{3,}}")


_LABELS: Final = 3
"""Lines, at most, that are looked at beside a passage's headings, because labels may stand before these."""


class Part(NamedTuple):
    """A passage, its ``place`` among those of its source, and how much it is like the intent (0..1)."""

    place: int
    passage: Passage
    likeness: float


def found_parts(found: Sequence[Part], text: str | None) -> list[Part]:
    """Return those of the found passages that the text has, which may have changed since it was split; all of them
    where the text is not known."""
    return [one for one in found if text is None or one.passage.text in text]


def parts_of(
    text: str, kind: str, name: str, intent: str, found: Iterable[Part] = (), floor: float = 0.0
) -> list[Part]:
    """Return all passages of what is of a kind and has this name, each with how much it is like the intent.

    What a search ``found`` keeps its score. The others are below the least of these and ``floor``, by their words.
    """
    split = passages_of(text, kind, name)
    known = {one.passage.text: one.likeness for one in found}
    most = min([floor, *known.values()]) if known else floor
    shared = _shared([one.text for one in split if one.text not in known], intent)
    return [
        Part(place, one, known[one.text] if one.text in known else most * next(shared))
        for place, one in enumerate(split)
    ]


def as_alike(parts: Sequence[Part], likeness: float) -> list[Part]:
    """Return the passages of what a search found as a whole: the most alike of them as alike as all of it is."""
    most = max((one.likeness for one in parts), default=0.0)
    return [one._replace(likeness=likeness * (one.likeness / most if most else 1.0)) for one in parts]


def _shared(texts: Sequence[str], intent: str) -> Iterator[float]:
    """Yield the share of the intent's words that each text has, rare ones counting more (0..1)."""
    asked = _tokens(intent)
    have = [{*_found(asked, text.lower())} if text.isascii() else asked & _tokens(text) for text in texts]
    frequency = Counter(word for words in have for word in words)
    rarity = {word: math.log(1 + len(texts) / (frequency[word] + 0.5)) for word in asked}
    total = sum(rarity.values())
    for words in have:
        yield sum(rarity[word] for word in words) / total if total else 0.0


def _found(tokens: Iterable[str], text: str) -> Iterator[str]:
    """Yield those of the tokens that a text has, in a tenth of the time of :func:`_tokens`; it is in small ASCII."""
    for token in tokens:
        at = text.find(token)
        while at >= 0:
            end = at + len(token)
            if not text[at - 1 : at].isalnum() and (len(token) == _STEM or not text[end : end + 1].isalnum()):
                yield token
                break
            at = text.find(token, at + 1)


def _tokens(text: str) -> set[str]:
    """Return a text's words by their first letters; of Korean and of scripts without blanks between words,
    overlapping pairs."""
    tokens: set[str] = set()
    for found in _TOKEN.finditer(text.casefold()):
        word = found[0]
        if word > "\u0e00" and not word[0].isascii() and _TOKEN.match(word) and re.match(f"[{_PAIRED}]", word):
            tokens.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        else:
            tokens.add(word[:_STEM])
    return tokens


def pieces(parts: Sequence[Part], title: str, ends_at: int | None) -> Iterator[str]:
    """Yield the passages, which are in their order, and the marks of what is left out before, between and after them.

    A mark names the headings that the next passage stands under, where they are others than before. ``ends_at`` is the
    place after the source's last passage; None where that is not known.
    """
    expected = 0
    shown: tuple[str, ...] = (title,)
    for place, passage, _ in parts:
        above = _above(passage)
        if place != expected:
            yield mark(above if above != shown[: len(above)] else (), title)
        shown = passage.headings
        yield passage.text
        expected = place + 1
    if expected != ends_at and not parts[-1].passage.text.endswith(MARK):
        yield GAP


def _above(passage: Passage) -> tuple[str, ...]:
    """Return the headings that a passage stands under, without those that it begins with."""
    above = list(passage.headings)
    if passage.opens:
        lines = (line for line in passage.text.splitlines() if any(map(str.isalnum, line)))
        opening = [*islice(lines, len(above) + _LABELS)]
        while above and any(above[-1] in line for line in opening):
            above.pop()
    return tuple(above)


def mark(headings: Iterable[str], title: str) -> str:
    """Return the mark for what is left out, with the headings of what follows but the source's title."""
    path = " › ".join(" ".join(one.split()) for one in headings if one != title)
    return f"[… {path}]" if path else GAP


def excerpts(parts: Sequence[Part], title: str) -> list[str]:
    """Return shorter texts that may stand for a source, the longest first: of the passages most like the intent, as
    many as have at most so many words as :data:`SIZES` tell. None where nothing is like it."""
    best = sorted((one for one in parts if one.likeness > 0), key=lambda one: (-one.likeness, one.place))
    made: list[str] = []
    for size in SIZES:
        chosen, room = [], size
        for one in best:
            if (words := len(one.passage.text.split())) <= room:
                chosen.append(one)
                room -= words
        if chosen and len(chosen) < len(parts):
            text = "\n".join(pieces(sorted(chosen), title, len(parts)))
            if text not in made:
                made.append(text)
    return made


FULL: Final = 0.97
"""Share of the budget that is filled wherever there is more to show."""

ENOUGH: Final = 2_500
"""Tokens of a source beside which a further passage of it is worth half: with each, something else tells more."""

SOURCES: Final = 0.4
"""Power of a source's score that its passages are worth beside their own likeness."""

ANNOUNCED: Final = 0.95
"""Share of a passage's value that the next is worth at least, where the passage announces it: it ends with a colon, or
opens its source and is the best of all. What answers is often in the example, and its words in what comes before."""

BESIDE: Final = 0.85
"""Share of a passage's value that those before and after it in its section are worth at least, where it is the best
that was found: a package goes on about what that is about."""

FURTHER: Final = 3
"""Sources, at most, that are shown by a line where there is no room for a passage of them."""

LINE: Final = 12
"""Tokens, at most, of such a line beside its source's heading."""

LINES: Final = 0.1
"""Share of the room, at most, that is taken back for these sources from the least of the passages."""

UNFOUND: Final = 0.5
"""Likeness of a passage, at most, of a source that no search found."""

_MISSES: Final = 24
"""Passages in a row that do not fit, after which none is expected to."""


@dataclass(slots=True)
class RankedSource:
    """A source that competes for the room.

    ``score`` is what it is ranked by, ``found`` are those of its passages that a search found, ``read`` gives all;
    ``text`` is the whole, None where that is not known. A passage less like the intent than ``least`` is shown only
    beside one that is not.
    """

    item: Item
    title: str
    score: float
    found: Sequence[Part]
    read: Callable[[], Sequence[Part]]
    text: str | None
    least: float = 0.0


class _Offer(NamedTuple):
    """A passage that a source offers; without one, all of them that were not read yet. Of equals, the better
    source's comes first."""

    minus_value: float
    rank: int
    place: int
    part: Part | None
    worth: float
    """Its value while nothing of its source is shown."""


@dataclass(slots=True)
class _Shown:
    """What is chosen of a source so far."""

    source: RankedSource
    head: int
    count: Callable[[str], int]
    parts: list[Part] = field(default_factory=list)
    costs: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    is_cut: bool = False
    """Whether of a part there is the beginning alone."""

    def with_part(self, part: Part) -> tuple[list[Part], int]:
        """Return the parts with one more, and what they cost then."""
        parts = sorted([*self.parts, part])
        return parts, self.head + sum(map(self._cost, pieces(parts, self.source.title, self.ends_at(parts))))

    def _cost(self, piece: str) -> int:
        if piece not in self.costs:
            self.costs[piece] = self.count(f" {quoted_lines(piece)}\n")
        return self.costs[piece]

    def ends_at(self, parts: Sequence[Part]) -> int | None:
        """Return the place after the last part where nothing follows that; None where something does or may."""
        text = self.source.text
        is_last = text is not None and text.rstrip().endswith(parts[-1].passage.text)
        return parts[-1].place + 1 if is_last else None

    def item(self) -> Item:
        """Return the source as it is shown."""
        item, parts = self.source.item, self.parts
        ends_at = self.ends_at(parts)
        is_whole = ends_at is not None and [one.place for one in parts] == list(range(ends_at))
        if is_whole and self.source.text is not None and not self.is_cut:
            return item if item.text == self.source.text else _with(item, self.source.text, summarised=False)
        return _with(item, "\n".join(pieces(parts, self.source.title, ends_at)), summarised=True)


def _with(item: Item, text: str, *, summarised: bool) -> Item:
    return Item(
        item.id, text, item.value, candidate=item.candidate, altered=item.altered, withheld=item.withheld,
        projections=item.projections, summarised=summarised,
    )  # fmt: skip


class Filling:
    """Fills ``room`` tokens with passages of sources, the best first; ``heads`` are the tokens of their headings."""

    def __init__(
        self,
        sources: Sequence[RankedSource],
        room: int,
        least_left: int,
        heads: Sequence[int],
        count: Callable[[str], int],
    ) -> None:
        self._sources = sources
        self._room = room
        self._least_left = least_left
        self._lines = LINES * room
        self._heads = heads
        self._count = count
        self._shown: dict[int, _Shown] = {}
        self._taken: list[tuple[int, Part, int]] = []
        """Ranks and parts, and what each cost."""
        self._aside: list[_Offer] = []
        self._fill()

    def items(self) -> list[Item]:
        """Return the sources that are shown, in their order."""
        return [self._shown[rank].item() for rank in sorted(self._shown)]

    def left(self) -> list[tuple[Item, str]]:
        """Return the sources that are not, and why."""
        aside: dict[int, int] = {}
        for offer in self._aside:
            if offer.part is not None and offer.rank not in self._shown and offer.rank not in aside:
                aside[offer.rank] = self._offered(offer.rank).with_part(offer.part)[1]
        return [
            (source.item, _too_large(aside.get(rank), max(self._room, 0)))
            for rank, source in enumerate(self._sources)
            if rank not in self._shown
        ]

    def give_up(self, over: int) -> bool:
        """Take back what was taken last, but for a beginning that costs at least ``over`` tokens less; return False
        where nothing was taken."""
        self._room = -over  # what is shown costs more together than was counted, and all of the room is used
        offer = self._take_back()
        if offer is None:
            return False
        self._take_beginning(offer, self._room)
        return True

    def _take_back(self) -> _Offer | None:
        if not self._taken:
            return None
        rank, part, cost = self._taken.pop()
        shown = self._shown[rank]
        shown.parts = [one for one in shown.parts if one is not part]
        shown.tokens -= cost
        self._room += cost
        if not shown.parts:
            del self._shown[rank]
        return _offer(shown.source, rank, part)

    def _offered(self, rank: int) -> _Shown:
        held = self._shown.get(rank)
        return held or _Shown(self._sources[rank], self._heads[rank], self._count)

    def _fill(self) -> None:
        offers: list[_Offer] = []
        for rank, source in enumerate(self._sources):
            for part in source.found:
                heappush(offers, _offer(source, rank, part))
            least = min((part.likeness for part in source.found), default=UNFOUND)
            worth = _value(source, least)
            heappush(offers, _Offer(-worth, rank, 1 << 30, None, worth))
        misses = 0
        while offers and self._room > self._least_left and misses < _MISSES:
            offer = heappop(offers)
            source = self._sources[offer.rank]
            if offer.part is None:
                known = {one.place for one in source.found}
                for part in source.read():
                    if part.place not in known and part.likeness >= source.least:
                        heappush(offers, _offer(source, offer.rank, part))
                continue
            shown = self._offered(offer.rank)
            if any(one.place == offer.place for one in shown.parts):
                continue  # it was announced, and is taken
            parts, tokens = shown.with_part(offer.part)
            value = offer.worth / (1 + shown.tokens / ENOUGH)
            if value < -offer.minus_value and offers and value < -offers[0].minus_value:
                heappush(offers, offer._replace(minus_value=-value))  # others come first by now
            elif tokens - shown.tokens > self._room:
                self._aside.append(offer)
                misses += 1
            else:
                self._take(offer.rank, shown, offer.part, parts, tokens)
                misses = 0
                for beside in self._beside(offer):
                    heappush(offers, beside)
        self._aside += sorted(offer for offer in offers if offer.part is not None)[:_MISSES]
        self._add_lines()
        if self._room > self._least_left:
            self._fill_up()

    def _beside(self, offer: _Offer) -> Iterator[_Offer]:
        """Yield offers that are worth more than the passages' own, once one was taken: of the next where it announces
        that, and, where it is the best of all, of those beside it in its section."""
        source, taken = self._sources[offer.rank], offer.part
        if taken is None:
            return
        is_best = len(self._taken) == 1
        announces = taken.passage.text.endswith((":", "：")) or (is_best and offer.place == 0)
        goes_on = is_best and taken in source.found
        for part in source.read() if announces or goes_on else ():
            worth = own = _value(source, part.likeness)
            if announces and part.place == offer.place + 1:
                worth = max(worth, ANNOUNCED * offer.worth)
            elif goes_on and abs(part.place - offer.place) == 1 and part.passage.headings == taken.passage.headings:
                worth = max(worth, BESIDE * offer.worth)
            if worth > own:
                yield _Offer(-worth, offer.rank, part.place, part, worth)

    def _take(self, rank: int, shown: _Shown, part: Part, parts: list[Part], tokens: int) -> None:
        cost = tokens - shown.tokens
        self._room -= cost
        shown.parts, shown.tokens = parts, tokens
        self._shown[rank] = shown
        self._taken.append((rank, part, cost))

    def _add_lines(self) -> None:
        """Show by a line the best sources of which nothing fitted, in place of the least passage if need be."""
        best: dict[int, _Offer] = {}
        for offer in self._aside:
            if offer.part is not None and offer.worth > 0 and offer.rank not in self._shown:
                best.setdefault(offer.rank, offer)
        lines: list[_Offer] = []
        needed = 0
        for offer in islice(best.values(), FURTHER):
            if needed + (cost := self._heads[offer.rank] + LINE) <= self._lines:
                lines.append(offer)
                needed += cost
        back: list[_Offer] = []
        while self._room < needed and len(self._taken) > 1 and (taken := self._take_back()) is not None:
            back.append(taken)
        for offer in lines:
            self._take_beginning(offer, self._heads[offer.rank] + LINE)
        self._aside[:0] = back

    def _fill_up(self) -> None:
        """Take the beginnings of passages that do not fit whole, the best first."""
        for offer in self._aside:
            if self._room <= self._least_left:
                return
            self._take_beginning(offer, self._room)

    def _take_beginning(self, offer: _Offer, most: int) -> None:
        """Take as much of a passage as costs at most so many tokens, and as there is room for."""
        shown, whole = self._offered(offer.rank), offer.part
        if whole is None or any(part.place == offer.place for part in shown.parts):
            return
        room = min(most, self._room)

        def begun(text: str) -> Part:
            return whole._replace(passage=whole.passage._replace(text=text))

        def fits(text: str) -> bool:
            return shown.with_part(begun(text))[1] - shown.tokens <= room

        beginning = clipped(whole.passage.text, fits)
        if beginning is not None and _says_something(beginning, whole.passage):
            part = begun(beginning)
            shown.is_cut = shown.is_cut or part != whole
            self._take(offer.rank, shown, part, *shown.with_part(part))


def _says_something(beginning: str, passage: Passage) -> bool:
    """Return whether a beginning has a word, where its passage has any: "#…" has none of a comment."""
    return any(map(str.isalnum, beginning)) or not any(map(str.isalnum, passage.text))


def _offer(source: RankedSource, rank: int, part: Part) -> _Offer:
    worth = _value(source, part.likeness)
    return _Offer(-worth, rank, part.place, part, worth)


def _value(source: RankedSource, likeness: float) -> float:
    return math.pow(max(source.score, 0.0), SOURCES) * likeness


def _too_large(tokens: int | None, room: int) -> str:
    if tokens is None:
        return f"does not fit: {room} tokens are left"
    if tokens <= room:
        return f"worth less than what is in it, and the budget is as good as full: {room} tokens are left"
    return f"does not fit: {tokens} tokens where {room} are left"
