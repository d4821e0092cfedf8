"""AssemblyAI's transcripts: utterances where speakers were told apart, else words, else the text alone.

Times are in milliseconds (https://www.assemblyai.com/docs/api-reference/transcripts/get).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import Object, each_object, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs, sentences

_MILLISECOND: Final = 0.001
_OTHERS: Final = frozenset(
    ("speakerId", "speaker_id", "speaker_name", "speakerName", "start_time", "startTime", "snippet")
)
"""Fields of utterances that are not its own."""


def is_assemblyai(document: Object) -> bool:
    utterances = document.get("utterances")
    some = [one for one in utterances[:5] if isinstance(one, dict)] if isinstance(utterances, list) else []
    is_other = any(one.keys() & _OTHERS or isinstance(one.get("start"), float) for one in some)
    if ("utterances" in document and not is_other) or _parts(document):
        return True
    if "segments" in document:
        return "audio_url" in document
    words = document.get("words")
    is_own = not words or (isinstance(words, list) and any(isinstance(one, dict) and "text" in one for one in words))
    return "audio_url" in document or ("status" in document and is_own and ("words" in document or "text" in document))


def _parts(document: Object) -> object:
    """Return the sentences or paragraphs, for which one may ask alone."""
    parts = document.get("sentences", document.get("paragraphs"))
    return parts if isinstance(parts, list) and "audio_duration" in document else None


def read_assemblyai(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` for one that failed or is not ready."""
    utterances = document.get("utterances") or _parts(document) or document.get("utterances")
    if utterances is not None and not isinstance(utterances, list):
        source.problem("utterances is not a list")
    if isinstance(utterances, list) and utterances:
        return Transcript([*_utterances(utterances, source)])
    words = document.get("words")
    if isinstance(words, list) and words:
        return Transcript([*runs(_words(words, source))])
    if text := optional_text(document, "text"):
        return Transcript([Utterance(UNKNOWN_SPEAKER, one) for one in sentences(text)])
    status = document.get("status")
    if status not in (None, "completed"):
        raise ValueError(f"this transcript's status is {str(status)[:40]!r}: {optional_text(document, 'error')[:200]}")
    return Transcript([])


def _utterances(entries: object, source: Source) -> Iterator[Utterance]:
    for where, one in each_object(entries, "utterances", source):
        if words := optional_text(one, "text"):
            start, end = (seconds(one, key, where, source, _MILLISECOND) for key in ("start", "end"))
            yield Utterance(_speaker(one), words, start, until=end)
        elif not isinstance(one.get("text"), str):
            source.problem(f'{where} has no "text"')


def _words(entries: object, source: Source) -> Iterator[SpokenWord]:
    for where, one in each_object(entries, "words", source):
        if word := optional_text(one, "text", "word"):
            start, end = (seconds(one, key, where, source, _MILLISECOND) for key in ("start", "end"))
            yield SpokenWord(word, _speaker(one), start, end)


def _speaker(entry: Object) -> str:
    words = entry.get("words")
    first = words[0] if isinstance(words, list) and words and isinstance(words[0], dict) else {}
    speaker, channel = entry.get("speaker", first.get("speaker")), entry.get("channel")
    return channel_name(channel) if speaker is None and channel is not None else speaker_name(speaker)
