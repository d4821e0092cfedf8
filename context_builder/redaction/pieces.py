"""Secrets in pieces: groups of letters, lines, cells, links, and strings that a program puts together.

Whatever stands between the pieces is left out, and the form of a secret is looked for from where a piece begins.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from context_builder.redaction.secret import Secret

if TYPE_CHECKING:
    from context_builder.redaction.secret_patterns import SecretFormat

LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_KEY: Final = r"[A-Za-z0-9_+/=.~-]"
_NAME: Final = r"[A-Za-z_]\w{0,20}"
_LEAD: Final = (
    r"\d{1,3}(?:[.)]\s{1,4}|\s?\|\s?)"  # a number of an item or a row
    r"|(?:<[a-z][^<>\n]{0,40}>\s{0,8}){1,3}"
    rf"|(?:(?:const|let|var|my|local|export|set)\s)?[$]?{_NAME}(?:\s\d{{1,2}})?[\"']?\s{{0,4}}(?:[+.:]?=|:\s)\s{{0,4}}"
    rf"(?:{_NAME}\s?[+.]\s?)?(?=[\"'`]?[A-Za-z0-9])"
    rf"|{_NAME}\({_NAME},\s?"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,Z+-]{5,20}\s(?:\[?[A-Z]{4,8}\]?:?\s)?"  # a time, and how grave it is
)
"""What a line with one piece may begin with."""
_BETWEEN: Final = (
    r"\]\s?[(\[][^()\[\]\s]{0,200}[)\]]"  # the rest of a link, behind its text
    r"|<[^<>]{0,80}>"
    r"|=\r?\n"  # a line goes on in e-mails
    rf"|(?:^|(?<=[\n\r\v\f]))[^A-Za-z0-9\n]{{0,16}}(?:{_LEAD})"
    r"|\.(?:append|concat|join)\(|\.{2,4}|\[\^\d{1,3}\]|[?&]\w{1,12}=(?=\w)|[\"'][A-Za-z_]\w{0,20}[\"']:\s?(?=[\"'])"
    r"|(?<![\w\"'`])[bfru]{1,2}(?=[\"'])"
)
_PIECES: Final = re.compile(rf"(?i:{_BETWEEN})|(?P<piece>(?:(?!=\r?\n|\.(?:append|concat|join)\(|\.\.){_KEY})+)")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+[.]?")
_BOUNDARY: Final = re.compile(r"[^A-Za-z0-9_+]")
_LONGEST_BETWEEN: Final = 240
_MOST: Final = 200
"""Pieces of one secret, and lines that are looked at together."""
_INTO_KEYWORD: Final = 3
"""Characters of a form that may stand before its keyword."""
_LEAST_GROUPS: Final = 3
_LONG: Final = 8
_LEAST_LONG_GROUPS: Final = 2
"""Groups of one length before the last one: two of so many letters, or three."""


_LINE_END: Final = re.compile(f"\r\n|[{LINE_ENDS}]")
_ONE_PIECE: Final = re.compile(
    rf"[^A-Za-z0-9\n]{{0,16}}(?:{_LEAD})?(?:[bfruBFRU]{{1,2}}(?=[\"']))?[^\w\s]{{0,4}}{_KEY}{{1,100}}"
    r"(?:</?[a-z]{1,10}\s?/?>){0,3}[^\w]{0,16}"
)
"""A line with one piece of a key, and signs around it."""
_LAST_PIECE: Final = re.compile(r"\S{1,100}[^\w]{0,16}\Z")
_FIRST_PIECE: Final = re.compile(rf"[^\w\s]{{0,16}}[ \t]{{0,4}}(?:{_LEAD})?\S{{1,100}}")
_BEFORE: Final = 120
_MAY_BECOME_ONE: Final = 64
"""Characters of a line that is not ended yet, and may become one with a piece."""
_RESTS: Final = ("", "1", " 1", "=1", ">", ">1", ",1", "+1", "::::: 1", "AAAA 1")
"""Any beginning of a line with one piece is one with one of these behind it."""


class PieceLines(NamedTuple):
    """Lines of one piece each are ``text[start:end]``; ``begun`` with the end of the line before them, which begins at
    ``before``, and ``ended`` with the beginning of the next."""

    before: int
    begun: int
    start: int
    end: int
    ended: int


def lines_of_pieces(text: str) -> Iterator[PieceLines]:
    """Yield where lines have one piece each."""
    before = begun = line = count = 0
    start: int | None = None
    for ending in (*_LINE_END.finditer(text), None):
        stop, after = ending.span() if ending else (len(text), len(text))
        if _ONE_PIECE.fullmatch(text, line, stop):
            if start is None:
                last = _LAST_PIECE.search(text, max(before, line - _BEFORE), line)
                start, begun, count = line, last.start() if last else line, 0
            count += 1
            if count == _MOST:
                yield PieceLines(before, begun, start, after, after)
                before = begun = start = after
                count = 0
        elif start is not None:
            first = _FIRST_PIECE.match(text, line, stop)
            yield PieceLines(before, begun, start, line, first.end() if first else line)
            start = None
        if start is None:
            before = line
        line = after
    if start is not None:
        yield PieceLines(before, begun, start, len(text), len(text))


def may_go_on(text: str, lines: PieceLines) -> bool:
    """Return whether a text may go on so that there are more of the lines."""
    rest = text[lines.end :]
    return not _LINE_END.search(rest) and len(rest) <= _MAY_BECOME_ONE


def may_become_one(line: str) -> bool:
    """Return whether a line that is not ended yet may become one with a piece."""
    return len(line) <= _MAY_BECOME_ONE and any(_ONE_PIECE.fullmatch(line + rest) for rest in _RESTS)


class _Pieces(NamedTuple):
    """What is left of a text; piece ``i`` is ``text[begins[i]:begins[i + 1]]``, and is written at ``places[i]``.

    From each piece on, ``near`` is the last one that is no further apart, ``alike`` the last one of the same length,
    and ``words`` the first one where people's words begin.
    """

    text: str
    begins: Sequence[int]
    places: Sequence[tuple[int, int]]
    near: Sequence[int]
    alike: Sequence[int]
    words: Sequence[int]

    def length(self, number: int) -> int:
        return self.begins[number + 1] - self.begins[number]

    def is_word(self, number: int) -> bool:
        return _is_word(self.text[self.begins[number] : self.begins[number + 1]])


def _is_word(piece: str) -> bool:
    return len(piece) > 1 and bool(_WORD.fullmatch(piece))


def in_pieces(text: str, forms: Sequence[tuple[str, SecretFormat]]) -> Iterator[Secret]:
    """Yield the secrets of these forms, each beside a keyword of it, that are written in more than one piece."""
    if not forms:
        return
    pieces = _parted(text)
    lower = pieces.text.lower()
    for keyword, form in forms:
        at = lower.find(keyword)
        while at >= 0:
            if (secret := _from(pieces, at, form)) is not None:
                yield secret
            at = lower.find(keyword, at + 1)


def _parted(text: str) -> _Pieces:
    written = [found for found in _PIECES.finditer(text) if (piece := found["piece"]) and any(map(str.isalnum, piece))]
    shown = [found["piece"] for found in written]
    places = [found.span() for found in written]
    is_word = [*map(_is_word, shown), True]
    near, alike, words = ([*range(len(shown))] for _ in range(3))
    for number in range(len(shown) - 1, -1, -1):
        after = number + 1
        is_near = after < len(shown) and places[after][0] - places[number][1] <= _LONGEST_BETWEEN
        if is_near:
            near[number] = near[after]
            alike[number] = alike[after] if len(shown[after]) == len(shown[number]) else number
        begin = is_word[number] and (is_word[after] or not is_near)
        words[number] = number if begin else words[after] if is_near else after
    return _Pieces("".join(shown), [0, *accumulate(map(len, shown))], places, near, alike, words)


def _from(pieces: _Pieces, keyword: int, form: SecretFormat) -> Secret | None:
    """Return the secret of this form whose keyword is there, unless it is all in one piece."""
    number = bisect_right(pieces.begins, keyword) - 1
    if keyword > pieces.begins[number] and _BOUNDARY.match(pieces.text, keyword - 1):
        return _between(pieces, number, keyword, form)
    while number >= 0 and (start := pieces.begins[number]) >= keyword - _INTO_KEYWORD:
        if (secret := _between(pieces, number, start, form)) is not None:
            return secret
        number -= 1
    return None


def _between(pieces: _Pieces, first: int, start: int, form: SecretFormat) -> Secret | None:
    """Return the secret of this form that begins there, in the first of its pieces, and ends in another."""
    whole = form.anywhere.match(pieces.text, start, pieces.begins[first + 1])
    for last, is_grouped in _ends(pieces, first):
        if whole and not is_grouped:
            return None
        found = form.anywhere.match(pieces.text, start, pieces.begins[last + 1])
        if found is None or found.end() <= pieces.begins[first + 1]:
            continue
        if form.is_secret(found[found.lastindex or 0]):
            ended = bisect_left(pieces.begins, found.end()) - 1
            return Secret(pieces.places[first][0] + start - pieces.begins[first], pieces.places[ended][1], form.kind)
    return None


def _ends(pieces: _Pieces, first: int) -> Iterator[tuple[int, bool]]:
    """Yield which pieces may be the last one: that of groups of one length (true), and that before people's words."""
    last = min(pieces.alike[first], first + _MOST)
    if last - first >= (_LEAST_GROUPS if pieces.length(first) < _LONG else _LEAST_LONG_GROUPS):
        rest = last + 1
        is_rest = rest <= pieces.near[first] and pieces.length(rest) < pieces.length(first)
        if is_rest and pieces.is_word(rest):
            yield last, True
        yield last + is_rest, True
    last = min(pieces.near[first], first + _MOST)
    if first < last:
        last = min(last, pieces.words[first + 1] - 1)
    if last > first:
        yield last, False
