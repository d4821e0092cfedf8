"""Shorter text that still identifies what it is about: no model, no vocabulary, only function words."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

LEVELS: Final = 2
"""1 drops function words; 2 keeps what identifies things and a few content words."""

_CONTENT_WORDS_KEPT: Final = 6

_FUNCTION_WORDS: Final = frozenset(
    """
    a about above after again all also although am an and any anyway are as at actually basically be because been
    before being below between both but by can could did do does doing done down during each either else even ever
    every few for from further get gets getting go goes going gonna got had has have having he her here hers him his
    how however i if in into is it its itself just kind know let like lot lots make makes many may maybe me mean might
    more most much must my myself now of off oh okay on once one only onto or other our ours out over own perhaps
    please pretty quite rather really right said same say says see seem seems shall she should since so some
    something sort still such sure take than that the their theirs them then there these they thing things think this
    those though through thus to too um uh under until up upon us very want wants was way we well went were what
    whatever when where whether which while who whom whose why will with within would yeah yes yet you your yours
    """.split()
)

_NEGATIONS: Final = frozenset({"no", "not", "never", "none", "without", "cannot", "neither", "nor"})
_WORD: Final = re.compile(r"\S+")
_EDGES: Final = ".,;:!?\"'()[]{}“”‘’…"
_SENTENCE_END: Final = (".", "!", "?", ":")


def single_line(text: str) -> str:
    """``text`` on one line, without control characters, so that a point is always one line."""
    visible = "".join(" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text)
    return " ".join(visible.split())


def condense(text: str, level: int) -> str:
    """``text`` without what can be spared at ``level`` (1 to :data:`LEVELS`), in its own words and order."""
    words = _WORD.findall(text)
    starts = [True, *(word.endswith(_SENTENCE_END) for word in words[:-1])]
    kept: list[str] = []
    content = 0
    for word, begins in zip(words, starts, strict=True):
        bare = word.strip(_EDGES)
        if not bare:
            continue
        if _identifies(bare, begins):
            kept.append(word)
        elif bare.lower() not in _FUNCTION_WORDS and not _is_contraction(bare):
            content += 1
            if level < LEVELS or content <= _CONTENT_WORDS_KEPT or bare.lower() in _NEGATIONS:
                kept.append(word if level < LEVELS else bare)
    return " ".join(kept) or text


def _identifies(word: str, begins_sentence: bool) -> bool:  # noqa: FBT001
    """Numbers, acronyms, identifiers, and capitalized words inside a sentence."""
    if any(char.isdigit() for char in word) or any(char.isupper() for char in word[1:]) or "_" in word:
        return True
    return word[0].isupper() and not begins_sentence and word.lower() not in _FUNCTION_WORDS


def _is_contraction(word: str) -> bool:
    stem, apostrophe, _ = word.lower().replace("’", "'").partition("'")
    return bool(apostrophe) and stem in _FUNCTION_WORDS
