"""JSON of Whisper and of programs that descend from it.

``segments`` (OpenAI's own, its interface's ``verbose_json`` and ``diarized_json``, faster-whisper, WhisperX), and
``chunks`` with their ``speakers`` (Transformers, insanely-fast-whisper), and ``transcription``, with times in
milliseconds (whisper.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import (
    Object,
    each_object,
    inner,
    optional_text,
    plain,
    seconds,
    some_objects,
    span,
)
from context_builder.transcript.labels import labelled
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs, sentences, with_signs

_ALONE: Final = frozenset({"text", "language", "usage", "logprobs", "task", "duration", "x_groq", "model"})
"""Fields beside a text that stands alone."""


_TOKEN: Final = re.compile(r"<\|[^<>|\s]{1,40}\|>")
"""A token of the model that is not a word, such as of a language or a time."""


def is_whisper(document: Object) -> bool:
    is_text = isinstance(document.get("text"), str) and set(document) <= _ALONE
    return is_text or _has_words(document) or any(key in document for key in ("segments", "chunks"))


def read_whisper(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where its segments are not a list."""
    for key in ("speakers", "speaker_segments", "segments", "chunks"):
        entries = document.get(key)
        is_listed = any("text" in one for one in some_objects(entries))
        if entries is not None and (is_listed or (key != "speakers" and entries != [])):
            return Transcript(read_segments(entries, key, source))
    text = plain(_TOKEN.sub(" ", optional_text(document, "text")))
    if _has_words(document):
        words = [*_words(document.get("words", document.get("result")), "words", source)]
        return Transcript([*runs(with_signs(words, text))])
    return Transcript([Utterance(UNKNOWN_SPEAKER, one) for one in sentences(text)])


def _has_words(document: Object) -> bool:
    """Return whether a document has words with their times in place of segments; Vosk has them in ``result``."""
    words = some_objects(document.get("words", document.get("result")))
    return "text" in document and any("word" in one for one in words)


def read_segments(entries: object, name: str, source: Source) -> list[Utterance]:
    """Return what segments say, each thing once."""
    said: list[Utterance] = []
    for where, one in each_object(entries, name, source):
        if not isinstance(one.get("text"), str):
            source.problem(f'{where} has no "text"')
            continue
        said += _segment(one, where, source)
    return once(labelled(said))


def _segment(one: Object, where: str, source: Source) -> Iterator[Utterance]:
    at, until = _times(one, where, source)
    words = one.get("words")
    if one.get("speaker") is None and any(word.get("speaker") is not None for word in some_objects(words)):
        yield from runs(_words(words, where, source))
    elif text := plain(_TOKEN.sub(" ", optional_text(one, "text"))):
        channel, speaker = one.get("channel"), one.get("speaker", one.get("speaker_id"))
        is_channel = speaker is None and isinstance(channel, int | str) and not isinstance(channel, bool)
        yield Utterance(channel_name(channel) if is_channel else speaker_name(speaker), text, at, until=until)


def _times(one: Object, where: str, source: Source) -> tuple[float | None, float | None]:
    match one.get("timestamp"):
        case [start, end]:
            one = {"start": start, "end": end}
    return span(one, ("start", "end"), where, source)


def _words(entries: object, where: str, source: Source) -> Iterator[SpokenWord]:
    for name, one in each_object(entries, f"{where}.words", source):
        if word := optional_text(one, "word", "text"):
            start, end = span(one, ("start", "end"), name, source)
            start = seconds(one, "start_time", name, source) if start is None else start
            end = seconds(one, "end_time", name, source) if end is None else end
            yield SpokenWord(word, speaker_name(one.get("speaker")), start, end)


def is_whisper_cpp(document: Object) -> bool:
    return "transcription" in document and not isinstance(document["transcription"], dict | str)


def read_whisper_cpp(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where ``transcription`` is not a list."""
    said: list[Utterance] = []
    for where, one in each_object(document["transcription"], "transcription", source):
        if words := optional_text(one, "text"):
            start, end = span(inner(one, "offsets"), ("from", "to"), where, source, 0.001)
            said.append(Utterance(speaker_name(one.get("speaker")), words, start, until=end))
        elif not isinstance(one.get("text"), str):
            source.problem(f'{where} has no "text"')
    return Transcript(once(labelled(said)))
