"""JSON of speech services that answer with utterances, phrases or captions, and with words or a text where they do not.

* Deepgram: utterances where they were asked for, else the words of its channels; with several channels, each counts its
  speakers from zero (https://developers.deepgram.com/docs/multichannel-vs-diarization)
* AssemblyAI: utterances where speakers were told apart, else words, else the text alone; times are in milliseconds
  (https://www.assemblyai.com/docs/api-reference/transcripts/get)
* Azure: batch transcription (``recognizedPhrases``, in ticks of 100 ns), and the fast one (``phrases``, in ms)
  (https://learn.microsoft.com/azure/ai-services/speech-service/batch-transcription-get)
* iFlytek: the result is JSON in a text, and in that once more for a sentence
  (https://www.xfyun.cn/doc/asr/ifasr_new/API.html)
* YouTube's captions as JSON3
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from context_builder.transcript.fields import (
    Object,
    each_object,
    first_object,
    inner,
    number,
    optional_text,
    parse,
    plain,
    some_objects,
    span,
)
from context_builder.transcript.labels import labelled
from context_builder.transcript.offsets import duration
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, of_channels, runs, sentences

_TICK, _MILLISECOND = 1e-7, 1e-3
_START_END: Final = ("start", "end")


def is_deepgram(document: Object) -> bool:
    results = inner(document, "results")
    return "channels" in results or "utterances" in results


def read_deepgram(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where it has neither utterances nor channels."""
    results = inner(document, "results")
    channels, utterances = results.get("channels"), results.get("utterances")
    several = isinstance(channels, list) and len(channels) > 1
    if isinstance(utterances, list) and utterances:
        return Transcript([*_deepgram_utterances(utterances, source, several=several)])
    found = [
        _deepgram_channel(channel, place if several else None, where, source)
        for place, (where, channel) in enumerate(each_object(channels, "results.channels", source))
    ]
    return Transcript(of_channels(found))


def _deepgram_utterances(entries: object, source: Source, *, several: bool) -> Iterator[Utterance]:
    listed = [*each_object(entries, "results.utterances", source)]
    several = several or len({str(one.get("channel")) for _, one in listed}) > 1
    for where, one in listed:
        if words := optional_text(one, "transcript"):
            start, end = span(one, _START_END, where, source)
            who = deepgram_speaker(one.get("channel") if several else None, one.get("speaker"))
            yield Utterance(who, words, start, until=end)
        elif not isinstance(one.get("transcript"), str):
            source.problem(f'{where} has no "transcript"')


def _deepgram_channel(channel: Object, place: int | None, where: str, source: Source) -> list[SpokenWord]:
    if not isinstance(channel.get("alternatives"), list):
        source.problem(f"{where}.alternatives is not a list")
        return []
    best = first_object(channel["alternatives"])
    words = [*deepgram_words(best.get("words"), f"{where}.alternatives[0].words", source, place)]
    return words or [
        SpokenWord(one, deepgram_speaker(place, None)) for one in sentences(optional_text(best, "transcript"))
    ]


def deepgram_words(entries: object, where: str, source: Source, channel: object = None) -> Iterator[SpokenWord]:
    """Yield the words of an alternative. Raises :class:`ValueError` where they are not a list."""
    for name, one in each_object(entries if entries is not None else [], where, source):
        if word := optional_text(one, "punctuated_word", "word"):
            start, end = span(one, _START_END, name, source)
            yield SpokenWord(word, deepgram_speaker(channel, one.get("speaker")), start, end)


def deepgram_speaker(channel: object, speaker: object) -> str:
    """Return how a speaker is called, on a channel where there are several."""
    return speaker_name(speaker) if channel is None else channel_name(channel, speaker)


_NOT_ASSEMBLYAIS: Final = frozenset(
    ("speakerId", "speaker_id", "speaker_name", "speakerName", "start_time", "startTime", "snippet")
)
"""Fields that others' utterances have."""


def is_assemblyai(document: Object) -> bool:
    some = some_objects(document.get("utterances"), 5)
    is_other = any(one.keys() & _NOT_ASSEMBLYAIS or isinstance(one.get("start"), float) for one in some)
    if ("utterances" in document and not is_other) or _assemblyai_parts(document):
        return True
    if "segments" in document:
        return "audio_url" in document
    words = document.get("words")
    is_own = not words or any("text" in one for one in some_objects(words))
    return "audio_url" in document or ("status" in document and is_own and ("words" in document or "text" in document))


def _assemblyai_parts(document: Object) -> object:
    """Return the sentences or paragraphs, for which one may ask alone."""
    parts = document.get("sentences", document.get("paragraphs"))
    return parts if isinstance(parts, list) and "audio_duration" in document else None


def read_assemblyai(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` for one that failed or is not ready."""
    utterances = document.get("utterances") or _assemblyai_parts(document) or document.get("utterances")
    if utterances is not None and not isinstance(utterances, list):
        source.problem("utterances is not a list")
    if isinstance(utterances, list) and utterances:
        return Transcript([*_assemblyai_utterances(utterances, source)])
    words = document.get("words")
    if isinstance(words, list) and words:
        return Transcript([*runs(_assemblyai_words(words, source))])
    if text := optional_text(document, "text"):
        return Transcript([Utterance(UNKNOWN_SPEAKER, one) for one in sentences(text)])
    status = document.get("status")
    if status not in (None, "completed"):
        raise ValueError(f"this transcript's status is {str(status)[:40]!r}: {optional_text(document, 'error')[:200]}")
    return Transcript([])


def _assemblyai_utterances(entries: object, source: Source) -> Iterator[Utterance]:
    for where, one in each_object(entries, "utterances", source):
        if words := optional_text(one, "text"):
            start, end = span(one, _START_END, where, source, _MILLISECOND)
            yield Utterance(_assemblyai_speaker(one), words, start, until=end)
        elif not isinstance(one.get("text"), str):
            source.problem(f'{where} has no "text"')


def _assemblyai_words(entries: object, source: Source) -> Iterator[SpokenWord]:
    for where, one in each_object(entries, "words", source):
        if word := optional_text(one, "text", "word"):
            start, end = span(one, _START_END, where, source, _MILLISECOND)
            yield SpokenWord(word, _assemblyai_speaker(one), start, end)


def _assemblyai_speaker(entry: Object) -> str:
    words = entry.get("words")
    first = words[0] if isinstance(words, list) and words and isinstance(words[0], dict) else {}
    speaker, channel = entry.get("speaker", first.get("speaker")), entry.get("channel")
    return channel_name(channel) if speaker is None and channel is not None else speaker_name(speaker)


def is_azure(document: Object) -> bool:
    return any(key in document for key in ("recognizedPhrases", "combinedRecognizedPhrases", "combinedPhrases"))


def read_azure(document: Object, source: Source) -> Transcript:
    """Return the transcript: of its phrases, in the order of time, else of each channel's whole text."""
    key = "recognizedPhrases" if "recognizedPhrases" in document else "phrases"
    said = [*_azure_phrases(document.get(key) or [], key, source)]
    if not said:
        whole = "combinedRecognizedPhrases" if "combinedRecognizedPhrases" in document else "combinedPhrases"
        for _, one in each_object(document.get(whole) or [], whole, source):
            text = optional_text(one, "display", "text", "lexical")
            several = len(document[whole]) > 1
            said += [Utterance(_azure_speaker(one, several=several), each) for each in sentences(text)]
    return Transcript(sorted(said, key=lambda one: one.at or 0.0))


def _azure_phrases(entries: object, key: str, source: Source) -> Iterator[Utterance]:
    listed = [*each_object(entries, key, source)]
    several = len({one.get("channel") for _, one in listed if isinstance(one.get("channel"), int | str)}) > 1
    for where, one in listed:
        best = first_object(one["nBest"]) if isinstance(one.get("nBest"), list) else one
        if text := optional_text(best, "display", "text", "itn", "lexical"):
            name, unit = ("InTicks", _TICK) if "offsetInTicks" in one else ("Milliseconds", _MILLISECOND)
            at, long = span(one, (f"offset{name}", f"duration{name}"), where, source, unit)
            at = duration(one.get("offset")) if at is None else at
            long = duration(one.get("duration")) if long is None else long
            yield Utterance(_azure_speaker(one, several=several), text, at, until=_end(at, long))


def _end(at: float | None, long: float | None) -> float | None:
    return None if at is None or long is None else at + long


def _azure_speaker(phrase: Object, *, several: bool) -> str:
    """Return who says a phrase; speaker 0 is one who was not told apart."""
    speaker, channel = phrase.get("speaker") or None, phrase.get("channel")
    if several and isinstance(channel, int | str):
        return channel_name(channel, speaker)
    return UNKNOWN_SPEAKER if speaker is None else speaker_name(speaker)


def is_iflytek(document: Object) -> bool:
    """Return whether a document is an answer of the service, or the result in it."""
    return isinstance(document.get("lattice"), list) or isinstance(inner(document, "content").get("orderResult"), str)


def read_iflytek(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError`."""
    result: Any = document if "lattice" in document else parse(document["content"]["orderResult"])
    said: list[Utterance] = []
    for one in some_objects(result.get("lattice") if isinstance(result, dict) else None):
        with source.one_entry():
            best = one.get("json_1best")
            heard = parse(best) if isinstance(best, str) else best
            sentence = inner(heard, "st") if isinstance(heard, dict) else {}
            if text := iflytek_words(sentence):
                label = sentence.get("rl")
                who = UNKNOWN_SPEAKER if label in (None, "0") else speaker_name(label)
                at, until = (number(sentence, key, "the sentence") for key in ("bg", "ed"))
                at, until = (None if time is None else time * _MILLISECOND for time in (at, until))
                said.append(Utterance(who, text, at, until=until))
    return Transcript(said)


def iflytek_words(sentence: Object) -> str:
    """Return the words of a sentence: of each, the likeliest."""
    words = (
        first_object(word.get("cw")) for run in some_objects(sentence.get("rt")) for word in some_objects(run.get("ws"))
    )
    return " ".join("".join(str(word.get("w") or "") for word in words).split())


def is_json3(document: Object) -> bool:
    return any("tStartMs" in one for one in some_objects(document.get("events")))


def read_json3(document: Object, source: Source) -> Transcript:
    said = []
    for where, one in each_object(document["events"], "events", source):
        parts = [part.get("utf8") for part in some_objects(one.get("segs"))]
        if words := plain("".join(part for part in parts if isinstance(part, str))):
            at, long = span(one, ("tStartMs", "dDurationMs"), where, source, _MILLISECOND)
            said.append(Utterance(UNKNOWN_SPEAKER, words, at, until=_end(at, long)))
    return Transcript(once(labelled(said)))
