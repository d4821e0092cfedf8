"""ElevenLabs' JSON: ``words`` with the blanks between them and what is heard besides (https://elevenlabs.io/docs)."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import Object, each_object, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, speaker_name
from context_builder.transcript.word_runs import SpokenWord, of_channels, runs


def is_elevenlabs(document: Object) -> bool:
    channels = document.get("transcripts")
    if isinstance(channels, list):
        return any(isinstance(one, dict) and "channel_index" in one for one in channels)
    words = document.get("words")
    some = [one for one in words[:20] if isinstance(one, dict)] if isinstance(words, list) else []
    return "language_code" in document and any(one.get("type") in ("word", "spacing") for one in some)


def read_elevenlabs(document: Object, source: Source) -> Transcript:
    """Return the transcript of the words, of each channel where there are several."""
    if isinstance(document.get("transcripts"), list):
        channels = [one for _, one in each_object(document["transcripts"], "transcripts", source)]
        return Transcript(of_channels([[*_words(one.get("words") or [], source)] for one in channels]))
    return Transcript([*runs(_words(document["words"], source))])


def _words(entries: object, source: Source) -> Iterator[SpokenWord]:
    for where, one in each_object(entries, "words", source):
        if one.get("type") != "spacing" and (word := optional_text(one, "text")):
            start, end = seconds(one, "start", where, source), seconds(one, "end", where, source)
            yield SpokenWord(word, speaker_name(one.get("speaker_id")), start, end)
