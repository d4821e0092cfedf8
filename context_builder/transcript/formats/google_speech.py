"""Google's Speech-to-Text: ``results`` with alternatives, their words with speakers, or a channel each.

With speakers, the last result of the first version has the words of all of them once more
(https://cloud.google.com/speech-to-text/docs/multiple-voices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from context_builder.transcript.fields import Object, each_object, first_object, inner, optional_text, some_objects
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, of_channels, sentences, with_signs

_TAGS: Final = ("speakerLabel", "speakerTag", "speaker_label", "speaker_tag")
"""How the second and the first version call who says a word, in JSON and in Python."""


def is_google(document: Object) -> bool:
    return any(key in best(one) for one in some_objects(_results(document)) for key in ("transcript", "words"))


def read_google(document: Object, source: Source) -> Transcript:
    """Return the transcript of the best alternative of each result."""
    results = [(one, best(one)) for _, one in each_object(_results(document), "results", source)]
    listed = [words_of(found) for _, found in results]
    tagged = [words for words in listed if any(word.speaker != UNKNOWN_SPEAKER for word in words)]
    if tagged:
        is_whole = len(tagged) == 1 or (tagged[-1][0].at or 0.0) <= (tagged[0][0].at or 0.0)
        return Transcript(of_channels([tagged[-1] if is_whole else [word for words in tagged for word in words]]))
    channels: dict[str, list[SpokenWord]] = {}
    said: list[Utterance] = []
    for one, found in results:
        channel = one.get("channelTag", one.get("channel_tag"))
        who = UNKNOWN_SPEAKER if not channel else channel_name(channel)
        if words := words_of(found, who):
            channels.setdefault(who, []).extend(words)
        else:
            said += [Utterance(who, text) for text in sentences(optional_text(found, "transcript", "text"))]
    return Transcript(of_channels([*channels.values()]) + said)


def _results(document: Object) -> object:
    answer = inner(document, "response") or document
    results = answer.get("results", answer.get("chunks"))  # Yandex has the same in chunks
    if isinstance(results, dict):  # of files in a bucket
        files = [one for name in results for one in [inner(results, name)]]
        found = [inner(one, "inlineResult", "transcript") or inner(one, "transcript") for one in files]
        return [one for each in found if isinstance(each.get("results"), list) for one in each["results"]]
    return results


def best(result: Object) -> Object:
    """Return the likeliest alternative of a result."""
    return first_object(result.get("alternatives"))


def words_of(alternative: Object, channel: str = UNKNOWN_SPEAKER) -> Sequence[SpokenWord]:
    return with_signs([*_words(alternative, channel)], optional_text(alternative, "transcript", "text"))


def _words(alternative: Object, channel: str) -> Iterator[SpokenWord]:
    for one in some_objects(alternative.get("words")):
        if word := optional_text(one, "word"):
            tag = next((one[key] for key in _TAGS if one.get(key)), None)
            start, end = _seconds(one, "start"), _seconds(one, "end")
            yield SpokenWord(word, channel if tag is None else speaker_name(tag), start, end)


def _seconds(word: Object, name: str) -> float | None:
    """Return a time of a word, a duration as JSON has it, ``"1.500s"``, or of seconds and nanoseconds."""
    keys = (f"{name}Time", f"{name}Offset", f"{name}_time", f"{name}_offset")
    value = next((word[key] for key in keys if key in word), None)
    try:
        if isinstance(value, dict):
            return float(value.get("seconds") or 0) + float(value.get("nanos") or 0) / 1e9
        return float(value[:-1]) if isinstance(value, str) and value.endswith("s") else None
    except (TypeError, ValueError):
        return None
