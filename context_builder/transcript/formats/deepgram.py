"""Deepgram's answers: utterances where they were asked for, else the words of its channels.

With several channels, each counts its speakers from zero (https://developers.deepgram.com/docs/multichannel-vs-diarization).
"""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import Object, each_object, inner, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, of_channels, sentences


def is_deepgram(document: Object) -> bool:
    results = inner(document, "results")
    return "channels" in results or "utterances" in results


def read_deepgram(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where it has neither utterances nor channels."""
    results = inner(document, "results")
    channels = results.get("channels")
    if isinstance(results.get("utterances"), list) and results["utterances"]:
        return Transcript(
            [*_utterances(results["utterances"], len(channels) if isinstance(channels, list) else 1, source)]
        )
    found = [
        _words(channel, place, where, source, several=len(channels) > 1 if isinstance(channels, list) else False)
        for place, (where, channel) in enumerate(each_object(channels, "results.channels", source))
    ]
    return Transcript(of_channels(found))


def _utterances(entries: object, channels: int, source: Source) -> Iterator[Utterance]:
    listed = [*each_object(entries, "results.utterances", source)]
    several = channels > 1 or len({str(one.get("channel")) for _, one in listed}) > 1
    for where, one in listed:
        if words := optional_text(one, "transcript"):
            start, end = seconds(one, "start", where, source), seconds(one, "end", where, source)
            yield Utterance(
                speaker_of(one.get("channel") if several else None, one.get("speaker")), words, start, until=end
            )
        elif not isinstance(one.get("transcript"), str):
            source.problem(f'{where} has no "transcript"')


def _words(channel: Object, place: int, where: str, source: Source, *, several: bool) -> list[SpokenWord]:
    listed = channel.get("alternatives")
    if not isinstance(listed, list):
        source.problem(f"{where}.alternatives is not a list")
        return []
    best = next((one for one in listed if isinstance(one, dict)), {})
    of = place if several else None
    words = [*words_of(best.get("words"), f"{where}.alternatives[0].words", source, of)]
    return words or [
        SpokenWord(one, speaker_of(of, None), joined=False) for one in sentences(optional_text(best, "transcript"))
    ]


def words_of(entries: object, where: str, source: Source, channel: object = None) -> Iterator[SpokenWord]:
    """Yield the words of an alternative."""
    for name, one in each_object(entries if entries is not None else [], where, source):
        if word := optional_text(one, "punctuated_word", "word"):
            start, end = seconds(one, "start", name, source), seconds(one, "end", name, source)
            yield SpokenWord(word, speaker_of(channel, one.get("speaker")), start, end)


def speaker_of(channel: object, speaker: object) -> str:
    """Return how a speaker is called, on a channel where there are several."""
    return speaker_name(speaker) if channel is None else channel_name(channel, speaker)
