"""Lists of turns in JSON, whose fields many programs call alike: who, what, and when.

Meeting tools (Fireflies, Teams, Otter, Google Meet, Zoom, Fathom, Gong), call centres (Amazon Connect, Genesys, Twilio,
RingCentral), bots that join meetings (Recall.ai, Attendee, Vexa), chats with models, and lists alone. Fields are known
by their names without capitals and underscores; a time's unit by the end of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, Final

from context_builder.quoting import LONGEST_NAME
from context_builder.transcript.fields import Object, each_object, inner, optional_text, plain
from context_builder.transcript.formats.html_exports import text_of_page
from context_builder.transcript.labels import is_written_as_name, labelled
from context_builder.transcript.moments import epoch_seconds, iso
from context_builder.transcript.offsets import duration, offset
from context_builder.transcript.repeats import grown
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, channel_name, speaker_name
from context_builder.transcript.word_runs import SpokenWord, runs
from context_builder.transcript.written_dates import moment_of, order_of, written

_LISTS: Final = (
    "sentences", "entries", "transcriptEntries", "transcripts", "transcript", "turns", "utterances", "monologues",
    "segments", "messages", "data", "lines", "Transcript", "items", "prediction", "callTranscripts", "sentence_info",
)  # fmt: skip
"""Where turns are looked for first."""

_TEXT: Final = (
    "text", "sentence", "rawtext", "transcript", "content", "words", "body", "message", "utterance",
    "transcription", "displaytext", "punctuated", "value", "snippet", "cooked", "sentences", "parts", "elements",
    "tokens", "segment", "word", "payload", "contents", "textblocks", "finalsentence", "msg", "mes", "steps", "token",
    "selftext",
)  # fmt: skip
_PERSONS: Final = ("sender", "author", "actor", "member", "person", "participant", "creator", "commenter", "poster")
_WHO: Final = (
    *(f"{person}{name}" for person in _PERSONS for name in ("displayname", "fullname", "name")), "voice",
    "speakername", "speakerdisplayname", "alias", "contactname", "friendlyname", "speakerdesignation",
    "participantname", "personname", "sendername", "displayname", "fromuser", "speaker", "who", "participant",
    "author", "authorid", "commenter", "user", "users", "username", "from", "sender", "role", "participantrole",
    "participantpurpose", "participanttype", "speakerid", "participantid", "speakerlabel", "speakertag",
    "participantidentity", "participantdetails", "name", "userid", "fromid", "senderid", "spk", "direction",
    "speakerindex", "personemail", "authoremail", "senderemail", "useremail", "actorid", "personid",
    "account", "transcriptiontrack",
)  # fmt: skip
_NAMES: Final = (
    "speakername", "displayname", "name", "fullname", "friendlyname", "login", "username", "title", "participantrole",
    "role",
    "email", "emailaddress", "source", "label", "identifier", "id", "userid",
)  # fmt: skip
_IDS: Final = ("id", "waid", "spkid", "speakerid", "participantid", "userid", "speaker", "useridentifier")
_PARTS: Final = (
    "utteranceid", "captionid", "segmentid", "chunkid", "resultid", "sentenceid", "transcriptid", "messageid",
    "entryid", "itemid", "turnid", "id", "ordinal",
)  # fmt: skip
"""What names a turn in its file."""

_SOURCES: Final = ("microphone", "mic", "system", "speaker", "input", "output")
"""Where what is said was recorded, which tells who says it as far as can be."""

_CHANNELS: Final = ("channel", "mediachannel", "channeltag", "channelid")
_STARTS: Final = (
    "secondsfromstart", "starttime", "start", "startoffset", "starttimestamp", "startdatetime", "begin",
    "begintime", "beginoffset", "timebegin", "datastart", "offset", "snippettime", "timeincall", "datetime",
    "timestamp", "time", "ts", "sent", "contentoffset", "createdat", "createtime", "absolutestarttime", "date",
    "timestamps", "beginaudiotime", "created", "senddate", "senton", "timestampunix", "startedat", "datecreated",
    "datesent", "sentat", "postedat", "publishedat", "createdon", "dateposted", "dateadded",
)  # fmt: skip
_ENDS: Final = (
    "endtime", "end", "endoffset", "endtimestamp", "enddatetime", "timeend", "dataend", "stop", "absoluteendtime",
    "endaudiotime", "endedat",
)  # fmt: skip
_TIMED_PARTS: Final = ("words", "sentences", "elements", "tokens", "result", "parts")
"""Parts of a turn that have times, where it has none itself."""

_UNITS: Final = {
    "": 1.0, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0,
    "ms": 0.001, "msec": 0.001, "millis": 0.001, "millisecond": 0.001, "milliseconds": 0.001, "usec": 1e-6,
    "inticks": 1e-7, "utc": 1.0,
}  # fmt: skip
"""What is behind the name of a time, and its seconds."""


def _fields(stems: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Return the names of fields with their places, the first that tells counts, and the seconds of their units."""
    return {f"{stem}{unit}": (n, seconds) for n, stem in enumerate(stems) for unit, seconds in _UNITS.items()}


_WHEN: Final = _fields(_STARTS)
_UNTIL: Final = _fields(_ENDS)
_BEGUN: Final = (
    "recordingstarttime",
    "recordingstart", "starttimestamp", "datestring", "startedat", "starttime", "startdatetime", "meetingdate",
    "meetingstarttime", "startedtime", "callcreatedat", "date",
)  # fmt: skip
_MADE: Final = ("createdat", "createtime")
_MEETINGS: Final = ("data", "transcript", "meeting", "metadata", "call", "transcription", "recording", "conversation")
_KINDS: Final = ("type", "event", "kind")
_ROLES: Final = {"request": "user", "response": "assistant"}
"""Who says a message that is of such a kind (Pydantic AI)."""

_REPLIES: Final = ("comments", "replies", "children", "answers", "descendants")
"""Where a turn has those that answer it."""

_PARTIES: Final = frozenset(("user", "human", "ai", "assistant", "model", "bot", "agent", "gemini", "customer"))
"""Who says a turn, where its kind tells: of programs for chats with models."""

_UNSPOKEN: Final = frozenset({"system", "developer", "tool", "function"})
"""Roles of messages to a model that nobody speaks."""

_UNSAID_PARTS: Final = frozenset({
    "tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "thinking", "redacted_thinking",
    "reasoning", "tool_call", "function_call", "function_call_output", "system-prompt", "tool-call", "tool-return",
    "retry-prompt",
})  # fmt: skip
"""Types of parts of a message to or from a model that nobody says."""

_KINDS_OF_PARTS: Final = ("$type", "content_type", "block_type")

_WORDS: Final = 4
"""Turns of which a list has at least so many before it is taken for one of words."""

_SAME: Final = timedelta(seconds=2)
_DEEPEST: Final = 6
_EPOCH: Final = 100_000_000.0
"""A number above this is a moment, not seconds of a recording."""

_LONGEST_SPAN: Final = 500.0
"""Seconds that an utterance does not take as a rule; whole numbers that are larger are milliseconds."""

_MARKED: Final = re.compile(r"\s*<(?:p|div|span|br)\b[^<>]*>", re.IGNORECASE)
_ASP_NET: Final = re.compile(r"/Date\((\d{12,14})(?:[+-]\d{4})?\)/")


def _plainly(key: str) -> str:
    return "".join(one for one in key.lower() if one.isalnum())


def told_by(key: str) -> str:
    """Return what a field of this name tells of a turn: ``text``, ``who``, ``start`` or ``end``; nothing of another."""
    kinds = (("text", _TEXT), ("who", _WHO), ("start", _WHEN), ("end", _UNTIL))
    return next((kind for kind, names in kinds if _plainly(key) in names), "")


def turn_of(entry: Object) -> dict[str, Any]:
    """Return the fields of a turn by their names without capitals and underscores; a turn may be in a wrapper alone."""
    while len(entry) == 1 and isinstance(only := next(iter(entry.values())), dict):
        entry = only
    match entry:
        case {"versions": [*versions], "currentlySelected": int(place)} if place < len(versions):  # LM Studio's
            entry = versions[place] if isinstance(versions[place], dict) else entry
    found = {_plainly(key): value for key, value in entry.items() if isinstance(key, str)}
    for wrapper in (
        "payload",
        "transcript",
        "transcription",
        "message",
        "text",
        "punctuated",
        "alternatives",
        "results",
        "kwargs",
        "content",
    ):
        inside = found.get(wrapper)
        if isinstance(inside, list) and (wrapper == "alternatives" or (wrapper == "results" and len(inside) == 1)):
            inside = next(iter(inside), None)
        if isinstance(inside, dict) and isinstance(inside.get("text"), dict):
            inside = inside["text"]
        if isinstance(inside, dict) and (words := _text(inside)):
            if wrapper == "kwargs":
                found.pop("type", None)  # LangChain's, of the object that it makes
            found = {**{_plainly(key): value for key, value in inside.items()}, **found, "text": words}
    if isinstance(inside := found.get("data"), dict) and not _is_text(found, "text") and (words := _text(inside)):
        found = {**{_plainly(key): value for key, value in inside.items()}, **found, "text": words}
    for beside in ("data", "metadata", "meta", "additions"):
        if isinstance(inside := found.get(beside), dict) and _is_text(found, "text"):
            found = {**{_plainly(key): value for key, value in inside.items()}, **found}
    for parts in (found.get("items"), found.get("blocks")):  # of Semantic Kernel, and of LlamaIndex
        if (
            isinstance(parts, list)
            and parts
            and isinstance(parts[0], dict)
            and not parts[0].keys().isdisjoint(_KINDS_OF_PARTS)
        ):
            found["parts"] = parts
    match found.get("speakers"):
        case [str(name)]:
            found["speaker"] = name
    if isinstance(places := found.get("instances"), list) and places and isinstance(places[0], dict):
        found |= {_plainly(key): value for key, value in places[0].items()}
    return found


def name_of_part(turn: Mapping[str, Any]) -> str | None:
    """Return what names a turn that may come again, with more words; None where nothing does."""
    return next((str(turn[key]) for key in _PARTS if isinstance(turn.get(key), str | int)), None)


def text_of(turn: Mapping[str, Any]) -> str:
    """Return what a turn says: a text, or the parts of one."""
    for key in _TEXT:
        if words := _words_in(turn.get(key)):
            return words
    return ""


def _text(entry: Object) -> str:
    return text_of({_plainly(key): value for key, value in entry.items() if isinstance(key, str)})


def _words_in(value: object) -> str:
    if isinstance(value, str):
        return text_of_page(value).replace("\n", " ") if _MARKED.match(value) else plain(value)
    if isinstance(value, dict) and value.get("type") == "doc":  # of Atlassian
        value = value.get("content")
    if isinstance(value, list):
        parts = [one for one in value if isinstance(one, str) or (isinstance(one, dict) and _is_said(one))]
        texts = [one if isinstance(one, str) else _part(one) for one in parts]
        joined = "" if any(text[:1].isspace() for text in texts[1:]) else " "
        return plain(re.sub(r" {1,80}(?=[.,?!;:](?:\s|$))", "", joined.join(text for text in texts if text)))
    return ""


def _is_said(part: Object) -> bool:
    kind = part.get("type", part.get("part_kind"))
    is_thought = part.get("isThought") or part.get("thought") is True
    return not is_thought and not (isinstance(kind, str) and kind in _UNSAID_PARTS)


def _part(entry: Object) -> str:
    """Return a word or a sentence of a turn, with the blanks that are around it."""
    for key in ("punctuated_word", "text", "word", "value", "content", "name", "sentence", "Text"):
        found = entry.get(key)
        if isinstance(found, dict):
            found = found.get("value")
        if isinstance(found, str):
            return found
        if isinstance(found, list) and (words := _words_in(found)):
            return words
    return ""


def _is_turn(entry: object) -> bool:
    """Return whether an object says something, and by whom or when."""
    if not isinstance(entry, dict):
        return False
    turn = turn_of(entry)
    return bool(text_of(turn)) and (
        _tells_who(turn) or any(turn.get(name) is not None for name in turn.keys() & _WHEN.keys())
    )


def _tells_who(turn: Mapping[str, Any]) -> bool:
    has_party = (_is_text(turn, "source") and _is_party(turn)) or any(
        turn[kind] in _PARTIES or (turn[kind] in _ROLES and "parts" in turn) for kind in _KINDS if _is_text(turn, kind)
    )
    return (
        has_party or bool(_origin(turn)) or _names_somebody(turn) or any(turn.get(key) is not None for key in _CHANNELS)
    )


def _origin(turn: Mapping[str, Any]) -> str:
    """Return the user from whom an event of LINE comes."""
    return optional_text(turn["source"], "userId") if isinstance(turn.get("source"), dict) else ""


def _is_party(turn: Mapping[str, Any]) -> bool:
    """Return whether the source of a turn is who says it: a microphone, an agent (AutoGen), a bot or its user (Lex)."""
    is_message = any(str(turn.get(key)).endswith(("Message", "PlainText")) for key in ("type", "contenttype"))
    return turn["source"] in _SOURCES or is_message


def _names_somebody(turn: Mapping[str, Any]) -> bool:
    return any(turn.get(key) is not None for key in _WHO)


def _is_text(turn: Mapping[str, Any], key: str) -> bool:
    return isinstance(turn.get(key), str)


def is_list(entries: Sequence[Any]) -> bool:
    """Return whether a list is one of turns, by its first ones."""
    return any(_is_turn(one) for one in entries[:20])


def lists_in(document: Any, depth: int = 0) -> Iterator[list[Any]]:
    """Yield the lists of turns that a document is or holds: of several conversations, each one's."""
    if isinstance(document, list):
        if is_list(document):
            parts = [_parts_by_speaker(one) for one in document]
            yield [part for some in parts for part in some] if all(parts) else [*_with_replies(document)]
        elif depth <= _DEEPEST:
            for one in document:
                if isinstance(one, dict | list):
                    yield from lists_in(one, depth + 1)
    elif isinstance(document, dict) and depth <= _DEEPEST:
        if several := _by_name(document):
            yield several
            return
        if _is_answered(document):
            yield [*_with_replies([document])]
            return
        for key in (*_LISTS, *(key for key in document if key not in _LISTS)):
            inside = document.get(key)
            if isinstance(inside, dict | list) and (found := [*lists_in(inside, depth + 1)]):
                first = document.get("source")  # the message to which the others reply (Intercom)
                if isinstance(first, dict) and _is_turn(first) and len(found) == 1:
                    found = [[{"created_at": document.get("created_at"), **first}, *found[0]]]
                yield from found
                return


def _is_answered(entry: Object) -> bool:
    """Return whether an object is what somebody says, with what others answer."""
    return any(entry.get(key) for key in _REPLIES) and _is_turn(entry) and _names_somebody(turn_of(entry))


def _with_replies(entries: Sequence[Any]) -> Iterator[Any]:
    """Yield turns, each with those that answer it behind it, as threads have them, unless these stand in the list."""
    listed = {(str(one["id"]), _text(one)) for one in entries if isinstance(one, dict) and "id" in one}
    for one in entries:
        yield one
        inside = one
        while isinstance(inside, dict) and len(inside) <= 2 and isinstance(inside.get("data"), dict):  # Reddit's
            inside = inside["data"]
        replies = [inside.get(key) for key in _REPLIES] if isinstance(inside, dict) else []
        if any(replies) and _names_somebody(turn_of(inside)):
            for some in replies:
                for answers in lists_in(some) if isinstance(some, dict | list) else ():
                    for answer in answers:
                        if not isinstance(answer, dict) or (str(answer.get("id")), _text(answer)) not in listed:
                            yield answer


def _parts_by_speaker(entry: Any) -> list[Any]:
    """Return the parts of a turn that are turns of several speakers; nothing where it is one's."""
    for key in _LISTS if isinstance(entry, dict) else ():
        parts = entry.get(key)
        if not isinstance(parts, list) or not parts or _names_somebody(turn_of(entry)):
            continue
        if all(_is_turn(one) and _tells_who(turn_of(one)) for one in parts):
            return parts
    return []


def _by_name(document: Object) -> list[Any]:
    """Return the turns of an object that has them by their numbers, or a list for each speaker; else nothing."""
    values = [*document.values()]
    if len(values) > 1 and all(key.isdigit() for key in document) and all(_is_turn(one) for one in values[:20]):
        return values
    if len(values) < 2 or document.keys() & {*_LISTS, *_TIMED_PARTS, "chunks", "word_segments", "paragraphs"}:
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
        value = next((turn[key] for key in ("createdat", "timestamp", "datetime") if _is_text(turn, key)), "")
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
    """Return a list without what is no speech: where some entries are of the type transcript, what is of another."""
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
            if not any(isinstance(turn.get(key), str | list | dict) for key in _TEXT) and not one.get("type"):
                source.problem(f"{where} has no text")
            continue
        words = _filled(words, turn)
        at, moment = when_of(turn, where, source)
        has_clocks |= any(_is_text(turn, key) and ":" in turn[key] for key in turn.keys() & _WHEN.keys())
        until, _ = _when(turn, _UNTIL, where, source)
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


def people_of(document: Any, depth: int = 0) -> dict[str, str]:
    """Return what the people of a document are called, by each id that it has for them."""
    found: dict[str, str] = {}
    for key, value in document.items() if isinstance(document, dict) and depth < _DEEPEST else ():
        if isinstance(value, dict):
            found |= people_of(value, depth + 1)
        elif isinstance(value, list) and len(value) == 1:
            found |= people_of(value[0], depth + 1)
        if isinstance(value, list) and _plainly(key) in (
            "speakers",
            "parties",
            "participants",
            "people",
            "users",
            "contacts",
        ):
            found |= dict(_people(value))
    return found


def _people(entries: Iterable[object]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, dict):
            person = turn_of({**entry, **inner(entry, "profile")})
            name = next((one for key in _NAMES[:-2] if isinstance(one := person.get(key), str) and one.strip()), "")
            for key in _IDS:
                if name and isinstance(person.get(key), int | str):
                    yield str(person[key]), speaker_name(name.strip())


def who_of(turn: Mapping[str, Any], people: Mapping[str, str] | None = None) -> str:
    """Return who says a turn, by name where the document has it; else by the channel."""
    for key in _WHO:
        value = turn.get(key)
        if key == "role" and _is_text(turn, "name") and is_written_as_name(turn["name"]):
            value = turn["name"]
        if isinstance(value, list):
            value = next((one for one in value if isinstance(one, dict | str)), None)
        if isinstance(value, dict):
            person = turn_of(value)
            full = " ".join(one for key in ("firstname", "lastname") if isinstance(one := person.get(key), str))
            value = full or next(
                (one for name in _NAMES if isinstance(one := person.get(name), str | int) and one != ""), None
            )
        if isinstance(value, bool) or value is None or (isinstance(value, str) and not value.strip()):
            continue
        if isinstance(value, str | int) and not (key == "from" and value == turn.get("text")):
            return (people or {}).get(str(value)) or speaker_name(
                value.strip().lstrip("#@") if isinstance(value, str) else value
            )
    if _is_text(turn, "source") and _is_party(turn):
        return speaker_name(turn["source"])
    for party in (turn.get(kind) for kind in _KINDS):
        if isinstance(party, str) and (party in _PARTIES or (party in _ROLES and "parts" in turn)):
            return speaker_name(_ROLES.get(party, party))
    if name := _origin(turn):
        return (people or {}).get(name) or speaker_name(name)
    for parts in (turn.get(key) for key in ("words", "tokens")):
        first = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], dict) else {}
        if isinstance(told := first.get("speaker", first.get("label")), str | int):
            return speaker_name(told)
    channel = next((one for key in _CHANNELS if isinstance(one := turn.get(key), str | int)), None)
    return UNKNOWN_SPEAKER if channel is None else channel_name(channel)


def _when(
    turn: Mapping[str, Any], fields: Mapping[str, tuple[int, float]], where: str, source: Source
) -> tuple[float | None, datetime | None]:
    """Return the seconds from the beginning, or the moment, of the first of the fields that tells a time."""
    wrong = ""
    for name in sorted(turn.keys() & fields.keys(), key=lambda name: fields[name]):
        value, unit = turn[name], fields[name][1]
        if isinstance(value, list):
            value = value[0] if value and not isinstance(value[0], dict) else None
        value = _plain_time(value)
        if isinstance(value, bool | dict | None):
            continue
        try:
            if isinstance(value, str) and not is_number(value):
                return _read_time(value)
            found = float(value) * unit
            if abs(found) >= _EPOCH:
                return None, datetime.fromtimestamp(epoch_seconds(found, name)).astimezone()
            return (found, None) if found == found else (None, None)
        except (TypeError, ValueError, OverflowError) as error:
            wrong = wrong or f'"{name}" of {where}: {error}'
    if wrong:
        source.problem(wrong)
    words = next((one for key in _TIMED_PARTS if isinstance(one := turn.get(key), list) and one), [])
    first = words[0 if fields is _WHEN else -1] if words else None
    if isinstance(first, dict):
        inside = turn_of(first)
        told = {
            key: value.get("absolute", value.get("relative"))
            for key, value in inside.items()
            if isinstance(value, dict)
        }
        return _when({**inside, **told, **dict.fromkeys(_TIMED_PARTS)}, fields, where, source)
    return None, None


def _plain_time(value: object) -> Any:
    """Return a time as databases and programs wrap it: MongoDB, Firestore, protobuf, and ASP.NET."""
    match value:
        case {"$date": inside}:
            return inside.get("$numberLong") if isinstance(inside, dict) else inside
        case {"_seconds": seconds} | {"seconds": seconds}:
            return seconds
        case str(text) if found := _ASP_NET.fullmatch(text):
            return int(found[1]) / 1000
    return value


def when_of(turn: Mapping[str, Any], where: str, source: Source) -> tuple[float | None, datetime | None]:
    """Return when a turn begins, in seconds from the beginning, or as a moment."""
    return _when(turn, _WHEN, where, source)


def is_number(value: str) -> bool:
    """Return whether a text is a number, such as epoch seconds that JavaScript wrote."""
    return bool(re.fullmatch(r"\s*-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s*", value, re.IGNORECASE))


def _read_time(value: str) -> tuple[float | None, datetime | None]:
    if (seconds := duration(value.strip())) is not None:
        return seconds, None
    if re.match(r"\s*\d{4}-\d\d-\d\d", value):
        return None, iso(value)
    if re.fullmatch(r"\s*\d+(?:\.\d+)?\s?s\s*", value):
        return float(value.strip().rstrip("s")), None
    if (told := written(value)) is not None:
        return None, moment_of(told, order_of([told]))
    return offset(value.strip(" []()")), None


def begun(document: Any, *, made: bool = True) -> datetime | None:
    """Return when the meeting began, where its document says; ``made`` counts when it was created, too."""
    if not isinstance(document, dict):
        return None
    several = document.get("items")
    for holder in (
        document,
        *(several if isinstance(several, list) and len(several) == 1 and isinstance(several[0], dict) else ()),
        *(inner(document, *keys) for keys in (("data", "transcript"), *((one,) for one in _MEETINGS))),
    ):
        fields = {_plainly(key): value for key, value in holder.items()}
        for key in (*_BEGUN, *(f"{one}unixsecs" for one in _BEGUN), *(_MADE if made else ())):
            value = fields.get(key)
            try:
                if isinstance(value, int | float) and not isinstance(value, bool) and value >= _EPOCH:
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
