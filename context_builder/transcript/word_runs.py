"""Words with their times and speakers become utterances here: one for each turn, in sentences where a turn is long."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.utterance import Utterance

SENTENCES: Final = 240
"""Characters of a turn after which a sentence's end ends an utterance."""

LONGEST: Final = 1_000
"""Characters of an utterance that ends wherever it is."""

_ENDS: Final = (".", "?", "!", "…", "。", "？", "！", "।", "؟")


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word as it was spoken, with its punctuation; one that is ``joined`` follows the one before without a blank."""

    text: str
    speaker: str
    at: float | None = None
    until: float | None = None
    joined: bool = False


def runs(words: Iterable[SpokenWord]) -> Iterator[Utterance]:
    """Yield an utterance for each run of words by the same speaker, in their order; long ones by sentences."""
    run: list[SpokenWord] = []
    length = 0
    for word in words:
        last = run[-1] if run else None
        is_full = length > LONGEST or (length > SENTENCES and last is not None and last.text.endswith(_ENDS))
        if last is not None and (word.speaker != last.speaker or (is_full and not word.joined)):
            yield from _utterance(run)
            run, length = [], 0
        run.append(word)
        length += len(word.text) + 1
    yield from _utterance(run)


def of_channels(channels: Sequence[Sequence[SpokenWord]]) -> list[Utterance]:
    """Return what was said on several channels at once, in the order of time.

    A channel's turn ends where another one speaks while it is silent.
    """
    starts = [sorted(word.at for word in words if word.at is not None) for words in channels]
    said: list[Utterance] = []
    for place, words in enumerate(channels):
        others = [moments for other, moments in enumerate(starts) if other != place]
        turn: list[SpokenWord] = []
        timed: SpokenWord | None = None  # the last one, as punctuation has no times
        for word in words:
            if turn and timed and _interrupted(timed, word, others):
                said += runs(turn)
                turn = []
            turn.append(word)
            timed = timed if word.at is None else word
        said += runs(turn)
    return sorted(said, key=lambda one: one.at or 0.0)


def _interrupted(before: SpokenWord, after: SpokenWord, others: Sequence[Sequence[float]]) -> bool:
    if before.at is None or after.at is None:
        return False
    silent = before.until if before.until is not None else before.at
    return any(bisect_left(moments, silent) < bisect_right(moments, after.at) for moments in others)


def _utterance(run: Sequence[SpokenWord]) -> Iterator[Utterance]:
    text = "".join(f"{'' if word.joined else ' '}{word.text}" for word in run)
    if words := " ".join(text.split()):
        yield Utterance(run[0].speaker, words, run[0].at, until=run[-1].until)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, several where they are short."""
    yield from (one.text for one in runs(SpokenWord(word, "") for word in text.split()))
