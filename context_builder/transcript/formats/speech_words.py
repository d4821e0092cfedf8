"""JSON of speech services that answer with words, each with its speaker or channel.

* Amazon Transcribe: ``results.items`` (https://docs.aws.amazon.com/transcribe/latest/dg/how-input.html)
* Speechmatics: ``results`` (https://docs.speechmatics.com/speech-to-text/batch/output)
* IBM Watson: the times of words, and who says them apart, in ``speaker_labels``
  (https://cloud.ibm.com/docs/speech-to-text?topic=speech-to-text-speaker-labels)
* Rev: ``monologues`` of words and signs, each with its speaker (https://docs.rev.ai/api/asynchronous)
* Soniox: ``tokens``, which are parts of words (https://soniox.com/docs/stt/api-reference)
* ElevenLabs: ``words`` with the blanks between them and what is heard besides (https://elevenlabs.io/docs)
* 3Play Media: ``words`` as pairs of milliseconds and text, and the times at which speakers begin
  (https://support.3playmedia.com/hc/en-us/articles/227729968-Captions-Formats-JSON)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from context_builder.transcript.fields import (
    Object,
    each_object,
    first_object,
    inner,
    optional_text,
    plain,
    some_objects,
    span,
)
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import (
    UNKNOWN_SPEAKER,
    Transcript,
    Utterance,
    channel_name,
    name_of,
    speaker_name,
)
from context_builder.transcript.word_runs import SpokenWord, of_channels, runs, sentences

_MILLISECOND: Final = 0.001
_BLANKLESS: Final = frozenset({"cmn", "ja", "yue", "th"})
"""Speechmatics' languages that are written without blanks between words."""


def _by_channel(words: Iterable[tuple[str, SpokenWord]]) -> list[Utterance]:
    channels: dict[str, list[SpokenWord]] = {}
    for channel, word in words:
        channels.setdefault(channel, []).append(word)
    return of_channels([*channels.values()])


def is_aws(document: Object) -> bool:
    results = inner(document, "results")
    return isinstance(results.get("transcripts"), list) and "channels" not in results


def read_aws(document: Object, source: Source) -> Transcript:
    """Return the transcript: of its items where it has some, else of the text alone."""
    results = inner(document, "results")
    if isinstance(results.get("items"), list) and (said := _by_channel(_aws_words(results, source))):
        return Transcript(said)
    texts = [optional_text(one, "transcript") for _, one in each_object(results["transcripts"], "transcripts", source)]
    return Transcript([Utterance(UNKNOWN_SPEAKER, one) for text in texts for one in sentences(text)])


def _aws_words(results: Object, source: Source) -> Iterator[tuple[str, SpokenWord]]:
    speakers = _aws_speakers(results, source)
    last = UNKNOWN_SPEAKER
    for where, one in each_object(results["items"], "results.items", source):
        if not (content := optional_text(first_object(one.get("alternatives")), "content")):
            continue
        channel = optional_text(one, "channel_label")
        joined = one.get("type") == "punctuation"
        if not joined:
            label = optional_text(one, "speaker_label") or speakers.get(str(one.get("start_time")))
            last = channel_name(channel.removeprefix("ch_"), label) if channel else speaker_name(label)
        start, end = span(one, ("start_time", "end_time"), where, source)
        yield channel, SpokenWord(content, last, start, end, joined)


def _aws_speakers(results: Object, source: Source) -> dict[str, str]:
    """Return the speakers by the times of their words, as older answers have them."""
    found: dict[str, str] = {}
    segments = inner(results, "speaker_labels").get("segments")
    for where, segment in each_object(segments if isinstance(segments, list) else [], "segments", source):
        items = segment.get("items")
        for _, one in each_object(items if isinstance(items, list) else [], f"{where}.items", source):
            if label := optional_text(one, "speaker_label"):
                found[str(one.get("start_time"))] = label
    return found


def is_speechmatics(document: Object) -> bool:
    return any(
        "alternatives" in one and "transcript" not in first_object(one["alternatives"])
        for one in some_objects(document.get("results"))
    )


def read_speechmatics(document: Object, source: Source) -> Transcript:
    language = optional_text(inner(document, "metadata", "transcription_config"), "language")
    return Transcript(_by_channel(speechmatics_words(document["results"], source, blankless=language in _BLANKLESS)))


def speechmatics_words(results: object, source: Source, *, blankless: bool = False) -> Iterator[tuple[str, SpokenWord]]:
    """Yield the words of results with their channels. Raises :class:`ValueError` where they are not a list."""
    last: dict[str, str] = {}
    opens: set[str] = set()  # channels whose last mark is attached to the next word, as an opening question mark is
    for where, one in each_object(results, "results", source):
        best = first_object(one.get("alternatives"))
        content = plain(best["content"]) if isinstance(best.get("content"), str) else ""
        if not content or one.get("type") == "speaker_change":
            continue
        channel = str(one.get("channel") or "")
        attached = one.get("type") == "punctuation" and one.get("attaches_to") != "next"
        speaker = _speechmatics_speaker(best.get("speaker"), channel)
        if attached and best.get("speaker") in (None, "UU"):
            speaker = last.get(channel, speaker)
        joined = (attached and one.get("attaches_to") in ("previous", "both", None)) or (blankless and channel in last)
        joined = joined or channel in opens
        opens.discard(channel)
        if one.get("type") == "punctuation" and one.get("attaches_to") in ("next", "both"):
            opens.add(channel)
        last[channel] = speaker
        start, end = span(one, ("start_time", "end_time"), where, source)
        yield channel, SpokenWord(content, speaker, start, end, joined)


def _speechmatics_speaker(label: object, channel: str) -> str:
    if not channel:
        return speaker_name(label)
    named = name_of(channel)
    shown = channel_name(named[8:]) if named.lower().startswith("channel_") else named
    return shown if label in (None, "UU") or label == channel else f"{shown} {speaker_name(label)}"


def is_watson(document: Object) -> bool:
    return any("timestamps" in first_object(one.get("alternatives")) for one in some_objects(document.get("results")))


def read_watson(document: Object, source: Source) -> Transcript:
    """Return the transcript of the words of the likeliest alternatives."""
    return Transcript([*runs(_watson_words(document, source))])


def _watson_words(document: Object, source: Source) -> Iterator[SpokenWord]:
    labels = document.get("speaker_labels")
    listed = each_object(labels if isinstance(labels, list) else [], "speaker_labels", source)
    speakers = {str(one.get("from")): speaker_name(one.get("speaker")) for _, one in listed}
    for where, one in each_object(document["results"], "results", source):
        words = first_object(one.get("alternatives")).get("timestamps")
        for word in words if isinstance(words, list) else []:
            match word:
                case [str(text), int() | float() as start, int() | float() as end]:
                    yield SpokenWord(text, speakers.get(str(start), UNKNOWN_SPEAKER), float(start), float(end))
                case _:
                    source.problem(f"{where} has a word without its times")


def is_rev(document: Object) -> bool:
    return any("elements" in one for one in some_objects(document.get("monologues")))


def read_rev(document: Object, source: Source) -> Transcript:
    """Return the transcript; who has a name in ``speakers`` is called by it."""
    names: dict[str, str] = {}
    if isinstance(document.get("speakers"), list):
        for _, one in each_object(document["speakers"], "speakers", source):
            if name := optional_text(one, "name"):
                names[str(one.get("id"))] = name_of(name)
    said: list[Utterance] = []
    for where, one in each_object(document["monologues"], "monologues", source):
        number = one.get("speaker")
        speaker = names.get(str(number)) or optional_text(one, "speaker_name") or speaker_name(number)
        with source.one_entry():
            said += runs(_rev_words(one.get("elements"), f"{where}.elements", speaker, source))
    return Transcript(said)


def _rev_words(elements: object, where: str, speaker: str, source: Source) -> Iterator[SpokenWord]:
    """Yield the words; what stands between two is one of the signs, and a blank is one too."""
    joined = True
    for name, one in each_object(elements, where, source):
        value = one.get("value")
        if not isinstance(value, str):
            continue
        if value.strip():
            start, end = span(one, ("ts", "end_ts"), name, source)
            yield SpokenWord(value.strip(), speaker, start, end, joined and value[0].strip() != "")
        joined = value[-1:].strip() != ""


def is_soniox(document: Object) -> bool:
    return any("start_ms" in one for one in some_objects(document.get("tokens")))


def read_soniox(document: Object, source: Source) -> Transcript:
    """Return what the tokens say; those of a translation are not speech."""
    words: list[SpokenWord] = []
    for where, one in each_object(document["tokens"], "tokens", source):
        text = one.get("text")
        if not isinstance(text, str) or one.get("translation_status") == "translation" or not plain(text):
            continue
        start, end = span(one, ("start_ms", "end_ms"), where, source, _MILLISECOND)
        joined = bool(words) and not text[0].isspace()
        words.append(SpokenWord(text.strip(), speaker_name(one.get("speaker")), start, end, joined))
    return Transcript([*runs(words)])


def is_elevenlabs(document: Object) -> bool:
    if isinstance(document.get("transcripts"), list):
        return any("channel_index" in one for one in some_objects(document["transcripts"]))
    some = some_objects(document.get("words"), 20)
    return "language_code" in document and any(one.get("type") in ("word", "spacing") for one in some)


def read_elevenlabs(document: Object, source: Source) -> Transcript:
    """Return the transcript of the words, of each channel where there are several."""
    if isinstance(document.get("transcripts"), list):
        channels = [one for _, one in each_object(document["transcripts"], "transcripts", source)]
        return Transcript(of_channels([[*_elevenlabs_words(one.get("words") or [], source)] for one in channels]))
    return Transcript([*runs(_elevenlabs_words(document["words"], source))])


def _elevenlabs_words(entries: object, source: Source) -> Iterator[SpokenWord]:
    for where, one in each_object(entries, "words", source):
        if one.get("type") != "spacing" and (word := optional_text(one, "text")):
            start, end = span(one, ("start", "end"), where, source)
            yield SpokenWord(word, speaker_name(one.get("speaker_id")), start, end)


def is_three_play(document: Object) -> bool:
    words = document.get("words")
    return isinstance(words, list) and any(_time_and_text(one) for one in words[:5])


def read_three_play(document: Object, source: Source) -> Transcript:
    """Return the transcript; words that are not a pair are noted."""
    return Transcript([*runs(_three_play_words(document, source))])


def _three_play_words(document: Object, source: Source) -> Iterator[SpokenWord]:
    names = inner(document, "speakers")
    starts = sorted((float(time), speaker_name(name)) for time, name in names.items() if time.isdigit())
    speaker, place = UNKNOWN_SPEAKER, 0
    for number, one in enumerate(document["words"]):
        if (pair := _time_and_text(one)) is None:
            source.problem(f"words[{number}] is not a time and a text")
            continue
        time, text = pair
        while place < len(starts) and starts[place][0] <= time:
            speaker, place = starts[place][1], place + 1
        if text.strip():
            yield SpokenWord(text.strip(), speaker, time / 1000)


def _time_and_text(one: Any) -> tuple[float, str] | None:
    match one:
        case [str(time), str(text)] if time.isdigit() and len(time) < 12:
            return float(time), text
        case [int(time), str(text)]:
            return float(time), text
    return None
