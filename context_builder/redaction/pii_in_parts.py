"""Personal data in parts: over several lines, in the cells of a table, in the items of a list.

Nothing tells by itself that such parts are one, so only what has a strong form is found: a mail address with a known
domain, a bank account number with its checksum, and a card or phone number that is called one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

_MOST: Final = 40
"""Parts of one address or number."""
_BETWEEN: Final = re.compile(
    r"(?P<signs>(?:[ ]{0,8}+(?:[|,;&\t\"'`*>\\#\[\](){}\v\f\u2028]|</?[A-Za-z][^<>\n]{0,80}>|=?\r?\n|\r"
    r"| [/-] |\.{3})){1,24}+)[ \t]{0,8}+(?:\d{1,3}(?:[.)]|\s?\|)[ \t]{1,4}+(?=\S))?(?:-[ ])?"
    r"(?:[A-Za-z]\w{0,15}(?: \d)?[\"']? ?[:=]\s{0,4}[\"'`]?)?"  # a number of the line, a name
)
"""What stands between parts: signs of tables, lists and strings, elements, and the ends of lines."""
_NAME: Final = re.compile(r"(?<![\w.+@-])[\w+][\w.+-]{0,63}\Z")
_PART_OF_DOMAIN: Final = re.compile(r"[\w.-]{0,255}")
_LINE_ENDS: Final = re.compile(r"[.,;:!?)>|]{0,2}[ \t]{0,8}(?:[\r\n]|\Z)")
_LONGEST_NAME, _LONGEST_DOMAIN = 64, 255
_PART_OF_NUMBER: Final = re.compile(r"[+(]{0,2}[A-Za-z]{0,4}[\d ()-]{0,24}[A-Za-z]{0,1}")
_HEAD_OF_NUMBER: Final = re.compile(r"[\d ()-]{0,24}\d[A-Za-z]{0,2}(?![\w])")
_TAIL_OF_NUMBER: Final = re.compile(r"(?<![\w])[+(]{0,2}[A-Za-z]{0,4}\d[\d ()-]{0,24}\Z")
_SIGNS: Final = re.compile(r"[ ()-]")
_IBAN_BEGINS: Final = re.compile(r"[A-Za-z]{2}\d{2}")
_MOST_OF_IBAN: Final = 34
_CARD_BEGINS: Final = re.compile(r"(?:4|5[1-5]|3[47]|6(?:011|5)|2[2-7])\d{10}")
_PHONE: Final = re.compile(r"\+\d{8,15}")
_BEFORE: Final = 48


class Checks(NamedTuple):
    """What tells numbers: ``is_iban`` and ``is_card`` of one without blanks, the others of the text before it."""

    is_iban: Callable[[str], bool]
    is_card: Callable[[str], bool]
    card_said: Callable[[str], bool]
    phone_said: Callable[[str], bool]


class _Part(NamedTuple):
    """Is ``text[start:end]``, behind ``between``, which is empty before the first one."""

    start: int
    end: int
    between: str


def _parts(text: str) -> list[_Part]:
    parts: list[_Part] = []
    at, signs = 0, ""
    for between in (*_BETWEEN.finditer(text), None):
        end = between.start() if between else len(text)
        if end > at:
            parts.append(_Part(at, end, signs))
            signs = ""
        if between:
            at, signs = between.end(), signs + between["signs"].strip(" \t")
    return parts


def mail_addresses_in_parts(
    text: str, domain: re.Pattern[str], any_domain: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """Yield where mail addresses are of which no part is one; ``any_domain`` only if it is all that its line has."""
    if "@" not in text:
        return
    parts = _parts(text)
    for number, part in enumerate(parts):
        at = text.find("@", part.start, part.end)
        while at >= 0:
            if found := _address(text, parts, number, at, domain, any_domain):
                yield found
            at = text.find("@", at + 1, part.end)


def _address(
    text: str, parts: Sequence[_Part], number: int, at: int, domain: re.Pattern[str], any_domain: re.Pattern[str]
) -> tuple[int, int] | None:
    part = parts[number]
    name = _NAME.search(text, max(part.start, at - _LONGEST_NAME), at)
    if whole := domain.match(text, at + 1, part.end):
        before = parts[number - 1] if name is None and at == part.start and number and "\n" in part.between else None
        tail = before and _NAME.search(text, max(before.start, before.end - _LONGEST_NAME), before.end)
        return (tail.start(), whole.end()) if tail else None
    end = _end_of_domain(text, parts, number, at, domain, any_domain)
    if end is None:
        return None
    start, between = name.start() if name else at, parts[number + 1].between
    while start == parts[number].start and number and parts[number].between == between:
        number -= 1
        before = parts[number]
        if at - before.start > 4 * _LONGEST_NAME:
            break
        tail = _NAME.search(text, max(before.start, before.end - _LONGEST_NAME), before.end)
        start = tail.start() if tail else start
    return (start, end) if start < at else None


def _end_of_domain(
    text: str, parts: Sequence[_Part], number: int, at: int, domain: re.Pattern[str], any_domain: re.Pattern[str]
) -> int | None:
    """Return where a domain ends that begins behind ``at`` and ends in a later part."""
    joined = text[at + 1 : parts[number].end] if parts[number].end - at <= _LONGEST_DOMAIN else "…"
    for part in parts[number + 1 : number + _MOST]:
        is_talk = part.between == "," and text[part.start - 1].isspace()
        if is_talk or not _PART_OF_DOMAIN.fullmatch(joined):
            break
        head = text[part.start : min(part.end, part.start + _LONGEST_DOMAIN)]
        if (found := domain.match(joined + head)) and found.end() > len(joined):
            return part.start + found.end() - len(joined)
        if not joined and "\n" in part.between and (alone := any_domain.match(head)):
            end = part.start + alone.end()
            return end if _LINE_ENDS.match(text, end) else None
        joined += head
    return None


def numbers_in_parts(text: str, checks: Checks) -> Iterator[tuple[int, int, str]]:
    """Yield where numbers are in more than one part, and of which kind they are."""
    run: list[_Part] = []
    for part in (*_parts(text), None):
        if part and _PART_OF_NUMBER.fullmatch(text, part.start, part.end):
            run.append(part)
            continue
        if part and run and (head := _HEAD_OF_NUMBER.match(text, part.start, part.end)):
            run.append(part._replace(end=head.end()))
        if len(run) > 1:
            yield from _in_run(text, run, checks)
        begun = max(part.start, part.end - _MOST_OF_IBAN) if part else 0
        tail = part and _TAIL_OF_NUMBER.search(text, begun, part.end)
        run = [part._replace(start=tail.start())] if part and tail else []


def _in_run(text: str, run: Sequence[_Part], checks: Checks) -> Iterator[tuple[int, int, str]]:
    """Yield the numbers that begin and end with parts of a run."""
    shown = [_SIGNS.sub("", text[part.start : part.end]) for part in run]
    joined, begins = "".join(shown), [0, *accumulate(map(len, shown))]
    is_kind: dict[str, Callable[[str], object]] = {
        "IBAN_CODE": checks.is_iban,
        "CREDIT_CARD": checks.is_card,
        "PHONE_NUMBER": _PHONE.fullmatch,
    }
    last = -1
    for number, part in enumerate(run):
        begun = begins[number]
        if number <= last:
            continue
        for kind in _kinds_from(text, joined, begun, part.start, checks):
            ends = [*range(number + 1, bisect_right(begins, begun + _MOST_OF_IBAN) - 1)]
            found = next((end for end in reversed(ends) if is_kind[kind](joined[begun : begins[end + 1]])), None)
            if found is not None:
                last = found
                yield part.start, run[found].end, kind
                break


def _kinds_from(text: str, joined: str, begun: int, start: int, checks: Checks) -> Iterator[str]:
    """Yield which kinds of number may begin there."""
    before = text[max(0, start - _BEFORE) : start]
    if _IBAN_BEGINS.match(joined, begun):
        yield "IBAN_CODE"
    if _CARD_BEGINS.match(joined, begun) and checks.card_said(before):
        yield "CREDIT_CARD"
    if joined.startswith("+", begun) and checks.phone_said(before):
        yield "PHONE_NUMBER"
