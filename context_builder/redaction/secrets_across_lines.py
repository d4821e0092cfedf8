"""Secrets that take more than one line: broken by the end of one, in lines of pieces, or in those that go on.

Of a broken secret, each piece by itself looks harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

from context_builder.redaction.encodings import is_encoded
from context_builder.redaction.named_secrets import named_secrets
from context_builder.redaction.pieces import LINE_ENDS, lines_of_pieces, may_become_one, may_go_on
from context_builder.redaction.readings import readings
from context_builder.redaction.secret import Secret, has_one_of
from context_builder.redaction.secret_patterns import LIKE_A_KEY, by_form, secrets_in_pieces
from context_builder.redaction.secret_values import HINTS
from context_builder.redaction.seed_phrases import may_go_on_from, seed_phrases
from context_builder.redaction.strings_in_code import open_run, runs

_BLANKS: Final = rf"[^\S{LINE_ENDS}]"
_NEW_LINES: Final = rf"(?:[{LINE_ENDS}]{_BLANKS}{{0,16}}(?:[>|#*][>|#* ]{{0,16}})?){{1,3}}"
_PUT_TOGETHER: Final = rf"{_BLANKS}{{0,4}}(?:[+.&]|\|\|)?{_BLANKS}{{0,4}}"
_BREAK: Final = re.compile(
    rf"(?<=\S)(?:[\"'`]{_PUT_TOGETHER}\\?{_NEW_LINES}{_PUT_TOGETHER}[bfruBFRU]{{0,2}}[\"'`]"  # two strings that are one
    rf"|{_BLANKS}{{0,8}}[\\=]?{_NEW_LINES})(?=\S)"
)
_TAIL: Final = re.compile(r"[^\W_][^\s\"'`,;<>()\[\]{}§|]{0,99}\Z")
_HEAD: Final = re.compile(r"[^\s\"'`,;<>()\[\]{}§]{1,240}")
_BEFORE: Final = 120
"""Characters of the line before a break that are looked at."""
_MOST_PIECES: Final = 8
"""Pieces behind a break that are looked at together."""
_LEAST: Final = 12
_LONGEST_HELD: Final = 2_000
"""Characters that wait for what comes next, and are looked through at each line."""
_NO_KEY: Final = re.compile(r"[^A-Za-z0-9_+/=.:~-]+")
_GOES_ON: Final = re.compile(r"[=\\]\r?\n")
"""The end of a line that says that it goes on."""
_OPENS: Final = re.compile(r"[=(:\[{,+.\\]$")
"""The end of a line that what is below belongs to."""
_SIGNS: Final = re.compile(r"(?:\n[>|#* \t]{1,16})+\Z")
_ANY_LINE_END: Final = re.compile(f"[{LINE_ENDS}]")
_LONGEST_RANDOM: Final = 60
"""Characters of the pieces of what only looks random: lines of 64 and 76 are those of certificates and files."""
_WORD: Final = re.compile(r"(?:[^\W\d_]?[^\W\d_A-Z]*|[A-Z]+)[.,;:!?…]*")


class _Break(NamedTuple):
    """A line break that may be within a secret; the text that is looked at before it begins at ``begun``."""

    begun: int
    start: int
    end: int
    head_end: int


def broken_secrets(text: str) -> list[Secret]:
    """Return the secrets that are recognized only with what is behind a line break."""
    found: list[Secret] = []
    breaks = list(_breaks(text))
    for number, first in enumerate(breaks):
        if found and found[-1].end > first.start:
            continue
        pieces = list(_pieces(breaks[number : number + _MOST_PIECES]))
        for count in dict.fromkeys((1, len(pieces))):
            if (secret := _across(text, first, pieces[:count])) is not None:
                found.append(secret)
                break
    return [*found, *_in_lines(text), *_in_continued_lines(text), *seed_phrases(text)]


def _in_lines(text: str) -> Iterator[Secret]:
    """Yield the secrets of which several lines have a piece each."""
    for lines in lines_of_pieces(text):
        part = text[lines.begun : lines.ended]
        if not LIKE_A_KEY.search(_NO_KEY.sub("", part)):
            continue
        for reading in readings(part):
            found = chain(
                secrets_in_pieces(reading.text),
                named_secrets(reading.text) if reading.text != part else (),
                by_form(reading.text, without_context=False) if reading.text != part else (),
            )
            for one in found:
                start, end = reading.place(one.start, one.end)
                if _ANY_LINE_END.search(part, start, end):
                    yield Secret(lines.begun + start, lines.begun + end, one.kind)
        block = text[lines.start : lines.end].rstrip()
        if _ANY_LINE_END.search(block):
            for decoded in readings(_NO_KEY.sub("", block))[1:]:
                for one in chain(by_form(decoded.text, without_context=False), named_secrets(decoded.text)):
                    yield Secret(lines.start, lines.start + len(block), one.kind)


def _in_continued_lines(text: str) -> Iterator[Secret]:
    """Yield the secrets of lines that go on, or whose strings a program puts together."""
    for begun, end in _continued(text):
        part = text[begun:end]
        for reading in readings(part)[1:]:
            for one in chain(named_secrets(reading.text), by_form(reading.text, without_context=False)):
                start, ended = reading.place(one.start, one.end)
                if _ANY_LINE_END.search(part, start, ended):
                    yield Secret(begun + start, begun + ended, one.kind)


def _continued(text: str) -> Iterator[tuple[int, int]]:
    """Yield where lines go on, from the one before them on, if a name may be in it."""
    for start, end in chain(_going_on(text), runs(text)):
        if "\n" in text[start:end]:
            yield max(_with_line_before(text, start), start - _LONGEST_HELD), end


def _with_line_before(text: str, start: int) -> int:
    """Return where the line of ``start`` begins, or the one before it if what goes on may belong to that."""
    begun = text.rfind("\n", 0, start) + 1
    before = text.rfind("\n", 0, max(0, begun - 1)) + 1
    line = text[before:begun].rstrip()
    is_of_it = _OPENS.search(line) or LIKE_A_KEY.search(line) or has_one_of(HINTS, line.lower())
    return before if is_of_it and not _ends_whole(line) else begun


def _going_on(text: str) -> Iterator[tuple[int, int]]:
    """Yield where lines say that they go on, with the next one, of which not more is looked at than may be held."""
    start = end = 0
    for ending in _GOES_ON.finditer(text):
        begun = text.rfind("\n", end, ending.start()) + 1
        if begun and end:
            yield start, _with_next_line(text, end)
        start, end = (begun if begun or not end else start), ending.end()
    if end:
        yield start, _with_next_line(text, end)


def _with_next_line(text: str, end: int) -> int:
    after = text.find("\n", end, end + _LONGEST_HELD)
    return after if after >= 0 else min(len(text), end + _LONGEST_HELD)


def known_until(text: str) -> int:
    """Return where the text may be cut so that no secret goes across: behind a line, once the next one is known.

    A line that has but the signs of a quotation so far may have the next piece.
    """
    if (begins := _SIGNS.search(text)) is not None:
        text = text[: begins.start()]
    seed_phrase = may_go_on_from(text)
    begun = len(text) if seed_phrase == len(text) else text.rfind("\n", 0, seed_phrase) + 1
    cut = min(begun, _unbroken_until(text))
    together = [(one.before, len(text) + 1 if may_go_on(text, one) else one.ended) for one in lines_of_pieces(text)]
    together += _continued_until(text)
    together += [(text.rfind("\n", 0, one.start) + 1, one.head_end) for one in _breaks(text)]
    together += [(text.rfind("\n", 0, one.start) + 1, one.end) for one in seed_phrases(text)]
    early = cut
    for begun, ended in sorted(together, key=itemgetter(1), reverse=True):
        if begun < early < ended:
            early = begun
    return early if len(text) - early <= _LONGEST_HELD else cut


def _continued_until(text: str) -> Iterator[tuple[int, int]]:
    """Yield where lines go on, and from where on they may go on behind the text."""
    last = text.rfind("\n") + 1
    yield from ((begun, len(text) + 1 if end >= last else end) for begun, end in _continued(text))
    for start in (last, open_run(text[:last])):
        if start is not None:
            yield _with_line_before(text, start), len(text) + 1
    if last and may_become_one(text[last:]) and not _ends_in_form(text[: last - 1]):
        yield text.rfind("\n", 0, last - 1) + 1, len(text) + 1


def _unbroken_until(text: str) -> int:
    at, is_open = 0, {one.end for one in _breaks(text)}
    for match in _BREAK.finditer(text):
        head = _HEAD.match(text, match.end())
        if match.end() not in is_open and not (head and head.end() == len(text)) and "\n" in match.group():
            at = text.rindex("\n", *match.span()) + 1
    last = text[at:]
    return len(text) if last.endswith("\n") and _ends_in_form(last[:-1]) else at


def _ends_in_form(text: str) -> bool:
    """Return whether a secret ends a text that has its form without what is below; a name or a look may have more."""
    line = text[text.rfind("\n") + 1 :]
    return any(one.end == len(line) for one in by_form(line, without_context=False))


def _breaks(text: str) -> Iterator[_Break]:
    """Yield the breaks in whose surroundings a secret may be; of most lines nothing more is examined."""
    before_end = 0
    for match in _BREAK.finditer(text):
        start, end = match.span()
        begun, before_end = max(before_end, start - _BEFORE), end
        tail, head = _TAIL.search(text, begun, start), _HEAD.match(text, end)
        if tail is not None and head is not None and _may_go_on(text[begun:start], tail.group(), head.group()):
            yield _Break(begun, start, end, head.end())


def _may_go_on(before: str, tail: str, head: str) -> bool:
    is_like_a_key = len(tail) + len(head) >= _LEAST and LIKE_A_KEY.search(tail + head)
    return bool(is_like_a_key) or (not _WORD.fullmatch(head) and has_one_of(HINTS, before.lower()))


def _pieces(breaks: Sequence[_Break]) -> Iterator[tuple[int, int]]:
    """Yield where the pieces behind the first break are: further ones while each is all there is on its line."""
    for number, one in enumerate(breaks):
        yield one.end, one.head_end
        if number + 1 == len(breaks) or breaks[number + 1].start != one.head_end:
            return


def _across(text: str, first: _Break, pieces: Sequence[tuple[int, int]]) -> Secret | None:
    """Return the secret that begins before the break and goes on in the pieces, if any."""
    before = text[first.begun : first.start]
    joined = before + "".join(text[start:end] for start, end in pieces)
    head = text[first.end : first.head_end]
    is_word = bool(_WORD.fullmatch(head))
    is_alone = before[-1].isalnum() and (first.head_end == len(text) or text[first.head_end] in LINE_ENDS)
    is_short = len(before) - before.rfind(" ") < _LONGEST_RANDOM and not any(
        end - start >= _LONGEST_RANDOM for start, end in pieces
    )
    for reading in readings(joined):
        found = [*by_form(reading.text, without_context=is_short and not is_word)]
        if (is_alone and not is_word) or (reading.text != joined and is_encoded(joined)):
            found += named_secrets(reading.text)
        for one in found:
            start, end = reading.place(one.start, one.end)
            if start < len(before) < end and not _is_whole(before, start, text[first.end : first.head_end]):
                places = [*range(first.begun, first.start), *(place for piece in pieces for place in range(*piece))]
                return Secret(places[start], places[end - 1] + 1, one.kind)
    return None


def _is_whole(before: str, start: int, head: str) -> bool:
    """Return whether there is a secret without what is on the other side of the break."""
    return any(one.start <= start < one.end for one in _wholes(before)) or any(not one.start for one in _wholes(head))


def _wholes(line: str) -> list[Secret]:
    return [*by_form(line, without_context=True), *named_secrets(line)]


def _ends_whole(line: str) -> bool:
    return any(one.end == len(line) for one in _wholes(line[line.rfind("\n") + 1 :]))
