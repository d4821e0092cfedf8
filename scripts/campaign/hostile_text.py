"""Text as nobody writes it but somebody may: all of Unicode, disguised letters, lengths out of proportion."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from scripts.campaign.sentences import MARKUP, SENTENCES

WORDS: Final = (
    "neuron enzyme membrane quantum lattice theorem variance compiler kernel latency diagnosis cortex therapy "
    "attention turbine bridge circuit market revenue contract society ritual wetland carbon treaty statute ethics "
    "virtue archive empire grammar dialect gradient dataset layout typography actuator gripper we think measured "
    "because however compared with the larger sample from last week and nobody expected that at all"
).split()

_SURROGATES: Final = range(0xD800, 0xE000)
_PLANES: Final = (*(range(at << 16, (at + 1) << 16) for at in range(17)), range(0x20), range(0x80, 0x100))
"""The last two, control characters and what follows ASCII, come as often as a whole plane."""

_BIDI: Final = "\u200e\u200f\u061c\u202a\u202b\u202d\u202e\u202c\u2066\u2067\u2068\u2069"
_MARKS: Final = "".join(map(chr, (*range(0x300, 0x370), *range(0x1AB0, 0x1ACF), *range(0x20D0, 0x20F1), 0xFE0F)))
_EMOJI: Final = ("👩🏽‍🚀", "🏳️‍🌈", "🇺🇳", "1️⃣", "👨‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️‍🔥", "\u200d", "🫱🏻‍🫲🏿")
_SPACES: Final = (" ", " ", " ", "\n", "\t", "\u00a0", "\u2003", "\u2028", "\u3000", "\r\n", " – ", ", ")
_LONG: Final = (500, 2_000, 8_000, 35_000)
_LONG_PLAIN: Final = (*_LONG, 200_000)
"""Characters. JSON may take six bytes for one, and of a delivery 262,144 are read."""

FRONT_ONLY: Final = 1_000
"""Characters; of a longer text that is asked about in pieces, the first piece surely has the beginning whole."""


class HostileText:
    """Makes up texts with ``rng``; the same one makes the same texts."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._kinds: Mapping[Callable[[], str], int] = {
            self.words: 60,
            self.sentence: 50,
            self.disguised: 30,
            self._any_characters: 16,
            self._cased: 10,
            self._bidirectional: 8,
            self._combined: 8,
            self._emoji: 4,
            self._markup: 10,
            self._long: 1,
        }

    def around(self, token: str) -> str:
        """A text with ``token`` in it as a word of its own."""
        (kind,) = self._rng.choices(list(self._kinds), list(self._kinds.values()))
        text = kind()
        if len(text) > FRONT_ONLY:
            return f"{token} {text}"
        if self._rng.random() < 0.5:
            return f"{token}{self._rng.choice(_SPACES)}{text}"
        return f"{text}{self._rng.choice(_SPACES)}{token}"

    def short(self, longest: int = 30) -> str:
        """A text for a name or an id."""
        kind = self._rng.choice((self.words, self._any_characters, self._cased, self._bidirectional, self._emoji))
        return kind()[: self._rng.randint(1, longest)]

    def words(self) -> str:
        return " ".join(self._rng.choices(WORDS, k=self._rng.randint(3, 14)))

    def sentence(self) -> str:
        """English half of the time: what looks for sentences by their words knows that best."""
        language = "English" if self._rng.random() < 0.5 else self._rng.choice([*SENTENCES])
        return self._rng.choice(SENTENCES[language]).format(self._rng.choice((self.words, self._cased))())

    def disguised(self) -> str:
        """A sentence in which some letters are others that are equal to them when case is ignored."""
        words = self.sentence().split(" ")
        for place in self._rng.sample(range(len(words)), k=min(len(words), self._rng.randint(1, 3))):
            words[place] = self._disguise(words[place])
        return " ".join(words)

    def _disguise(self, word: str) -> str:
        same = lookalikes()
        return "".join(self._rng.choice(same.get(letter.lower(), letter)) for letter in word)

    def _any_characters(self) -> str:
        """Of each plane as many: assigned or not, private, control."""
        planes = self._rng.choices(_PLANES, k=self._rng.randint(1, 60))
        return "".join(chr(code) for plane in planes if (code := self._rng.choice(plane)) not in _SURROGATES)

    def _cased(self) -> str:
        return "".join(self._rng.choices(cased(), k=self._rng.randint(1, 20)))

    def _bidirectional(self) -> str:
        words = [self.words(), self._rng.choice(SENTENCES["Hebrew"]).format("abc 123"), "שלום", "مرحبا 42", "left"]
        return "".join(f"{self._rng.choice(_BIDI)}{word}" for word in self._rng.sample(words, k=3))

    def _combined(self) -> str:
        stacks = (self._rng.choices(_MARKS, k=self._rng.choice((0, 1, 2, 9))) for _ in iter(int, 1))
        return "".join("".join((letter, *marks)) for letter, marks in zip(self.words(), stacks, strict=False))

    def _emoji(self) -> str:
        return "".join(self._rng.choices(_EMOJI, k=self._rng.randint(1, 20)))

    def _markup(self) -> str:
        return self._rng.choice(MARKUP).format(self.words())

    def _long(self) -> str:
        pieces = (self._rng.choice(WORDS), f"{self.sentence()} ", "ﷺ", "<v ", "\u0301", "I prefer ", "\n")
        piece = self._rng.choice(pieces)
        length = self._rng.choice(_LONG_PLAIN if piece.isascii() and piece.isprintable() else _LONG)
        return (piece * (length // len(piece) + 1))[:length]


@cache
def cased() -> Sequence[str]:
    """Every character that has another case, or stands for such ones."""
    every = (chr(code) for code in range(0x110000) if code not in _SURROGATES)
    return [c for c in every if not c.lower() == c.upper() == c.casefold() == c]


@cache
def lookalikes() -> Mapping[str, Sequence[str]]:
    """For each letter of ASCII the characters that are it, or begin with it, in another case or a plain form."""
    same: dict[str, list[str]] = defaultdict(list)
    for c in cased():
        forms = {c.lower()[0], c.upper()[0].lower(), c.casefold()[0], unicodedata.normalize("NFKC", c)[0].lower()}
        forms |= {letter for letter in "iks" if re.fullmatch(letter, c, re.IGNORECASE)}
        for form in forms:
            if form.isascii():
                same[form].append(c)
    return same
