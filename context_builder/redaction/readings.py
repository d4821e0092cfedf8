"""A text is looked through as a person, a browser or a model would read it, however it is written.

A reading is the text in plain letters, each of which knows its place. The first one is what is seen: without what is
invisible, with the letters and digits of other widths and faces as plain ones. Where there is more to be read, the
last one also has escapes decoded, markup within words left out, strings of a program put together, single letters
joined, look-alike letters replaced, and accents removed. Others have words decoded from base64 and base32, the
letters of tags, which nobody sees and a model reads, and what is shown from its end to its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Final, NamedTuple
from unicodedata import category, decimal, normalize

from context_builder.redaction.encodings import MAY_DECODE, of_base32, of_base64, of_lines
from context_builder.redaction.escapes import of_css, of_hex, of_numbers, of_octal, unescaped
from context_builder.redaction.strings_in_code import put_together, without_sign

_SEEN_CONTROLS: Final = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85")
"""Control characters that are seen as a blank, or as the end of a line."""

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Letters and marks that nobody sees, whatever Unicode says that they are."""

_TAG: Final = re.compile("[\U000e0020-\U000e007e\U000e0110-\U000e016e]")
_TAGS: Final = {first + code: code for first in (0xE0000, 0xE0100 - 16) for code in range(0x20, 0x7F)}
"""Tags, and selectors of variations, that nobody sees, and the letters that they stand for."""

_TURNED: Final = re.compile(r"\u202e([^\u202c\n]{1,4000})")
"""What is shown from the right to the left."""
_BACKWARDS: Final = re.compile(
    r"(?P<quote>[\"'`])(?P<string>[^\"'`\n]{4,400})(?P=quote)\s?\[::-1\]|\S{1,100}\s?[:=]\s?(?i:[\w-]{0,20}(?:drowssap|terces|nekot)[\w-]{0,20})"
    r"|(?<![^\s@])[^\s@]{1,200}@[^\s:]{1,100}:[^\s:/]{1,60}//:[a-z]{2,12}(?![\w:])"
)
"""What is read from its end: a string that is turned, a name behind its value, and an address with a password."""

_ODD: Final = re.compile("[^\t\n\v\f\r\x1c-\x1f -~]")
_MARK: Final = re.compile("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]")
# The rest of a link, behind its text:
_LINKED: Final = r"\](?:\([^()\s=@]{0,200}(?:\s[\"'][^\"'()]{0,80}[\"'])?\)|\[[^\[\]\s]{0,40}\])"
_MARKUP: Final = re.compile(
    r"\\(?P<kept>[!-/:-@\[\]-`{-~])"  # Markdown's escape
    r"|(?<=[\w@.-])(?:\*{1,3}|`{1,2}|~~)(?=[\w@.-])"
    r"|<!--[^<>]{0,80}-->|/\*[^*/]{0,80}\*/|(?<=\S)=\r?\n(?=\S)|(?<=[\w@.-])\[\^\w{1,3}\](?=[\w@. -])"
    r"|</?(?i:a|abbr|b|bdi|code|del|em|font|i|ins|kbd|mark|s|small|span|strong|sub|sup|tt|u|wbr)(?:\s[^<>]{0,80})?/?>"
    r"|(?<=[\w@.=-])(?:[$#]?\{{1,2}\s{0,2}(?:\"\"|''|``)\s{0,2}\}{1,2}|\$\(\))(?=[\w@.=-])"  # nothing, put in
    r"|(?<=[\w@.=\"'`-])[$#]?\{[\"'`](?=[\w@.=\s-])"  # text, put in
    r"|(?<=[\w@.=\s-])[\"'`]\}(?:[$#]?\{[\"'`])?(?=[\w@.=\s\"'`-])"
    rf"|\[(?=[^\[\]\n]{{1,200}}{_LINKED})|(?<=.)(?:{_LINKED}(?: ?\[)?)"
    # the beginning of a link, its rest, and the beginning of the next
    r"|(?<=\S)\]\]>(?:<!\[CDATA\[)?(?=\S)|(?<=\S)\x1b?\[[\d;]{1,12}m(?=[\w ])"
    r"|(?<=[\w@.-])\}\\[a-z]{2,10}\{(?=[\w@.-])"
    # sections of XML, colours of a terminal, commands of LaTeX
)
"""What stands within a word and is not seen, or not read."""
_SPELLED: Final = re.compile(r"(?<!\S)(?:\S[ \n./-]){11,4000}\S(?!\S)")
_SEPARATED: Final = re.compile(
    r"[A-Za-z0-9](?P<between>[^A-Za-z0-9]{1,4})(?:[!-~](?P=between)){10,4000}[!-~](?![A-Za-z0-9])"
)
"""Letter by letter, with the same signs between all of them."""
_GROUP: Final = re.compile(r"\S+")
_LEAST_GROUPS: Final = 4
_LONGEST_GROUP: Final = 8
_TELLING: Final = re.compile(r"[0-9@=]")
_ONE_WORD: Final = re.compile("[A-Za-z0-9_]*")
_HEX_WORD: Final = re.compile("[0-9A-Fa-f]{12}")
_MAY_ESCAPE: Final = re.compile(r"[\\%&]")
_ROUNDS: Final = 3
"""Escapes within escapes that are decoded."""

_LOOK_ALIKES: Final = {
    look: latin
    for latin, looks in {
        "A": "АΑᎪ", "B": "ВΒß", "C": "СᏟ", "D": "Ꭰ", "E": "ЕΕᎬ", "G": "Ꮐ", "H": "НΗᎻ", "I": "ІΙ", "J": "ЈᎫ",
        "K": "КΚᏦ", "L": "Ꮮ", "M": "МΜᎷ", "N": "Ν", "O": "ОΟՕ", "P": "РΡᏢ", "Q": "Ԛ", "R": "Ꭱ", "S": "ЅՏᏚ",
        "T": "ТΤᎢ", "V": "Ꮩ", "W": "ԜᏔᎳ", "X": "ХΧ", "Y": "ҮΥУ", "Z": "ΖᏃ",
        "a": "аαɑᴀ", "b": "вʙᏏ", "c": "сᴄ", "d": "ԁᴅđ", "e": "еεᴇ", "f": "ƒ", "g": "ɡɢց", "h": "һհʜħн", "i": "іɩιıɪᎥ",
        "j": "јᴊ", "k": "кκᴋ", "l": "ӏłʟ", "m": "мᴍ", "n": "ոηɴ", "o": "оοօᴏø", "p": "рρᴘ", "q": "ԛզ", "r": "гʀ",
        "s": "ѕꜱ", "t": "тτᴛŧ", "u": "սυᴜ", "v": "νᴠ", "w": "ԝωᴡ", "x": "хχ", "y": "уγʏ", "z": "ᴢ",
        "-": "‐‑‒–—−", "_": "ˍ‗", "/": "∕⁄", ".": "∙·",
    }.items()
    for look in looks
} | {
    chr(first + place): chr(ord("A") + place) for first in (0x1F150, 0x1F170, 0x1F1E6) for place in range(26)
}  # fmt: skip
"""Signs that are drawn as a Latin one; the last ones are letters in circles, in squares, and of flags."""

_ALIKE: Final = re.compile(f"[{''.join(map(re.escape, _LOOK_ALIKES))}\u00c0-\u024f\u1e00-\u1eff]")
_WORD: Final = re.compile(r"\S+")
_PLAIN: Final = re.compile("[A-Za-z0-9_]")


class Reading(NamedTuple):
    """A text as it is read: its characters stand for ``written[starts[i]:ends[i]]``; without these, for themselves."""

    text: str
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return where ``text[start:end]`` is written."""
        return (self.starts[start], self.ends[end - 1]) if self.starts else (start, end)

    def replaced(self, parts: Iterable[tuple[int, int, str]]) -> Reading:
        """Return a reading of this one with other texts in place of parts of it, which are in order."""
        shown: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for start, end, text in parts:
            shown += (self.text[at:start], text)
            starts += chain(range(at, start), repeat(start, len(text)))
            ends += chain(range(at + 1, start + 1), repeat(end, len(text)))
            at = end
        if not shown:
            return self
        shown.append(self.text[at:])
        starts += range(at, len(self.text))
        ends += range(at + 1, len(self.text) + 1)
        if self.starts:
            starts, ends = [self.starts[one] for one in starts], [self.ends[one - 1] for one in ends]
        return Reading("".join(shown), tuple(starts), tuple(ends))


def readings(written: str) -> list[Reading]:
    """Return what is read, the first as it is seen; each takes a time linear in the length."""
    first = _seen(written)
    second = _deciphered(first)
    tagged = [Reading(written.translate(_TAGS))] if _TAG.search(written) else []
    turned = [Reading(written).replaced(_turned(written))] if _TURNED.search(written) else []
    return [one for one in (first, *tagged, *turned, *_decoded(second or first), second) if one is not None]


def _seen(written: str) -> Reading:
    if not _ODD.search(written):
        return Reading(written)
    shown: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for place, char in enumerate(written):
        if " " <= char <= "~":
            plain = char
        elif _is_unseen(char):
            if ends:
                ends[-1] = place + 1
            continue
        elif shown and _MARK.match(char):
            joined = normalize("NFC", shown[-1] + char)
            shown[-1] = joined if len(joined) == 1 else shown[-1]
            ends[-1] = place + 1
            continue
        else:
            plain = str(digit) if (digit := decimal(char, -1)) >= 0 else normalize("NFKC", char)
        for one in plain:
            shown.append(one)
            starts.append(place)
            ends.append(place + 1)
    return Reading("".join(shown), tuple(starts), tuple(ends))


def _is_unseen(char: str) -> bool:
    kind = category(char)
    return kind == "Cf" or (kind == "Cc" and char not in _SEEN_CONTROLS) or bool(_UNSEEN.match(char))


def _deciphered(seen: Reading) -> Reading | None:
    """Return the reading with escapes, look-alikes and accents resolved; None where it has none."""
    if _ONE_WORD.fullmatch(seen.text) and not _HEX_WORD.search(seen.text):
        return None
    reading = seen
    for _ in range(_ROUNDS):
        decoded = reading.replaced(unescaped(reading.text)) if _MAY_ESCAPE.search(reading.text) else reading
        for hint, parts in _IN_WORDS if reading is seen else ():
            if hint.search(decoded.text):
                decoded = decoded.replaced(parts(decoded.text))
        if decoded is reading:
            break
        reading = decoded
    if not reading.text.isascii() and _ALIKE.search(reading.text):
        reading = reading.replaced(_latin(reading.text))
    return None if reading.text == seen.text else reading


def _decoded(reading: Reading) -> Iterator[Reading]:
    """Yield the reading with words decoded that are text in base64 or base32, then with those decoded that these are.

    The parts of a JSON Web Token are encoded themselves, and only before they are decoded too has it its form.
    """
    for _ in range(_ROUNDS):
        if not MAY_DECODE.search(reading.text):
            break
        decoded = reading.replaced(of_lines(reading.text)) if "\n" in reading.text else reading
        for parts in (of_base64, of_base32) if decoded is reading else ():
            decoded = decoded.replaced(parts(decoded.text))
        if decoded is reading:
            break
        reading = _deciphered(decoded) or decoded
        yield reading


def _without_markup(text: str) -> Iterator[tuple[int, int, str]]:
    for mark in _MARKUP.finditer(text):
        yield *mark.span(), mark["kept"] or ""


def _joined(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield words that are spelled letter by letter; digits alone are a list of numbers."""
    for spelled in _SPELLED.finditer(text):
        if not (word := spelled.group()[::2]).isdigit():
            yield *spelled.span(), word


def _separated(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield words whose letters have the same signs between them; digits alone are a list of numbers."""
    for spelled in _SEPARATED.finditer(text):
        word = spelled.group()[:: 1 + len(spelled["between"])]
        if not word.isdigit():
            yield *spelled.span(), word


def _in_groups(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield words whose letters are in groups of one length, the last one of which may be shorter.

    Words that happen to have one length are left out: something has a digit or a sign among them, and is not a number.
    """
    if not _TELLING.search(text):
        return
    groups: list[re.Match[str]] = []
    for group in chain(_GROUP.finditer(text), (None,)):
        length, begun = len(group.group()) if group else 0, len(groups[0].group()) if groups else 0
        if group and groups and length == begun and group.start() - groups[-1].end() <= _LONGEST_GROUP:
            groups.append(group)
            continue
        if len(groups) >= _LEAST_GROUPS - 1:
            is_address = any("@" in one.group() for one in groups)  # which may end in "org"
            if group and length < begun and (is_address or _TELLING.search(group.group())):  # else a word: "no", "ok"
                groups.append(group)
            word = "".join(one.group() for one in groups)
            if len(groups) >= _LEAST_GROUPS and _TELLING.search(word) and not word.isdigit():
                yield groups[0].start(), groups[-1].end(), word
        groups = [group] if group and 1 < length <= _LONGEST_GROUP and not (groups and group is groups[-1]) else []


def _turned(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _TURNED.finditer(text):
        yield *found.span(1), found[1][::-1]


def _backwards(text: str) -> Iterator[tuple[int, int, str]]:
    for found in _BACKWARDS.finditer(text):
        yield *found.span("string" if found["string"] else 0), (found["string"] or found.group())[::-1]


_IN_WORDS: Final = tuple(
    (re.compile(hint), parts)
    for hint, parts in (
        (r"\\", of_css),
        (r"\d(?:[ ,-]|\)\s?[+.&|])", of_numbers),
        (r"[0-9A-Fa-f]{12}|[0-9A-Fa-f][ :,-]{1,2}(?:0x)?[0-9A-Fa-f]", of_hex),
        (r"[\\=]", of_octal),
        (r"\.(?:replace|split)", without_sign),
        (r"\[::-1\]|//:[a-z]|(?i:drowssap|terces|nekot)", _backwards),
        (r"[\"'`]", put_together),
        (r"[\\*`~<>\"'{(\]\x1b]|=\r?\n", _without_markup),
        (r"[ \n./-]\S[ \n./-]", _joined),
        (r"[^A-Za-z0-9][!-~][^A-Za-z0-9]", _separated),
        (r"\s\S{1,8}\s", _in_groups),
    )
)
"""What is read otherwise in words, each beside a sign that every such word has, which takes less time to look for."""


def _latin(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield plain letters for look-alikes and accented ones in words that have plain letters or digits too."""
    for word in _WORD.finditer(text):
        if _PLAIN.search(word.group()):
            for alike in _ALIKE.finditer(text, *word.span()):
                char = alike.group()
                yield *alike.span(), _LOOK_ALIKES.get(char) or _MARK.sub("", normalize("NFKD", char))
