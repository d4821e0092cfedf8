"""Rev's JSON: ``monologues`` of words and signs, each with the number of its speaker (https://docs.rev.ai/api/asynchronous)."""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import Object, each_object, optional_text, seconds
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, name_of, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs


def is_rev(document: Object) -> bool:
    listed = document.get("monologues")
    return isinstance(listed, list) and any(isinstance(one, dict) and "elements" in one for one in listed)


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
            said += runs(_words(one.get("elements"), f"{where}.elements", speaker, source))
    return Transcript(said)


def _words(elements: object, where: str, speaker: str, source: Source) -> Iterator[SpokenWord]:
    """Yield the words; what stands between two is one of the signs, and a blank is one too."""
    joined = True
    for name, one in each_object(elements, where, source):
        value = one.get("value")
        if not isinstance(value, str):
            continue
        if value.strip():
            start, end = seconds(one, "ts", name, source), seconds(one, "end_ts", name, source)
            yield SpokenWord(value.strip(), speaker, start, end, joined and value[0].strip() != "")
        joined = value[-1:].strip() != ""
