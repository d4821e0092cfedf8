"""Seed phrases of wallets: 12 to 24 words behind their name, or of BIP 39's list, on however many lines.

The list (https://github.com/bitcoin/bips/blob/master/bip-0039.mediawiki) lacks most words that sentences are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

from context_builder.redaction.secret import Secret, has_one_of

SEED_HINTS: Final = ("phrase", "words", "mnemonic", "seed", "bip39", "bip-39")
SEED_NAME: Final = r"\b(?:(?:seed|recovery|mnemonic|backup|secret|wallet)[ _-](?:phrase|words|seed)|mnemonic|bip-?39)"
SEED_WORD: Final = (
    r"(?!(?:the|and|for|are|was|were|with|from|has|had|your|their|them|not|but|his|her|its|our|been"
    r"|which|should|without|would|could|some|these|those|many|most)\b)[a-z]{3,8}"
)
"""A word such as lists of them have, which is none of those that sentences are made of."""
_SAID: Final = (
    r"(?:,[\w\s'’]{1,30}(?=:))?[\"'`*]{0,3}(?:\s(?:for|of|to)(?:\s[\w'’-]{1,20}){1,3}?)?"
    r"(?:\s{0,3}(?:[:=#|(–-]|->|→)|\s(?:is|was|ist|lautet|est|es|è)(?:\snow|:)?|['’]s(?=\s)|\s)\s{0,3}[\"'`*(]{0,2}"
)
_NUMBER: Final = r"(?:\d{1,2}[.):]?\s{0,3})?"
_NEXT: Final = rf"[\s,>|*]{{1,16}}{_NUMBER}{SEED_WORD}(?![^\W_])"
_NAMED: Final = re.compile(
    rf"{SEED_NAME}{_SAID}(?P<value>{_NUMBER}{SEED_WORD}(?![^\W_])(?:{_NEXT}){{11,23}})", re.IGNORECASE
)
_NAMED_AT_END: Final = re.compile(
    rf"{SEED_NAME}{_SAID}(?:{_NUMBER}{SEED_WORD}(?![^\W_])(?:{_NEXT}){{0,22}})?[\s,>|*\d.):]{{0,20}}(?<![^\W_])[a-z]{{0,8}}\Z",
    re.IGNORECASE,
)

_BETWEEN: Final = r"[\s\d,.;:()|>*#\"'`\[\]_+-]{1,16}"
_LISTED: Final = re.compile(rf"(?<![^\W_])(?:[A-Za-z]{{3,8}}{_BETWEEN}){{11,}}[A-Za-z]{{3,8}}(?![^\W\d_])")
_WORD: Final = re.compile(r"[^\W\d_]+")
_APART: Final = re.compile(_BETWEEN)
_LEAST_WORDS: Final = 12
_LEAST_DIFFERENT: Final = 8
"""Numbers that are read out, and what somebody stammers, repeat a few words."""
_LOOKED_AT: Final = 600
"""Characters before a text's last line in which a phrase that goes on may begin."""


@cache
def seed_words() -> frozenset[str]:
    """Return the 2048 words of BIP 39's English list."""
    return frozenset(files("context_builder.redaction").joinpath("seed_words.txt").read_text("ascii").split())


def seed_phrases(text: str) -> Iterator[Secret]:
    """Yield the seed phrases of a text, which may have many lines."""
    if has_one_of(SEED_HINTS, text.lower()):
        yield from (Secret(*named.span("value"), "PASSWORD") for named in _NAMED.finditer(text))
    for shape in _LISTED.finditer(text):
        for run in _runs(text, *shape.span()):
            words = [word.group().lower() for word in run]
            if len(words) >= _LEAST_WORDS and len(set(words)) >= _LEAST_DIFFERENT:
                yield Secret(run[0].start(), run[-1].end(), "PASSWORD")


def may_go_on_from(text: str) -> int:
    """Return where a seed phrase may begin that goes on behind the text: at its end, if there is none."""
    begun = max(0, text.rfind("\n", 0, -1) - _LOOKED_AT)
    *_, last = [], *_runs(text, begun, len(text), is_open=True)
    is_at_end = last and (last[-1].end() == len(text) or _APART.fullmatch(text, last[-1].end()))
    named = _NAMED_AT_END.search(text, begun) if has_one_of(SEED_HINTS, text[begun:].lower()) else None
    return min(last[0].start() if is_at_end else len(text), named.start() if named else len(text))


def _runs(text: str, start: int, end: int, *, is_open: bool = False) -> Iterator[list[re.Match[str]]]:
    """Yield the runs of the list's words; the last word of an open text may be the beginning of one."""
    run: list[re.Match[str]] = []
    for word in _WORD.finditer(text, start, end):
        is_listed = word.group().lower() in seed_words() or (is_open and word.end() == len(text))
        if run and not (is_listed and _APART.fullmatch(text, run[-1].end(), word.start())):
            yield run
            run = []
        if is_listed:
            run.append(word)
    if run:
        yield run
