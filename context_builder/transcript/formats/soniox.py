"""Soniox' transcripts: tokens, which are parts of words, with their speakers (https://soniox.com/docs/stt/api-reference)."""

from __future__ import annotations

from context_builder.transcript.fields import Object, each_object, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs

_MILLISECOND = 0.001


def is_soniox(document: Object) -> bool:
    tokens = document.get("tokens")
    return isinstance(tokens, list) and any(isinstance(one, dict) and "start_ms" in one for one in tokens)


def read_soniox(document: Object, source: Source) -> Transcript:
    """Return what the tokens say; those of a translation are no speech."""
    words: list[SpokenWord] = []
    for where, one in each_object(document["tokens"], "tokens", source):
        text = one.get("text")
        if (
            not isinstance(text, str)
            or one.get("translation_status") == "translation"
            or not optional_text(one, "text")
        ):
            continue
        start, end = (seconds(one, f"{key}_ms", where, source, _MILLISECOND) for key in ("start", "end"))
        who = speaker_name(one.get("speaker"))
        joined = bool(words) and not text[0].isspace()
        words.append(SpokenWord(text.strip(), who, start, end, joined))
    return Transcript([*runs(words)])
