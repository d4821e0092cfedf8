"""Tokens of a text: exact with a model's encoding, or estimated without it.

The one encoding shipped is ``o200k_base``, that of GPT-4o and every later OpenAI model. Its
vocabulary comes with the package, so an exact count needs no network; it costs about 50 MB and
a third of a second, at the first count, which an event loop leaves to a thread.
"""

from __future__ import annotations

import lzma
import math
import re
from base64 import b64decode
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tiktoken import Encoding

ENCODING: Final = "o200k_base"

PATTERN: Final = "|".join(
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
"""How ``o200k_base`` cuts a text into pieces before merging (tiktoken's ``openai_public.py``)."""

LONGEST_SLICE: Final = 65_536
"""Characters given to the encoder at once, or more where the text cannot be cut there."""

LONGEST_BLANK: Final = 250_000
"""Blanks in a row given to the encoder: of a few hundred thousand its regular expression overflows its stack."""

_BREAK: Final = re.compile(r"(?<=\S)(?= )")
_BLANKS: Final = re.compile(r"[^\S\r\n]+")

_LONGEST_CACHED: Final = 2_048
_CACHED_TEXTS: Final = 16_384

_SAME_RANKS: Final = frozenset({ENCODING, "o200k_harmony"})
"""Encodings that count ordinary text alike; they differ in special tokens only."""


class TokenCounter:
    """Counts tokens as ``model`` does; texts of up to 2,048 characters are counted once and remembered.

    Safe to use from several threads. Nothing is loaded before :meth:`load` or the first :meth:`count`.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        self._count_cached = lru_cache(maxsize=_CACHED_TEXTS)(_count)

    @property
    def encoding_name(self) -> str:
        """Return the encoding counted with: always ``o200k_base``."""
        return ENCODING

    @cached_property
    def assumed(self) -> bool:
        """Return whether ``o200k_base`` is a guess: the model is unknown, or has another encoding."""
        from tiktoken.model import encoding_name_for_model

        try:
            return encoding_name_for_model(self.model.rpartition("/")[2]) not in _SAME_RANKS
        except KeyError:
            return True

    def load(self) -> None:
        """Load the vocabulary now; from a thread, so that the first count does not hold up a loop."""
        _count("")

    def count(self, text: str) -> int:
        """Return the tokens of ``text``; what looks like a special token is counted as plain text.

        Exact, but for a run of more than 250,000 blanks, which the encoder itself fails at: it is cut
        there, and each cut changes the count by a token or two.
        """
        return _count(text) if len(text) > _LONGEST_CACHED else self._count_cached(text)


def count_tokens(text: str) -> int:
    """Return the tokens of ``text`` in ``o200k_base``, as :class:`TokenCounter` does, but without caching."""
    return _count(text)


def token_ranks(text: str) -> list[int]:
    """Return the tokens of a short ``text`` by their ranks in the vocabulary: the rarer the token, the higher."""
    return _loaded().encode_ordinary(text)


def _count(text: str) -> int:
    encoding = _loaded()
    return sum(len(encoding.encode_ordinary(piece)) for piece in slices(text))


def _loaded() -> Encoding:
    with _loading:  # once, even if several threads count first
        return _encoding()


_loading = Lock()


@cache
def _encoding() -> Encoding:
    """Return the shipped encoding, one for the process, knowing no special tokens."""
    from tiktoken import Encoding

    packed = files("context_builder.tokens.data") / f"{ENCODING}.tiktoken.xz"
    with packed.open("rb") as file, lzma.open(file) as lines:
        ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}
    encoding = Encoding(ENCODING, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    ranks.clear()  # the encoder has its own copy; this one would take 20 MB more for as long as the process lives
    return encoding


def slices(text: str) -> Iterator[str]:
    """Yield ``text`` in slices, cut where the pattern always cuts: before a blank that follows a non-blank."""
    start = 0
    while len(text) - start > LONGEST_SLICE:
        found = _BREAK.search(text, start + LONGEST_SLICE)
        end = found.start() if found else len(text)
        yield from _parted(text[start:end])
        start = end
    yield text[start:]


def _parted(text: str) -> Iterator[str]:
    """Yield ``text``, cut where more blanks follow each other than the encoder can take."""
    start = 0
    for run in _BLANKS.finditer(text) if len(text) > LONGEST_BLANK else ():
        for end in range(run.start() + LONGEST_BLANK, run.end(), LONGEST_BLANK):
            yield text[start:end]
            start = end
    yield text[start:]


def estimate_tokens(text: str) -> int:
    """Return an estimate of the tokens of ``text``: one for every four characters, rounded up; meant for English."""
    return math.ceil(len(text) / 4)
