"""XML documents, by whichever program they were written: found in a table by their root.

YouTube's captions (srv1 to srv3), Transcriber (.trs), ELAN (.eaf), EXMARaLDA (.exb), SMS Backup & Restore; others,
such as Adium's and MSN's logs, where elements that come again tell who, what and when, in attributes or within.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from xml.etree.ElementTree import Element

from context_builder.transcript.fields import number, plain
from context_builder.transcript.formats import turns
from context_builder.transcript.formats.ttml import local, parse_xml, read_captions
from context_builder.transcript.formats.turn import text_of
from context_builder.transcript.labels import labelled
from context_builder.transcript.repeats import once
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, speaker_name

_INLINE: Final = frozenset(("i", "b", "em", "strong", "span", "a", "sup", "sub", "font", "emph", "hi", "ref", "w", "u"))
"""Elements within words and sentences."""

_BESIDE: Final = frozenset(
    ("from", "to", "speaker", "name", "note", "gap", "vocal", "incident", "kinesic", "desc", "time", "date", "heading")
)
"""Elements that tell who speaks, or what was heard besides."""

_DEEPEST: Final = 5
"""Elements within each other of which what somebody says is made."""

_SENT: Final = "2"
_UNSENT: Final = ("3", "4", "5", "6")
"""Boxes of drafts, of what is still to be sent, of what could not be, and of what waits."""


def read_xml(source: Source) -> Transcript:
    """Return the transcript in an XML document. Raises :class:`ValueError` for what is not XML, or has none."""
    root = parse_xml(source.text, source)
    read = ROOTS.get(local(root), _read_elements)
    return read(root, source)


def _read_timed_text(root: Element, source: Source) -> Transcript:
    """Return YouTube's captions in ``<text start=… dur=…>`` (seconds) or ``<p t=… d=…>`` (milliseconds)."""
    said: list[Utterance] = []
    for element in root.iter():
        name = local(element)
        keys, unit = (("start", "dur"), 1.0) if name == "text" and "start" in element.attrib else (("t", "d"), 0.001)
        if name not in ("text", "p") or keys[0] not in element.attrib:
            continue
        if words := plain(html.unescape("".join(element.itertext()))):
            at, long = (_seconds(element, key, source, unit) for key in keys)
            said.append(Utterance(UNKNOWN_SPEAKER, words, at, until=None if at is None or long is None else at + long))
    return Transcript(once(labelled(said)))


def _read_transcriber(root: Element, source: Source) -> Transcript:
    """Return what turns say, from one mark of time to the next; several speakers of one are told by its ``Who``."""
    names = {one.get("id", ""): speaker_name(one.get("name") or one.get("id")) for one in _all(root, "Speaker")}
    said: list[Utterance] = []
    for turn in _all(root, "Turn"):
        speakers = [names.get(one, speaker_name(one)) for one in (turn.get("speaker") or "").split()]
        who = speakers[0] if speakers else UNKNOWN_SPEAKER
        at = _seconds(turn, "startTime", source)
        texts = [(who, at, turn.text or "")]
        for inside in turn:
            if local(inside) == "Sync":
                at = _seconds(inside, "time", source)
            elif local(inside) == "Who":
                place = inside.get("nb", "1")
                who = speakers[int(place) - 1] if place.isdigit() and 0 < int(place) <= len(speakers) else who
            texts.append((who, at, inside.tail or ""))
        said += [Utterance(who, words, at) for who, at, text in texts if (words := plain(text))]
    return Transcript(_joined(said))


def _joined(said: list[Utterance]) -> list[Utterance]:
    """Return the utterances, of which those of a speaker from the same time on are one."""
    found: list[Utterance] = []
    for one in said:
        if found and (found[-1].speaker, found[-1].at) == (one.speaker, one.at):
            found[-1] = Utterance(one.speaker, f"{found[-1].text} {one.text}", one.at)
        else:
            found.append(one)
    return found


def _read_elan(root: Element, source: Source) -> Transcript:
    """Return the annotations that stand in time, tier by tier; those of other annotations are about them."""
    slots = {one.get("TIME_SLOT_ID"): _seconds(one, "TIME_VALUE", source, 0.001) for one in _all(root, "TIME_SLOT")}
    tiers = [*_all(root, "TIER")]
    own = [one for one in tiers if not one.get("PARENT_REF")] or tiers
    said = [
        Utterance(
            speaker_name(tier.get("PARTICIPANT") or tier.get("TIER_ID")),
            words,
            slots.get(one.get("TIME_SLOT_REF1")),
            until=slots.get(one.get("TIME_SLOT_REF2")),
        )
        for tier in own
        for one in _all(tier, "ALIGNABLE_ANNOTATION")
        if (words := plain("".join(one.itertext())))
    ]
    return Transcript(_in_time(said))


def _read_exmaralda(root: Element, source: Source) -> Transcript:
    """Return the events of tiers of what was said; other tiers are about it."""
    times = {one.get("id"): _seconds(one, "time", source) for one in _all(root, "tli")}
    names = {
        one.get("id"): speaker_name(
            next((found.text for found in _all(one, "abbreviation") if found.text), one.get("id"))
        )
        for one in _all(root, "speaker")
    }
    tiers = [*_all(root, "tier")]
    spoken = [one for one in tiers if one.get("type") == "t"] or tiers
    said = [
        Utterance(
            names.get(tier.get("speaker"), UNKNOWN_SPEAKER),
            words,
            times.get(one.get("start")),
            until=times.get(one.get("end")),
        )
        for tier in spoken
        for one in _all(tier, "event")
        if (words := plain("".join(one.itertext())))
    ]
    return Transcript(_in_time(said))


def _read_short_messages(root: Element, source: Source) -> Transcript:
    """Return what was received (type 1) and sent (type 2), as telephones keep it, also as multimedia messages.

    Those that were not sent, such as drafts, are counted.
    """
    messages: list[dict[str, str | None]] = []
    unsent = 0
    for one in root.iter():
        if (kind := local(one)) not in ("sms", "mms"):
            continue
        box = one.get("type" if kind == "sms" else "msg_box")
        if box in _UNSENT:
            unsent += 1
            continue
        parts = [part.get("text") for part in _all(one, "part") if part.get("ct") == "text/plain"]
        text = one.get("body") if kind == "sms" else " ".join(part for part in parts if part)
        who = "Me" if box == _SENT else _named(one.get("contact_name")) or one.get("address")
        if text or kind == "sms":
            messages.append({"speaker": who, "text": text, "timestamp": one.get("date")})
    source.left_out(unsent, "draft", "and the like")
    return turns.read_turns(messages, source)


def _named(name: str | None) -> str:
    return "" if name in (None, "null", "(Unknown)") else str(name)


def _read_bundestag(root: Element, source: Source) -> Transcript:
    """Return the speeches of the German Bundestag; what is noted besides, such as applause, is counted."""
    said: list[Utterance] = []
    speaker = UNKNOWN_SPEAKER
    aside = 0
    course = next(_all(root, "sitzungsverlauf"), root)
    for element in course.iter():
        if local(element) == "name" and element.text and element.text.strip() and not len(element):
            speaker = speaker_name(plain(element.text).rstrip(":"))  # who presides
        elif local(element) == "kommentar" or (element.get("klasse") or "").startswith("T_"):  # of the agenda
            aside += 1
        elif local(element) == "p" and element.get("klasse") == "redner":
            speaker = _orator(element)
        elif local(element) == "p" and (words := plain("".join(element.itertext()))):
            said.append(Utterance(speaker, words))
    source.left_out(aside, "remark", "beside the speeches")
    return Transcript(said)


def _orator(element: Element) -> str:
    """Return who is called to speak: by the name's parts, else as written."""
    parts = [
        plain(one.text or "")
        for name in ("titel", "vorname", "namenszusatz", "nachname")
        for one in _all(element, name)
    ]
    return speaker_name(" ".join(part for part in parts if part) or plain("".join(element.itertext())).rstrip(":"))


def _read_elements(root: Element, source: Source) -> Transcript:
    """Return what the elements say that come most often and tell who, what and when; else what captions say."""
    objects: dict[str, list[dict[str, Any]]] = {}
    heights: dict[Element, int] = {}
    for element in reversed([*root.iter()]):  # what is within others before these
        heights[element] = 1 + max((heights[inside] for inside in element), default=0)
    for element in root.iter():
        if element is not root and (element.attrib or len(element)) and heights[element] <= _DEEPEST:
            objects.setdefault(local(element), []).append(_object(element, 0))
    tags = Counter({tag: len(found) for tag, found in objects.items() if turns.is_list(found)})
    if not tags:
        return read_captions(root, source)
    listed = objects[tags.most_common(1)[0][0]]
    people, moments = _people(root), _timeline(root)
    for one in listed:
        if "in" in one:
            one.setdefault("start", one["in"])
        one |= {key: people[who] for key in ("who", "speaker") if (who := str(one.get(key)).lstrip("#")) in people}
        one |= {key: moments.get(at[1:]) for key in ("start", "end") if (at := str(one.get(key))).startswith("#")}
    return turns.read_turns(listed, source)


def _people(root: Element) -> dict[str, str]:
    """Return the names of TEI's people by their ids."""
    names = (
        (_id(one), plain(" ".join(" ".join(name.itertext()) for name in _all(one, "persName"))))
        for one in _all(root, "person")
    )
    return {key: name for key, name in names if key and name}


def _timeline(root: Element) -> dict[str, str | None]:
    """Return the times of TEI's timeline by their ids: clocks, or seconds from the beginning."""
    return {_id(one): one.get("interval") or one.get("absolute") for one in _all(root, "when")}


def _id(element: Element) -> str:
    return element.get("{http://www.w3.org/XML/1998/namespace}id", "")


def _object(element: Element, depth: int) -> dict[str, Any]:
    """Return an element as JSON would have it."""
    found: dict[str, Any] = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for inside in element if depth < _DEEPEST else ():
        is_plain = not inside.attrib and not len(inside)
        found.setdefault(local(inside), "".join(inside.itertext()) if is_plain else _object(inside, depth + 1))
    text = plain(_text(element))
    if text and not text_of({key.lower(): value for key, value in found.items() if isinstance(value, str)}):
        found["text"] = text
    return found


def _text(element: Element) -> str:
    """Return what an element says, with blanks between its parts; what it tells beside that is left out."""
    parts = [element.text or ""]
    for inside in element:
        name = local(inside)
        words = "" if name.lower() in _BESIDE else _text(inside)
        parts += [words if name.lower() in _INLINE else f" {words} ", inside.tail or ""]
    return "".join(parts)


def _in_time(said: list[Utterance]) -> list[Utterance]:
    return once(sorted(said, key=lambda one: one.at or 0.0))


def _all(element: Element, name: str) -> Iterator[Element]:
    return (one for one in element.iter() if local(one) == name)


def _seconds(element: Element, key: str, source: Source, unit: float = 1.0) -> float | None:
    try:
        found = number(element.attrib, key, local(element))
    except ValueError as error:
        source.problem(error)
        return None
    return None if found is None else found * unit


ROOTS: Final[Mapping[str, Callable[[Element, Source], Transcript]]] = {
    "tt": read_captions,
    "transcript": _read_timed_text,
    "timedtext": _read_timed_text,
    "Trans": _read_transcriber,
    "ANNOTATION_DOCUMENT": _read_elan,
    "basic-transcription": _read_exmaralda,
    "smses": _read_short_messages,
    "dbtplenarprotokoll": _read_bundestag,
}
