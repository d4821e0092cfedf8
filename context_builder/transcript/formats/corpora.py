"""Transcripts of corpora and of research on speech: NIST's scoring, TalkBank's CHAT, and Praat's TextGrid.

* NIST's segments (.stm) and words with their times (.ctm) (https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm)
* CHAT (.cha): ``*IDA:``, and tiers about what she says (https://talkbank.org/0info/manuals/CHAT.html)
* TextGrid, long or short: a tier is a speaker's; tiers of words and sounds are left out where others have sentences
  (https://www.fon.hum.uva.nl/praat/manual/TextGrid_file_formats.html)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from context_builder.transcript.fields import plain
from context_builder.transcript.moments import in_heading
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs

_STM: Final = re.compile(
    r"\S+\s+\S+\s+(?P<who>\S+)\s+(?P<start>\d+(?:\.\d+)?)\s+(?P<end>\d+(?:\.\d+)?)\s+(?:<[^<>\s]*>\s*)?(?P<text>.*)"
)
_CTM: Final = re.compile(
    r"\S+\s+(?P<channel>\S+)\s+(?P<start>\d+(?:\.\d+)?)\s+(?P<long>\d+(?:\.\d+)?)\s+(?P<word>\S+)(?:\s+(?:[\d.]+|NA))?(?:\s+(?P<kind>\S+)(?:\s+(?P<who>\S+))?)?\s*"
)
_NOT_SPEECH: Final = ("IGNORE_TIME_SEGMENT_IN_SCORING", "<NA>")


def read_stm(source: Source) -> Transcript:
    """Return the segments of an .stm file; any other line is noted."""
    said: list[Utterance] = []
    for number, line in _segments(source):
        found = _STM.fullmatch(line)
        if found is None:
            source.problem("not a segment with a speaker and two times", number)
        elif found["text"].strip() and found["text"].strip() not in _NOT_SPEECH:
            text = " ".join(found["text"].split())
            said.append(Utterance(speaker_name(found["who"]), text, float(found["start"]), until=float(found["end"])))
    return Transcript(sorted(said, key=lambda one: one.at or 0.0))


def read_ctm(source: Source) -> Transcript:
    """Return the words of a .ctm file as what each speaker says; any other line is noted."""
    words: list[SpokenWord] = []
    channels = {line.split()[1] for _, line in _segments(source) if len(line.split()) > 1}
    for number, line in _segments(source):
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


def _segments(source: Source) -> list[tuple[int, str]]:
    numbered = enumerate(source.text.split("\n"), start=1)
    return [(number, line.strip()) for number, line in numbered if line.strip() and not line.startswith(";;")]


_BULLET: Final = re.compile("\x15(?:[^\x15\\d]*)(\\d+)_(\\d+)\x15")
_CODES: Final = re.compile(r"\[[^\[\]]*\]|&[=~+-]?\S+|[<>‹›↑↓]|\+[/.\"!?,<^=]+|\(\.+\)")
"""What is beside the words: comments, events, fillers, and signs of how something was said."""


def is_chat(text: str) -> bool:
    return bool(re.match(r"\s*@(?:UTF8|Begin|PID|Font|Window)\b", text[:400]))


def read_chat_file(source: Source) -> Transcript:
    """Return what the main tiers say, by the participants' names."""
    lines: list[str] = []
    for line in source.text.split("\n"):
        if line.startswith(("\t", " ")) and lines:
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    names = _participants(next((line for line in lines if line.startswith("@Participants:")), ""))
    said: list[Utterance] = []
    for line in lines:
        who, colon, text = line.partition(":")
        if not (who.startswith("*") and colon):
            continue
        times = _BULLET.search(text)
        words = re.sub(r" (?=[.?!])", "", plain(_CODES.sub(" ", _BULLET.sub(" ", text))))
        start, end = ((int(one) / 1000) for one in times.groups()) if times else (None, None)
        if re.search(r"\w", words) and words not in ("xxx.", "yyy.", "www.", "0."):
            name = who.removeprefix("*").strip()
            said.append(Utterance(speaker_name(names.get(name, name)), words, start, until=end))
    dates = [line.partition(":")[2] for line in lines if line.startswith("@Date:")]
    return Transcript(said, in_heading(dates))


def _participants(line: str) -> dict[str, str]:
    """Return what the participants are called: a code, a name that may be missing, and a role."""
    parts = [one.split() for one in line.partition(":")[2].split(",")]
    return {one[0]: one[1].replace("_", " ") for one in parts if len(one) > 2}


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
