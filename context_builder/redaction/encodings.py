"""Words and lines that are readable text in base64, base32 or base16 (RFC 4648) are decoded."""

from __future__ import annotations

import re
from base64 import b32decode, b64decode, urlsafe_b64decode
from binascii import Error as NotBase64Error
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{16,40000}={0,2}(?![A-Za-z0-9+/=_-])")
_BASE32: Final = re.compile(
    r"(?<![A-Za-z0-9+/=_-])(?:[A-Z2-7]{20,8000}|[a-z2-7]{20,8000}"
    r"|[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){4,2000}(?:[ -][A-Z2-7]{1,4})?)={0,6}(?![A-Za-z0-9+/_-])"
)
_LINES: Final = re.compile(
    r"(?<![A-Za-z0-9+/=_-])(?:[A-Za-z0-9+/_-]{8,100}\r?\n[>| ]{0,8}){1,400}+"
    r"[A-Za-z0-9+/_-]{2,100}={0,6}(?![A-Za-z0-9+/_-])"
)
"""Lines of one word each, as encoders write them."""
_LINE: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,6}")
_NO_DIGIT: Final = str.maketrans("", "", " -=")
_LINE_BREAKS: Final = str.maketrans("", "", "\r\n\t")
MAY_DECODE: Final = re.compile(r"[A-Za-z0-9+/_-]{16}|[A-Za-z0-9+/_-]{8}\r?\n|[A-Z2-7]{4}[ -][A-Z2-7]{4}[ -]")
"""What every text has in which something can be decoded."""


def is_encoded(text: str) -> bool:
    """Return whether a text has a word that is readable text in base64 or base32."""
    return any(chain(of_base64(text), of_base32(text)))


def of_base64(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the words that are readable text in base64, in either alphabet, and that text."""
    for word in _BASE64.finditer(text):
        if decoded := decoded_base64(word.group()):
            yield *word.span(), decoded


def of_base32(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the words, and those in groups of four, that are readable text in base32, and that text."""
    for word in _BASE32.finditer(text):
        if decoded := _of_base32(word.group().translate(_NO_DIGIT)):
            yield *word.span(), decoded


def of_lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that together are readable text in base64, base32 or base16, and that text."""
    for lines in _LINES.finditer(text):
        words = [*_LINE.finditer(text, *lines.span())]
        width = len(words[0].group())
        whole = next((at for at, word in enumerate(words) if len(word.group()) != width), len(words))
        for count in (whole + 1, whole):  # the last one may be shorter, or is none of them
            digits = "".join(word.group() for word in words[:count])
            if decoded := _readable(bytes.fromhex, digits) or _of_base32(digits) or decoded_base64(digits):
                yield words[0].start(), words[min(count, len(words)) - 1].end(), decoded
                break


def decoded_base64(encoded: str) -> str:
    """Return what is encoded in base64, in either alphabet; empty if that is not readable text."""
    digits = encoded.rstrip("=")
    decode = urlsafe_b64decode if "-" in encoded or "_" in encoded else b64decode
    return _readable(decode, digits + "=" * (-len(digits) % 4))


def _of_base32(encoded: str) -> str:
    digits = encoded.rstrip("=").upper()
    return _readable(b32decode, digits + "=" * (-len(digits) % 8))


def _readable(decode: Callable[[str], bytes], digits: str) -> str:
    try:
        text = decode(digits).decode()
    except (NotBase64Error, ValueError):  # UnicodeDecodeError is one
        return ""
    return text if text.translate(_LINE_BREAKS).isprintable() else ""
