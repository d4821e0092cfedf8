"""Praat's TextGrid (https://www.fon.hum.uva.nl/praat/manual/TextGrid_file_formats.html), long or short.

A tier is a speaker's; tiers of words and sounds are left out where others have sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs

_TOKEN: Final = re.compile(r'"((?:[^"]|"")*)"|(?<![\w\[.])(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w\].])')
_FINE: Final = re.compile(r"(?:.*[\W_])?(?:words?|phone(?:me)?s?|syllables?|segments?)", re.IGNORECASE)
_WORDS: Final = re.compile(r"(?:.*[\W_])?words?", re.IGNORECASE)
_OF_WORDS: Final = re.compile(r"(?:^|[\W_]+)words?$", re.IGNORECASE)
_MOST: Final = 1_000_000
_PAUSE: Final = 1.0
"""Seconds without words between two utterances."""


@dataclass(frozen=True, slots=True)
class _Tier:
    name: str
    intervals: list[tuple[float, float, str]]
    is_of_intervals: bool


def is_textgrid(text: str) -> bool:
    return '"TextGrid"' in text[:400] and text[:400].lstrip().startswith(("File type", "ooTextFile"))


def read_textgrid(source: Source) -> Transcript:
    """Return what is said in the tiers, in the order of time."""
    tiers = [*_tiers(source)]
    tiers = [tier for tier in tiers if tier.is_of_intervals] or tiers
    whole = [tier for tier in tiers if not _FINE.fullmatch(tier.name)]
    said = [
        Utterance(speaker_name(tier.name), words, start, until=end)
        for tier in whole
        for start, end, text in tier.intervals
        if (words := plain(text))
    ]
    if not whole:
        said = [one for tier in [one for one in tiers if _WORDS.fullmatch(one.name)] or tiers for one in _joined(tier)]
    return Transcript(sorted(said, key=lambda one: one.at or 0.0))


def _joined(tier: _Tier) -> Iterator[Utterance]:
    """Yield what the words of a tier say together, up to each pause, as of an aligner (``ida - words``)."""
    who = speaker_name(_OF_WORDS.sub("", tier.name))
    run: list[SpokenWord] = []
    for start, end, text in tier.intervals:
        if run and (start - (run[-1].until or start) > _PAUSE):
            yield from runs(run)
            run = []
        if words := plain(text):
            run.append(SpokenWord(words, who, start, end))
    yield from runs(run)


def _tiers(source: Source) -> Iterator[_Tier]:
    """Yield the tiers: of texts and numbers alone, in their order, both forms are the same."""
    body = re.sub(r"(?m)^\s*(?:item|intervals|points)\s*\[\d*\]\s*:?", "", source.text)
    tokens: Iterator[str | float] = iter(
        [one[1].replace('""', '"') if one[2] is None else float(one[2]) for one in _TOKEN.finditer(body)]
    )
    try:
        for token in tokens:
            if token not in ("IntervalTier", "TextTier"):
                continue
            name = str(next(tokens))
            _number(tokens), _number(tokens)
            count = _number(tokens)
            if not 0 <= count <= _MOST:
                raise ValueError(f"a tier of {count:g} intervals")
            intervals = []
            for _ in range(int(count)):
                start = _number(tokens)
                end = _number(tokens) if token == "IntervalTier" else start  # noqa: S105 (no password)
                intervals.append((start, end, str(next(tokens))))
            yield _Tier(name, intervals, is_of_intervals=token == "IntervalTier")  # noqa: S105 (no password)
    except StopIteration:
        source.problem("ends in the middle of a tier")


def _number(tokens: Iterator[str | float]) -> float:
    found = next(tokens)
    if isinstance(found, str):
        raise ValueError("a text stands where a TextGrid has a number")
    return found
