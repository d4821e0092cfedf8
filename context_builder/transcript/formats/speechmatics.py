"""Speechmatics' JSON: ``results`` of words and punctuation, each with its speaker or channel.

https://docs.speechmatics.com/speech-to-text/batch/output
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from context_builder.transcript.fields import Object, each_object, inner, optional_text, plain, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, channel_name, name_of, speaker_name
from context_builder.transcript.word_runs import SpokenWord, of_channels

_BLANKLESS = frozenset({"cmn", "ja", "yue", "th"})
"""Languages that are written without blanks between words."""


def is_speechmatics(document: Object) -> bool:
    results = document.get("results")
    return isinstance(results, list) and any(
        isinstance(one, dict) and "alternatives" in one and "transcript" not in _best(one["alternatives"])
        for one in results
    )


def read_speechmatics(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where ``results`` is no list."""
    language = optional_text(inner(document, "metadata", "transcription_config"), "language")
    words = [*words_of(document["results"], "results", source, blankless=language in _BLANKLESS)]
    channels: dict[str, list[SpokenWord]] = {}
    for channel, word in words:
        channels.setdefault(channel, []).append(word)
    return Transcript(of_channels([*channels.values()]))


def words_of(
    results: object, name: str, source: Source, *, blankless: bool = False
) -> Iterator[tuple[str, SpokenWord]]:
    """Yield the words of results with their channels."""
    last: dict[str, str] = {}
    opens: set[str] = set()  # channels whose last mark is attached to the next word, as an opening question mark is
    for where, one in each_object(results, name, source):
        best = _best(one.get("alternatives"))
        content = plain(best["content"]) if isinstance(best.get("content"), str) else ""
        if not content or one.get("type") == "speaker_change":
            continue
        channel = str(one.get("channel") or "")
        attached = one.get("type") == "punctuation" and one.get("attaches_to") != "next"
        speaker = _speaker(best.get("speaker"), channel)
        if attached and best.get("speaker") in (None, "UU"):
            speaker = last.get(channel, speaker)
        joined = (attached and one.get("attaches_to") in ("previous", "both", None)) or (blankless and channel in last)
        joined = joined or channel in opens
        opens.discard(channel)
        if one.get("type") == "punctuation" and one.get("attaches_to") in ("next", "both"):
            opens.add(channel)
        last[channel] = speaker
        start, end = seconds(one, "start_time", where, source), seconds(one, "end_time", where, source)
        yield channel, SpokenWord(content, speaker, start, end, joined)


def _best(alternatives: object) -> Object:
    listed: Sequence[object] = alternatives if isinstance(alternatives, list) else []
    return next((one for one in listed if isinstance(one, dict)), {})


def _speaker(label: object, channel: str) -> str:
    if not channel:
        return speaker_name(label)
    named = name_of(channel)
    shown = channel_name(named[8:]) if named.lower().startswith("channel_") else named
    return shown if label in (None, "UU") or label == channel else f"{shown} {speaker_name(label)}"
