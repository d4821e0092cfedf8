"""Words of a text: where they are, how they are compared, and how much they say.

A word keeps together what a reader takes as one: ``GPT-4o``, ``C++``, ``BRCA1``, ``p53``, ``data-driven``, ``x86_64``,
``TCP/IP``, ``3.5``. In scripts that put no blanks between words, they are told as far as possible without a dictionary:
Japanese writes what has content in Chinese letters or katakana, and the rest in hiragana; in Chinese and Thai, the
commonest function words part a sentence. What is left longer than a term is no term, and is left out.
Korean words stand alone, without their particles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from context_builder.analysis.text.vocabulary import FUNCTION_WORDS, GENERAL_WORDS, VERBS

LONGEST_TERM: Final = 14
"""Characters of a term."""

UNSPACED_RUN: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f]+"
)
"""Letters and vowel signs of Thai, Lao, Burmese, Khmer, Japanese and Chinese."""

_KANA: Final = re.compile("[\u3040-\u30ff]")
_JAPANESE: Final = re.compile("[\u3005\u3400-\u9fff\uf900-\ufaff]+|[\u30a1-\u30fa\u30fc\uff66-\uff9f]+")
_THAI: Final = re.compile("[\u0e00-\u0e7f]")
_CHINESE_FUNCTION_WORDS: Final = re.compile(
    "我们|你们|他们|她们|它们|这个|那个|这些|那些|因为|所以|但是|如果|没有|什么|怎么|可以|已经|"
    "[的是在了和与我你他她它这那有不也都就或被把从到对为以及等着过吗呢吧啊很还要会能]"
)
_THAI_FUNCTION_WORDS: Final = re.compile(
    "ครั้ง|หน้า|และ|หรือ|ของ|เป็น|ที่|ใน|การ|ความ|ได้|มี|ไม่|จะ|ให้|กับ|ว่า|นี้|นั้น|แต่|โดย|จาก|ถึง|เรา|ผม|ฉัน|คุณ|เขา|ครับ|ค่ะ|จัด|วัน|แล้ว|อยู่|ต้อง|เพื่อ"
)
_MARKS: Final = re.compile(
    "[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3]"
)
"""Signs that belong to the letter before them."""


def unspaced_terms(run: str) -> Iterator[str]:
    """Yield the words with content of a run of such letters, in their order."""
    if _KANA.search(run):
        found = _JAPANESE.findall(run)
    elif _THAI.search(run):
        found = _whole(_THAI_FUNCTION_WORDS.split(run), run)
    else:
        found = _CHINESE_FUNCTION_WORDS.split(run)
    yield from (one for one in found if 2 <= len(one) <= LONGEST_TERM)


def _whole(parts: list[str], run: str) -> list[str]:
    """Return the parts, unless what parted them was within a word: then a part begins with a sign of another letter."""
    return [run] if any(part and _MARKS.match(part) for part in parts) else parts


_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
_KOREAN: Final = re.compile(
    "(?P<noun>[\uac00-\ud7a3]{2,}?|[A-Za-z0-9-]{2,})"
    "(?:(?:에서|에게|한테|까지|부터)(?:는|도)?|에는?|으로|(?P<closed>을)|(?P<open>[를는])|(?:합|됩|했습|됐습|하겠습)니다)"
)
"""A Korean noun with a particle, or with a verb made of it; 을 stands behind a consonant, 를 and 는 behind a vowel."""

_WORD: Final = re.compile(r"([^\W_]+(?:(?:['’\-‑/._&]|(?<=\d),(?=\d))[^\W_]+)*(?:\+\+|#)?(?![^\W_])|[^\W_]+)")
_LETTER: Final = "(?:[^\\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0dff])"
_WORD_WITH_MARKS: Final = re.compile(_WORD.pattern.replace("[^\\W_]", _LETTER))
"""With accents that stand alone, and the vowel signs of Hebrew, Arabic and India's scripts."""
_SPACE: Final = " \t\r\n\f\v"
_DIGITS: Final = re.compile(r"\d")
_NAMES: Final = frozenset(("IT", "US", "WHO"))
"""Function words that are names when in capitals."""

LONGEST_WORD: Final = 40
"""Characters; what is longer (a URL, a run of text without spaces) is no keyword."""

REMEMBERED: Final = 16_384
"""Words whose properties, and short keywords whose stems, are remembered, about 5 MB each: nearly all that are said
were said before. Those with digits are not remembered."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as it stands in a text, and what its form alone tells; ``joined`` when nothing but space separates it
    from the word before.

    ``is_content`` if it says something of its own: it is no function word and no stray letter (but vitamin C).
    ``is_identifier`` if the spelling marks a term: ``DNA``, ``BRCA1``, ``GPT-4o``, ``TextRank``, ``mRNA``.
    ``is_number`` if it has digits and no letters. ``specificity``, 0..1, is how much it tells about the topic.
    """

    text: str
    joined: bool
    lower: str
    stem: str
    is_content: bool
    is_identifier: bool
    is_number: bool
    specificity: float

    @classmethod
    def of(cls, text: str, joined: bool) -> Self:  # noqa: FBT001 (remembered by its position)
        lower = text.lower().replace("’", "'").replace("‑", "-")
        identifier, number = _is_identifier(text), _is_number(lower)
        specificity = _specificity(lower, identifier=identifier, number=number)
        return cls(text, joined, lower, stem(lower), _is_content(text, lower), identifier, number, specificity)


_remembered = lru_cache(REMEMBERED)(Word.of)


def _recurs(spelled: str) -> bool:
    return len(spelled) <= LONGEST_WORD and not _DIGITS.search(spelled)


def words(text: str) -> list[Word]:
    """Return the words of ``text`` in order; of scripts without blanks between words, those that can be told."""
    if text.isascii() or UNSPACED_RUN.search(text) is None:
        return _spaced(text)
    found: list[Word] = []
    at = 0
    for run in UNSPACED_RUN.finditer(text):
        found += _spaced(text[at : run.start()])
        found += (Word.of(term, False) for term in unspaced_terms(run[0]))  # noqa: FBT003
        at = run.end()
    return found + _spaced(text[at:])


def _korean_noun(spelled: str) -> str:
    """Return a Korean word without its particle, where that is no part of any usual noun."""
    if (found := _KOREAN.fullmatch(spelled)) is None:
        return spelled
    noun = found["noun"]
    is_closed = (ord(noun[-1]) - 0xAC00) % 28 > 0  # as Unicode orders the syllables, 28 to each vowel
    fits = noun.isascii() or not found["open" if is_closed else "closed"]
    return noun if fits else spelled


def _spaced(text: str) -> list[Word]:
    parts = (_WORD if text.isascii() else _WORD_WITH_MARKS).split(text)  # what is between the words, and the words
    parts[0] = "."  # no word comes before the first
    if not text.isascii() and _HANGUL.search(text):
        parts[::2] = (
            "." if any(map(_HANGUL.search, parts[max(at - 1, 0) : at + 2])) else parts[at]
            for at in range(0, len(parts), 2)
        )
        parts[1::2] = map(_korean_noun, parts[1::2])
    return [
        (_remembered if _recurs(spelled) else Word.of)(spelled, gap == " " or not gap.strip(_SPACE))
        for gap, spelled in zip(parts[::2], parts[1::2], strict=False)
    ]


def stem(lower: str) -> str:
    """Return ``lower`` without its plural ending or possessive, so that ``genes`` and ``gene`` are one.

    The S-stemmer of Harman (1991), "How effective is suffixing?": it never joins words of
    different meaning the way stronger stemmers do.
    """
    if lower.endswith("'s"):
        lower = lower[:-2]
    if len(lower) < 4 or not lower.endswith("s"):
        return lower
    if lower.endswith("ies") and lower[-4] not in "ae":
        return lower[:-3] + "y"
    if lower.endswith(("sses", "xes", "ches", "shes", "zes")):
        return lower[:-2]
    if lower.endswith(("us", "ss", "is")):
        return lower
    return lower[:-1]


def _is_identifier(spelled: str) -> bool:
    letters = spelled.strip("0123456789.,-/")
    if not letters:
        return False
    return any(char.isupper() for char in spelled[1:]) or bool(_DIGITS.search(spelled))


def _is_number(lower: str) -> bool:
    return bool(_DIGITS.search(lower)) and not any(char.isalpha() for char in lower)


def _is_content(text: str, lower: str) -> bool:
    if lower in FUNCTION_WORDS:
        return text in _NAMES
    return len(text) > 1 or text.isdigit() or text.isupper()


def _specificity(lower: str, *, identifier: bool, number: bool) -> float:
    """Longer words are rarer (Zipf's law of abbreviation); an identifier is a term whatever its length."""
    if identifier:
        return 1.0
    if lower in GENERAL_WORDS or lower in VERBS:
        return 0.25
    if number:
        return 0.2
    return min(1.0, 0.4 + 0.08 * len(lower))


_PLAIN: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*(?:\+\+|#)?")


def plain_words(text: str) -> list[str]:
    """Return the stems of ``text`` with compounds taken apart, as the domains' profiles spell them."""
    return [stem(found) for found in _PLAIN.findall(text.lower().replace("’", "'"))]


def _stems_in(keyword: str) -> tuple[str, ...]:
    return tuple(word.stem for word in words(keyword) if word.is_content)


_remembered_stems = lru_cache(REMEMBERED)(_stems_in)


def _stems_of(keyword: str) -> tuple[str, ...]:
    return (_remembered_stems if _recurs(keyword) else _stems_in)(keyword)


DEFAULT_LIMIT: Final = 2000
"""Stems remembered; about 200 kB."""


class Recurrence(Mapping[str, int]):
    """Counts in how many messages each stem has occurred, for the commonest ``limit`` stems or so.

    When twice as many are held, all counts are lowered by the smallest one that has to go, and
    what reaches zero is forgotten: a stem that recurs is never lost to a flood of new ones
    (Misra and Gries 1982, "Finding repeated elements").
    """

    def __init__(self, limit: int = DEFAULT_LIMIT, *, before: Mapping[str, int] | None = None) -> None:
        """Continue from the counts ``before``."""
        self._limit = limit
        self._counts = dict(before or {})

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts themselves, which change with the next message."""
        return self._counts

    def add(self, keywords: Iterable[str]) -> None:
        """Count the stems of one message's keywords."""
        self.count([found for keyword in keywords for found in _stems_of(keyword)])

    def count(self, stems: Iterable[str]) -> None:
        """Count the stems of one message, however often each occurs in it."""
        for found in set(stems):
            self._counts[found] = self._counts.get(found, 0) + 1
        if len(self._counts) > 2 * self._limit:
            self._forget()

    def _forget(self) -> None:
        toll = sorted(self._counts.values(), reverse=True)[self._limit]
        self._counts = {found: count - toll for found, count in self._counts.items() if count > toll}

    def __getitem__(self, found: str) -> int:
        return self._counts[found]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)
