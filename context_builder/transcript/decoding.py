"""The bytes of a text file become text here, whatever program wrote them."""

from __future__ import annotations

import codecs
import re
from typing import Final

from context_builder.transcript.source import Source

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16's, with which it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_OTHER_ENDS: Final = dict.fromkeys(map(ord, "\x85\u2028\u2029"), "\n")
"""Ends of lines in Unicode; in a text that has others they are characters of a line."""

_WESTERN: Final = (
    "àâæçéèêëîïôœùûüÿ", "äöüßé", "áéíñóúüªº", "áâãàçéêíóôõúüªº", "àèéìíîòóùú",
    "æøåéèòóô", "åäöéüà", "éëïóöüáè", "æáðéíóúýþö",
    "àçèéíïòóúü",
)  # fmt: skip
"""Letters beside a to z of languages that are written in Windows-1252: French, German, Spanish, and so on."""

_SIGNS: Final = frozenset("–—‘’‚“”„…«»‹›€°§£·•\xa0")
_FEW: Final = 0.5
"""Part of the letters that such languages write beside those of ASCII at most."""

_COMMONEST: Final = "的一是不了在有我他這这個个們们你到大"
_HALF_WIDTH: Final = 0.2
"""Part of a text that is katakana of half the width, which nobody writes so often: it is in another encoding."""

_PROBE: Final = 4096
"""Bytes by which UTF-16 without a mark is known: half of what European languages write in it are zero."""

_GUESSED: Final = 100_000
"""Bytes of lines by which an encoding is guessed."""


_DECLARED: Final = re.compile(
    rb"(?:content-type:[^<>]{0,300}?charset|<meta\b[^<>]{0,200}?charset|<\?xml\b[^<>]{0,200}?encoding)"
    rb"\s?=\s?[\"']?([a-z][\w.:-]{1,39})",
    re.IGNORECASE,
)
"""Where e-mails, pages and XML say what they are encoded in."""

_OF_ASCII: Final = b"Encoding"
_AS_WRITTEN: Final = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949",
    "shift_jis": "cp932",
}  # fmt: skip
"""Encodings that programs name where they write a larger one: https://encoding.spec.whatwg.org/#names-and-labels."""


def decode(raw: bytes, source: Source) -> str:
    """Return the text: by its byte order mark, else UTF-8, and what is not in it as the encoding that it looks like.

    Lines that are neither UTF-8 nor in the encoding that the file names are noted in ``source``.
    Line ends become ``\\n``.
    """
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            return _lines(
                raw[len(mark) :].decode(encoding, "replace") if encoding != "utf-8" else _utf8(raw[3:], source)
            )
    if encoding_ := _wide(raw[:_PROBE]):
        return _lines(raw.decode(encoding_, "replace"))
    return _lines(_utf8(raw, source))


def _lines(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text if "\n" in text else text.translate(_OTHER_ENDS)


def _wide(probe: bytes) -> str | None:
    """Return which UTF-16 it is, if it is one without a mark."""
    half = len(probe) // 2
    if half < 2:
        return None
    if probe[1::2].count(0) > 0.4 * half and probe[::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if probe[::2].count(0) > 0.4 * half and probe[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return None


def _utf8(raw: bytes, source: Source) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        lines = raw.split(b"\n")
    texts: list[str | None] = [_as_utf8(line) for line in lines]
    others = b"\n".join(line for line, text in zip(lines, texts, strict=True) if text is None)
    if (encoding := _declared(raw[:_GUESSED], others)) is None:
        encoding = _guess(others[:_GUESSED])
        source.problem(f"not UTF-8; read as {encoding}", 1 + texts.index(None))
    return "\n".join(
        line.decode(encoding, "replace") if text is None else text for line, text in zip(lines, texts, strict=True)
    )


def _declared(raw: bytes, others: bytes) -> str | None:
    """Return the first encoding that a file says it has in which lines are that are not UTF-8; None without one."""
    for found in _DECLARED.finditer(raw):
        try:
            name = codecs.lookup(found[1].decode("ascii")).name
            encoding = _AS_WRITTEN.get(name, name)
            others.decode(encoding)
            if _OF_ASCII.decode(encoding) != _OF_ASCII.decode("ascii"):
                continue  # UTF-16, for example, in which nobody could have read its name
        except (LookupError, ValueError):
            continue
        return encoding
    return None


def _as_utf8(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _chinese(raw: bytes) -> str | None:
    """Return the encoding in which a text has the most of the commonest Chinese characters; None where it has none."""
    counts = {one: sum(map(raw.decode(one, "replace").count, _COMMONEST)) for one in ("big5", "gb18030")}
    likeliest = max(counts, key=lambda one: counts[one])
    return likeliest if counts[likeliest] else None


def _is_western(raw: bytes) -> bool:
    """Return whether a text is one of a language of Windows-1252, with few letters and signs beside those of ASCII."""
    text = raw.decode("cp1252", "replace")
    others = {one for one in text.lower() if one > "\x7f"}
    letters = {one for one in others if one.isalpha()}
    few = sum(one > "\x7f" and one.isalpha() for one in text) < _FEW * sum(map(str.isalpha, text))
    return few and others - letters <= _SIGNS and any(letters <= set(one) for one in _WESTERN)


def _guess(raw: bytes) -> str:
    from charset_normalizer import from_bytes

    found = from_bytes(raw)
    best = found.best()
    if best is None or len(raw) < 16:  # a few letters look like any encoding
        return "cp1252"
    half_width = sum("\uff61" <= one <= "\uff9f" for one in str(best))
    if best.encoding.startswith(("shift", "cp932")) and half_width > _HALF_WIDTH * len(str(best)):
        return _chinese(raw) or best.encoding
    if best.encoding.startswith(("cp125", "iso8859", "latin")) and best.encoding != "cp1254" and _is_western(raw):
        return "cp1252"
    alike = {one.encoding for one in found if (one.chaos, one.coherence) == (best.chaos, best.coherence)}
    if "cp1252" not in alike:
        return best.encoding
    letters = {one for one in raw.decode("cp1252", "replace").lower() if one > "\x7f" and one.isalpha()}
    return "cp1252" if "cp1250" not in alike or any(letters <= set(one) for one in _WESTERN) else "cp1250"
