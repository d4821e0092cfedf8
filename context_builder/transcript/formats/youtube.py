"""YouTube's captions in its own formats: JSON3, and XML (srv1 to srv3)."""

from __future__ import annotations

import html
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from context_builder.transcript.fields import Object, each_object, plain, seconds
from context_builder.transcript.formats.whisper import labelled
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance


def is_json3(document: Object) -> bool:
    events = document.get("events")
    return isinstance(events, list) and any(isinstance(one, dict) and "tStartMs" in one for one in events)


def read_json3(document: Object, source: Source) -> Transcript:
    """Return the transcript. Raises :class:`ValueError` where ``events`` is no list."""
    said = []
    for where, one in each_object(document["events"], "events", source):
        segments = one.get("segs")
        parts = [part.get("utf8") for part in segments if isinstance(part, dict)] if isinstance(segments, list) else []
        if words := plain("".join(part for part in parts if isinstance(part, str))):
            at, long = (seconds(one, key, where, source, 0.001) for key in ("tStartMs", "dDurationMs"))
            said.append(Utterance(UNKNOWN_SPEAKER, words, at, until=None if at is None or long is None else at + long))
    return Transcript(once(labelled(said)))


def read_timed_text(root: Element, source: Source) -> Transcript:
    """Return the transcript in ``<text start=… dur=…>`` (seconds) or ``<p t=… d=…>`` (milliseconds)."""
    return Transcript(once(labelled([*_timed(root, source)])))


def _timed(root: Element, source: Source) -> Iterator[Utterance]:
    for element in root.iter():
        name = element.tag.rpartition("}")[2]
        keys, unit = (("start", "dur"), 1.0) if name == "text" and "start" in element.attrib else (("t", "d"), 0.001)
        if name not in ("text", "p") or keys[0] not in element.attrib:
            continue
        if words := plain(html.unescape("".join(element.itertext()))):
            at, long = (seconds(element.attrib, key, f"<{name}>", source, unit) for key in keys)
            yield Utterance(UNKNOWN_SPEAKER, words, at, until=None if at is None or long is None else at + long)
