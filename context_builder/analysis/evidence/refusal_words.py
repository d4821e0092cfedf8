"""The words by which a point is taken for a model's refusal.

In a refusal, a model or a gateway speaks of itself and of its task. One that names the topic ("I cannot summarize the
budget meeting in Oslo") shares words with the talk, so sharing cannot tell it from a point. It is told by what it says
besides: words of two of the groups in ``refusal_words.json`` that nobody in the talk used. One group alone is an honest
paraphrase ("Bob cannot come" for "I won't make it"). The list is not complete and need not be: a refusal in another
language, or of one group alone, is told by how little of it was said.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import regex

_UNSPACED: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")

SUSPICIOUS: Final = 2
"""Groups of which a point uses words that its messages do not use, from which it is taken for a refusal."""


@cache
def _patterns() -> tuple[regex.Pattern[str], ...]:
    """Return a pattern for each group; compiled at first use, since few processes ask a model."""
    groups: Mapping[str, Sequence[str]] = json.loads((files(__package__) / "refusal_words.json").read_text("utf-8"))
    return tuple(regex.compile("|".join(_alternative(_plain(word)) for word in words)) for words in groups.values())


def _alternative(word: str) -> str:
    """Return a pattern in which ``*`` at an end stands for the rest of a word, else for up to twelve words."""
    if _UNSPACED.search(word):
        return str(regex.escape(word))
    start, end = "" if word.startswith("*") else r"(?<!\w)", "" if word.endswith("*") else r"(?!\w)"
    around = (r"\s+".join(map(regex.escape, part.split())) for part in word.strip("*").split(" * "))
    inner = r"\s+(?:\S+\s+){0,12}".join(around).replace(r"\*", r"\w*")
    return f"{start}{inner}{end}"


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


def reads_like_a_refusal(text: str, sources: Iterable[str], groups: int = SUSPICIOUS) -> bool:
    """Return whether ``text`` speaks of its writer's task in a way that no text of ``sources`` does.

    It takes words of as many ``groups``.
    """
    text = _plain(text)
    found = [pattern for pattern in _patterns() if pattern.search(text)]
    if len(found) < groups:
        return False
    said = [_plain(source) for source in sources]
    return sum(not any(map(pattern.search, said)) for pattern in found) >= groups
