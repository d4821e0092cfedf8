"""IBM Watson's Speech to Text: ``results`` with the times of words, and who says them apart, in ``speaker_labels``.

https://cloud.ibm.com/docs/speech-to-text?topic=speech-to-text-speaker-labels
"""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import Object, each_object
from context_builder.transcript.formats.google_speech import best
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs


def is_watson(document: Object) -> bool:
    results = document.get("results")
    some = [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []
    return any("timestamps" in best(one) for one in some)


def read_watson(document: Object, source: Source) -> Transcript:
    """Return the transcript of the words of the likeliest alternatives."""
    return Transcript([*runs(_words(document, source))])


def _words(document: Object, source: Source) -> Iterator[SpokenWord]:
    labels = document.get("speaker_labels")
    listed = each_object(labels if isinstance(labels, list) else [], "speaker_labels", source)
    speakers = {str(one.get("from")): speaker_name(one.get("speaker")) for _, one in listed}
    for where, one in each_object(document["results"], "results", source):
        words = best(one).get("timestamps")
        for word in words if isinstance(words, list) else []:
            match word:
                case [str(text), int() | float() as start, int() | float() as end]:
                    yield SpokenWord(text, speakers.get(str(start), UNKNOWN_SPEAKER), float(start), float(end))
                case _:
                    source.problem(f"{where} has a word without its times")
