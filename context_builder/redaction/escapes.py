"""Characters that are written by their numbers or names, as JSON, HTML, URLs, style sheets and e-mails have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import groupby
from typing import Final
from unicodedata import normalize

_ESCAPE: Final = re.compile(
    r"\\{1,4}u(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4}))|\\{1,4}x([0-9A-Fa-f]{2})|\\{1,4}U([0-9A-Fa-f]{8})"
    r"|%([2-7][0-9A-Fa-f])|&#[xX]0{0,4}([0-9A-Fa-f]{2,6});?|&#0{0,4}(?P<decimal>\d{2,6});?|(?P<named>&[A-Za-z]{2,8};)"
)
_OCTAL: Final = re.compile(
    r"\\([01][0-7]{2})|=([2-7][0-9A-F]|[2-7][0-9a-f](?==[2-7][0-9a-f])|(?<==[2-7][0-9a-f]=)[2-7][0-9a-f])"
)
"""Characters by their number in base 8, and as e-mails have them (RFC 2045, section 6.7)."""
_CSS: Final = re.compile(r"(?!(?:\\[01][0-7]{2}){6})(?:\\[0-9A-Fa-f]{2,6}[ \t]?){6,4000}")
_CSS_ESCAPE: Final = re.compile(r"\\([0-9A-Fa-f]{2,6})[ \t]?")
"""Characters by their number in base 16, as style sheets have them; three digits of base 8 are no such."""
_NUMBERS: Final = re.compile(
    r"(?P<called>(?:chr|char|charcode|codepoint|bytes|bytearray|from|array)\(\[?\s?)?"
    r"(?<![\w.])(?:\d{2,3}(?:, ?|[ -]|\)\s?(?:[+.&]|\|\|)\s?(?:chr|char)\()){7,4000}\d{2,3}(?![\w.])",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\d{2,3}")
_HEX: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:0x)?(?:[0-9A-Fa-f]{2}){6,4000}"
    r"|(?:0x)?[0-9A-Fa-f]{2}(?:[ :,-]{1,2}(?:0x)?[0-9A-Fa-f]{2}){5,4000})"
    r"(?![A-Za-z0-9])"
)
_HEX_PAIR: Final = re.compile("[0-9A-Fa-f]{2}")
_LEAST_OF_HEX: Final = 6


def unescaped(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield escapes, and what each stands for."""
    for escape in _ESCAPE.finditer(text):
        if char := _char_of(escape):
            yield *escape.span(), char


def of_octal(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield escapes in base 8 and those of e-mails, and what each stands for."""
    for escape in _OCTAL.finditer(text):
        char = chr(int(escape[1], 8) if escape[1] else int(escape[2], 16))
        if char.isprintable():
            yield *escape.span(), char


def of_css(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what is written in the escapes of style sheets, where that is readable text."""
    for escapes in _CSS.finditer(text):
        codes = [int(one, 16) for one in _CSS_ESCAPE.findall(escapes.group())]
        if all(0x20 <= code < 0x7F for code in codes):
            yield *escapes.span(), "".join(map(chr, codes))


def of_numbers(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what is written as the numbers of its characters."""
    for numbers in _NUMBERS.finditer(text):
        codes = [int(number) for number in _NUMBER.findall(numbers.group())]
        is_told = numbers["called"] or max(codes) > 99  # else these may be hexadecimal
        if is_told and all(0x20 <= code < 0x7F for code in codes):
            yield max(numbers.start(), numbers.end("called")), numbers.end(), "".join(map(chr, codes))


def _char_of(escape: re.Match[str]) -> str:
    """Return what an escape stands for; empty where that is nothing that is seen, or no escape."""
    if named := escape["named"]:
        char = unescape(named)
        return char if len(char) == 1 else ""
    number = int(escape["decimal"]) if escape["decimal"] else int(next(filter(None, escape.groups())), 16)
    char = chr(number) if number < 0x110000 else ""
    return normalize("NFKC", char) if char.isprintable() else ""


def of_hex(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what is written in hexadecimal digits, where that is readable text."""
    for digits in _HEX.finditer(text):
        pairs = list(_HEX_PAIR.finditer(digits.group()))
        for is_read, group in groupby(pairs, lambda pair: 0x20 <= int(pair.group(), 16) < 0x7F):
            run = list(group)
            if is_read and len(run) >= _LEAST_OF_HEX:
                plain = "".join(chr(int(pair.group(), 16)) for pair in run)
                begun = digits.start() + run[0].start()
                begun -= 2 * (text[max(0, begun - 2) : begun] in ("0x", "0X"))
                yield begun, digits.start() + run[-1].end(), plain
