"""Amazon Transcribe's JSON: ``results.items`` of words and punctuation, each with its speaker or channel.

https://docs.aws.amazon.com/transcribe/latest/dg/how-input.html
"""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import Object, each_object, inner, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, of_channels, sentences


def is_aws(document: Object) -> bool:
    results = inner(document, "results")
    return isinstance(results.get("transcripts"), list) and "channels" not in results


def read_aws(document: Object, source: Source) -> Transcript:
    """Return the transcript: of its items where it has some, else of the text alone."""
    results = inner(document, "results")
    channels: dict[str, list[SpokenWord]] = {}
    if isinstance(results.get("items"), list):
        speakers = _speakers(results, source)
        for channel, word in _words(results["items"], speakers, source):
            channels.setdefault(channel, []).append(word)
    if channels:
        return Transcript(of_channels([*channels.values()]))
    texts = [optional_text(one, "transcript") for _, one in each_object(results["transcripts"], "transcripts", source)]
    return Transcript([Utterance(UNKNOWN_SPEAKER, one) for text in texts for one in sentences(text)])


def _speakers(results: Object, source: Source) -> dict[str, str]:
    """Return the speakers by the times of their words, as older answers have them."""
    found: dict[str, str] = {}
    segments = inner(results, "speaker_labels").get("segments")
    for where, segment in each_object(segments if isinstance(segments, list) else [], "segments", source):
        items = segment.get("items")
        for _, one in each_object(items if isinstance(items, list) else [], f"{where}.items", source):
            if label := optional_text(one, "speaker_label"):
                found[str(one.get("start_time"))] = label
    return found


def _words(items: object, speakers: dict[str, str], source: Source) -> Iterator[tuple[str, SpokenWord]]:
    last = UNKNOWN_SPEAKER
    for where, one in each_object(items, "results.items", source):
        alternatives = one.get("alternatives")
        best = (
            next((each for each in alternatives if isinstance(each, dict)), {})
            if isinstance(alternatives, list)
            else {}
        )
        if not (content := optional_text(best, "content")):
            continue
        channel = optional_text(one, "channel_label")
        joined = one.get("type") == "punctuation"
        if not joined:
            label = optional_text(one, "speaker_label") or speakers.get(str(one.get("start_time")))
            last = channel_name(channel.removeprefix("ch_"), label) if channel else speaker_name(label)
        start, end = seconds(one, "start_time", where, source), seconds(one, "end_time", where, source)
        yield channel, SpokenWord(content, last, start, end, joined)
