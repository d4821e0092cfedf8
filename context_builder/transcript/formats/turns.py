"""Lists of turns in JSON: where a document has one, and what is said in it.

Meeting tools (Fireflies, Teams, Otter, Google Meet, Zoom, Fathom, Gong), call centres (Amazon Connect, Genesys, Twilio,
RingCentral), bots that join meetings (Recall.ai, Attendee, Vexa), chats with models, and lists alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, Final

from context_builder.quoting import LONGEST_NAME
from context_builder.transcript.fields import Object, each_object, inner, optional_text
from context_builder.transcript.formats.turn import (
    DEEPEST,
    has_text,
    is_turn,
    name_of_part,
    names_somebody,
    people_of,
    tells_who,
    text_in,
    text_of,
    turn_of,
    until_of,
    when_of,
    who_of,
)
from context_builder.transcript.formats.turn_fields import (
    BEGUN,
    EPOCH,
    LISTS,
    MADE,
    MEETINGS,
    REPLIES,
    TEXT,
    TIMED_PARTS,
    WHEN,
    plainly,
)
from context_builder.transcript.labels import labelled
from context_builder.transcript.moments import epoch_seconds, iso
from context_builder.transcript.repeats import grown
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, Utterance, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs

_UNSPOKEN: Final = frozenset({"system", "developer", "tool", "function"})
"""Roles of messages to a model that nobody speaks."""

_WORDS: Final = 4
"""Turns of which a list has at least so many before it is taken for one of words."""

_SAME: Final = timedelta(seconds=2)

_LONGEST_SPAN: Final = 500.0
"""Seconds that an utterance does not take as a rule; whole numbers that are larger are milliseconds."""


def is_list(entries: Sequence[Any]) -> bool:
    """Return whether a list is one of turns, by its first ones."""
    return any(is_turn(one) for one in entries[:20])


def lists_in(document: Any, depth: int = 0) -> Iterator[list[Any]]:
    """Yield the lists of turns that a document is or holds: of several conversations, each one's."""
    if isinstance(document, list):
        if is_list(document):
            parts = [some for one in document if (some := _parts_by_speaker(one)) or is_turn(one)]
            yield [part for some in parts for part in some] if all(parts) else [*_with_replies(document)]
        elif depth <= DEEPEST:
            for one in document:
                if isinstance(one, dict | list):
                    yield from lists_in(one, depth + 1)
    elif isinstance(document, dict) and depth <= DEEPEST:
        if several := _by_name(document):
            yield several
            return
        if _is_answered(document):
            yield [*_with_replies([document])]
            return
        for key in (*LISTS, *(key for key in document if key not in LISTS)):
            inside = document.get(key)
            if isinstance(inside, dict | list) and (found := [*lists_in(inside, depth + 1)]):
                first = document.get("source")  # the message to which the others reply (Intercom)
                if isinstance(first, dict) and is_turn(first) and len(found) == 1:
                    found = [[{"created_at": document.get("created_at"), **first}, *found[0]]]
                yield from found
                return


def _is_answered(entry: Object) -> bool:
    """Return whether an object is what somebody says, with what others answer."""
    return any(entry.get(key) for key in REPLIES) and is_turn(entry) and names_somebody(turn_of(entry))


def _with_replies(entries: Sequence[Any]) -> Iterator[Any]:
    """Yield turns, each with those that answer it behind it, as threads have them, unless these stand in the list."""
    listed = {(str(one["id"]), text_in(one)) for one in entries if isinstance(one, dict) and "id" in one}
    for one in entries:
        yield one
        inside = one
        while isinstance(inside, dict) and len(inside) <= 2 and isinstance(inside.get("data"), dict):  # Reddit's
            inside = inside["data"]
        replies = [inside.get(key) for key in REPLIES] if isinstance(inside, dict) else []
        if any(replies) and names_somebody(turn_of(inside)):
            for some in replies:
                for answers in lists_in(some) if isinstance(some, dict | list) else ():
                    for answer in answers:
                        if not isinstance(answer, dict) or (str(answer.get("id")), text_in(answer)) not in listed:
                            yield answer


def _parts_by_speaker(entry: Any) -> list[Any]:
    """Return the parts of a turn that are turns of several speakers; nothing where it is one's."""
    for key in LISTS if isinstance(entry, dict) else ():
        parts = entry.get(key)
        own = {name: value for name, value in turn_of(entry).items() if name != "name"}  # of the recording
        if not isinstance(parts, list) or not parts or names_somebody(own):
            continue
        if all(is_turn(one) and tells_who(turn_of(one)) for one in parts):
            return parts
    return []


def _by_name(document: Object) -> list[Any]:
    """Return the turns of an object that has them by their numbers, or a list for each speaker; else nothing."""
    values = [*document.values()]
    if len(values) > 1 and all(key.isdigit() for key in document) and all(is_turn(one) for one in values[:20]):
        return values
    if len(values) < 2 or document.keys() & {*LISTS, *TIMED_PARTS, "chunks", "word_segments", "paragraphs"}:
        return []
    if not all(isinstance(one, list) and is_list(one) for one in values):
        return []
    named = [{"speaker": key, **one} for key, some in document.items() for one in some if isinstance(one, dict)]
    starts = [one.get("start", one.get("start_time")) for one in named]
    if not all(isinstance(start, int | float) for start in starts):
        return named
    return [one for _, one in sorted(zip(starts, named, strict=True), key=lambda pair: float(str(pair[0])))]


def lists_in_words(entry: Object) -> bool:
    """Return whether the parts of what an object says are turns themselves."""
    return any(isinstance(value, list) and is_list(value) for value in entry.values())


def turns_in(document: Any) -> list[Any] | None:
    """Return the list of turns that a document is or holds; None where it has none."""
    return next(lists_in(document), None)


def read_turns(document: Any, source: Source) -> Transcript:
    """Return the transcript of a document with a list of turns."""
    lists = [*lists_in(document)]
    if len(lists) > 1:
        source.notes.append(f"{len(lists)} lists of turns, one after the other")
    people = people_of(document)
    found = [
        told
        for entries in lists
        for told in _read(_spoken(_as_left(entries)), people, source, is_gong="callTranscripts" in document)
    ]
    found = _joined_words(found)
    moments = [one.moment for one in found if one.moment is not None]
    said = [one.said for one in found]
    if moments:
        started = min(moments)
        if len(moments) == len(found):
            found.sort(key=lambda one: one.moment or started)
        said = [
            replace(one.said, at=None if one.moment is None else (one.moment - started).total_seconds(), until=None)
            for one in found
        ]
        return Transcript(labelled(grown(said)), started)
    return Transcript(labelled(grown(said)), begun(document) or _begun_by(lists, found))


def _begun_by(lists: Sequence[Sequence[Any]], found: Sequence[_Turn]) -> datetime | None:
    """Return when a recording began, where turns have moments beside their times from its beginning that agree."""
    entries = [turn_of(one) for entries in lists for one in entries if isinstance(one, dict)]
    told = [moment for one in entries if (moment := _moment_beside(one)) is not None]
    times = [one.said.at for one in found if one.said.at is not None]
    if len(told) != len(times) or not told:
        return None
    starts = [moment - timedelta(seconds=at) for moment, at in zip(told, times, strict=True)]
    return starts[0] if max(starts) - min(starts) <= _SAME else None


def _moment_beside(turn: Mapping[str, Any]) -> datetime | None:
    try:
        value = next((turn[key] for key in ("createdat", "timestamp", "datetime") if has_text(turn, key)), "")
        return iso(value) if re.match(r"\d{4}-\d\d-\d\dT", value) else None
    except ValueError:
        return None


def _joined_words(found: Sequence[_Turn]) -> list[_Turn]:
    """Return turns of a word each, with their times, as what each speaker says."""
    single = sum(" " not in one.said.text and one.moment is None and one.said.until is not None for one in found)
    if len(found) < _WORDS or single < len(found):
        return [*found]
    words = [
        SpokenWord(
            one.said.text,
            one.said.speaker,
            one.said.at,
            one.said.until,
            joined=not any(map(str.isalnum, one.said.text)),
        )
        for one in found
    ]
    return [_Turn(said, None) for said in runs(words)]


@dataclass(frozen=True, slots=True)
class _Turn:
    said: Utterance
    moment: datetime | None


def _spoken(entries: Sequence[Any]) -> Sequence[Any]:
    """Return a list without what is not speech: where some entries are of the type transcript, what is of another."""
    spoken = [one for one in entries if isinstance(one, dict) and one.get("event") in ("user", "bot")]
    if len({one["event"] for one in spoken}) > 1:  # what a bot's program notes between is none
        return spoken
    kinds = {one.get("type") for one in entries if isinstance(one, dict) and isinstance(one.get("type"), str)}
    if "transcript" not in kinds or len(kinds) == 1:
        return entries
    return [one for one in entries if not isinstance(one, dict) or one.get("type") in (None, "transcript")]


def _as_left(entries: Sequence[Any]) -> Sequence[Any]:
    """Return activities of the Bot Framework as they were left: with their last texts, without those deleted."""
    kinds = [one.get("type") if isinstance(one, dict) else None for one in entries]
    if "messageUpdate" not in kinds and "messageDelete" not in kinds:
        return entries
    kept: dict[str | int, Any] = {}
    for place, one in enumerate(entries):
        name = str(one["id"]) if isinstance(one, dict) and "id" in one else place
        if kinds[place] == "messageDelete":
            kept.pop(name, None)
        elif kinds[place] == "messageUpdate" and name in kept:
            kept[name] = {**kept[name], "text": one.get("text")}
        else:
            kept[place if name in kept else name] = one
    return [*kept.values()]


def _read(entries: Sequence[Any], people: Mapping[str, str], source: Source, *, is_gong: bool) -> Sequence[_Turn]:
    found: list[_Turn] = []
    has_clocks = False
    for where, one in each_object(entries, "turns", source):
        turn = turn_of(one)
        role = turn.get("role")
        if (
            turn.get("isthought") is True
            or turn.get("messagetype") == "system"
            or (isinstance(role, str) and role.lower() in _UNSPOKEN)
        ):
            continue
        if not (words := text_of(turn)):
            if not any(isinstance(turn.get(key), str | list | dict) for key in TEXT) and not one.get("type"):
                source.problem(f"{where} has no text")
            continue
        words = _filled(words, turn)
        at, moment = when_of(turn, where, source)
        has_clocks |= any(has_text(turn, key) and ":" in turn[key] for key in turn.keys() & WHEN.keys())
        until, _ = until_of(turn, where, source)
        key = name_of_part(turn)
        found.append(_Turn(Utterance(who_of(turn, people), words, at, until=until, key=key), moment))
    if is_gong or (not has_clocks and _is_milliseconds([one.said for one in found])):
        return [replace(one, said=_scaled(one.said, 0.001)) for one in found]
    return found


def _filled(words: str, turn: Mapping[str, Any]) -> str:
    """Return a text with the names for which it has placeholders, which stand beside it (Nextcloud Talk)."""
    named = turn.get("messageparameters")
    if not isinstance(named, dict):
        return words
    names = {key: optional_text(one, "name")[:LONGEST_NAME] for key, one in named.items() if isinstance(one, dict)}
    return re.sub(
        r"\{([^{}]{1,80})\}", lambda found: names.get(found[1]) or found[0], words
    )  # once: names may have them


def _scaled(one: Utterance, unit: float) -> Utterance:
    return replace(
        one, at=None if one.at is None else one.at * unit, until=None if one.until is None else one.until * unit
    )


def _is_milliseconds(said: Sequence[Utterance]) -> bool:
    """Return whether times are whole numbers, so far from each other that they cannot be seconds."""
    told = [one for one in said if one.at is not None]
    times = [time for one in told for time in (one.at, one.until) if time is not None]
    if not times or any(time != int(time) for time in times):
        return False
    spans = [one.until - one.at for one in told if one.until is not None and one.at is not None]
    if not spans:
        spans = [after - before for before, after in pairwise(times)]
    return bool(spans) and median(spans) >= _LONGEST_SPAN


def begun(document: Any, *, made: bool = True) -> datetime | None:
    """Return when the meeting began, where its document says; ``made`` counts when it was created, too."""
    if not isinstance(document, dict):
        return None
    several = document.get("items")
    for holder in (
        document,
        *(several if isinstance(several, list) and len(several) == 1 and isinstance(several[0], dict) else ()),
        *(inner(document, *keys) for keys in (("data", "transcript"), *((one,) for one in MEETINGS))),
    ):
        fields = {plainly(key): value for key, value in holder.items()}
        for key in (*BEGUN, *(f"{one}unixsecs" for one in BEGUN), *(MADE if made else ())):
            value = fields.get(key)
            try:
                if isinstance(value, int | float) and not isinstance(value, bool) and value >= EPOCH:
                    return datetime.fromtimestamp(epoch_seconds(value, key)).astimezone()
                if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
                    return iso(value)
            except (ValueError, OverflowError):
                continue
    return None


def words_by_paragraph(document: Any) -> list[Utterance]:
    """Return what is said in paragraphs that name who speaks from when on, beside a list of words with their times."""
    words, paragraphs = (document.get(key) if isinstance(document, dict) else None for key in ("words", "paragraphs"))
    if not isinstance(words, list) or not isinstance(paragraphs, list):
        return []
    starts = sorted(
        (float(one["start"]), speaker_name(one.get("speaker")))
        for one in paragraphs
        if isinstance(one, dict) and isinstance(one.get("start"), int | float) and "text" not in one
    )
    spoken = []
    for one in words if starts else ():
        if isinstance(one, dict) and (text := optional_text(one, "text", "word", "punct")):
            at = one.get("start")
            at = float(at) if isinstance(at, int | float) else 0.0
            who = next((name for start, name in reversed(starts) if start <= at), starts[0][1])
            spoken.append(SpokenWord(text, who, at))
    return [*runs(spoken)]
