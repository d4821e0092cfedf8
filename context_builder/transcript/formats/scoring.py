"""Transcripts as NIST's scoring has them: segments (.stm) and words with their times (.ctm).

https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm
"""

from __future__ import annotations

import re
from typing import Final

from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs

_STM: Final = re.compile(
    r"\S+\s+\S+\s+(?P<who>\S+)\s+(?P<start>\d+(?:\.\d+)?)\s+(?P<end>\d+(?:\.\d+)?)\s+(?:<[^<>\s]*>\s*)?(?P<text>.*)"
)
_CTM: Final = re.compile(
    r"\S+\s+(?P<channel>\S+)\s+(?P<start>\d+(?:\.\d+)?)\s+(?P<long>\d+(?:\.\d+)?)\s+(?P<word>\S+)(?:\s+(?:[\d.]+|NA))?(?:\s+(?P<kind>\S+)(?:\s+(?P<who>\S+))?)?\s*"
)
_UNSAID: Final = ("IGNORE_TIME_SEGMENT_IN_SCORING", "<NA>")


def read_stm(source: Source) -> Transcript:
    """Return the segments of an .stm file; a line that is none is noted."""
    said: list[Utterance] = []
    for number, line in _lines(source):
        found = _STM.fullmatch(line)
        if found is None:
            source.problem("not a segment with a speaker and two times", number)
        elif found["text"].strip() and found["text"].strip() not in _UNSAID:
            text = " ".join(found["text"].split())
            said.append(Utterance(speaker_name(found["who"]), text, float(found["start"]), until=float(found["end"])))
    return Transcript(sorted(said, key=lambda one: one.at or 0.0))


def read_ctm(source: Source) -> Transcript:
    """Return the words of a .ctm file as what each speaker says; a line that is none is noted."""
    words: list[SpokenWord] = []
    channels = {line.split()[1] for _, line in _lines(source) if len(line.split()) > 1}
    for number, line in _lines(source):
        found = _CTM.fullmatch(line)
        if found is None:
            source.problem("not a word with a time and a duration", number)
        elif found["kind"] in (None, "lex") and not found["word"].startswith("<"):
            start = float(found["start"])
            who = UNKNOWN_SPEAKER if found["who"] in (None, "unknown") else speaker_name(found["who"])
            if who == UNKNOWN_SPEAKER and len(channels) > 1:
                who = channel_name(found["channel"])
            words.append(SpokenWord(found["word"], who, start, start + float(found["long"])))
    return Transcript([*runs(sorted(words, key=lambda word: word.at or 0.0))])


def _lines(source: Source) -> list[tuple[int, str]]:
    numbered = enumerate(source.text.split("\n"), start=1)
    return [(number, line.strip()) for number, line in numbered if line.strip() and not line.startswith(";;")]
