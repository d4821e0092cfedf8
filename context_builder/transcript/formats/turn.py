"""A turn is an object in JSON that tells who says what, and when, in fields that many programs call alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from context_builder.transcript.fields import Object, inner, optional_text, plain
from context_builder.transcript.formats.html_exports import text_of_page
from context_builder.transcript.formats.turn_fields import (
    CHANNELS,
    EPOCH,
    IDS,
    KINDS,
    NAMES,
    PARTIES,
    PARTS,
    ROLES,
    SOURCES,
    TEXT,
    TIMED_PARTS,
    UNTIL,
    WHEN,
    WHO,
    plainly,
)
from context_builder.transcript.labels import is_written_as_name
from context_builder.transcript.moments import epoch_seconds, iso
from context_builder.transcript.offsets import duration, offset
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, channel_name, speaker_name
from context_builder.transcript.written_dates import moment_of, order_of, written

_UNSAID_PARTS: Final = frozenset({
    "tool_use", "tool_result", "server_tool_use", "web_search_tool_result", "thinking", "redacted_thinking",
    "reasoning", "tool_call", "function_call", "function_call_output", "system-prompt", "tool-call", "tool-return",
    "retry-prompt",
})  # fmt: skip
"""Types of parts of a message to or from a model that nobody says."""

_KINDS_OF_PARTS: Final = ("$type", "content_type", "block_type")

_MARKED: Final = re.compile(r"\s*<(?:p|div|span|br)\b[^<>]*>", re.IGNORECASE)

_ASP_NET: Final = re.compile(r"/Date\((\d{12,14})(?:[+-]\d{4})?\)/")

DEEPEST: Final = 6


def turn_of(entry: Object) -> dict[str, Any]:
    """Return the fields of a turn by their names without capitals and underscores; a turn may be in a wrapper alone."""
    while len(entry) == 1 and isinstance(only := next(iter(entry.values())), dict):
        entry = only
    match entry:
        case {"versions": [*versions], "currentlySelected": int(place)} if place < len(versions):  # LM Studio's
            entry = versions[place] if isinstance(versions[place], dict) else entry
    found = {plainly(key): value for key, value in entry.items() if isinstance(key, str)}
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
        if isinstance(inside, dict) and (words := text_in(inside)):
            if wrapper == "kwargs":
                found.pop("type", None)  # LangChain's, of the object that it makes
            found = {**{plainly(key): value for key, value in inside.items()}, **found, "text": words}
    if isinstance(inside := found.get("data"), dict) and not has_text(found, "text") and (words := text_in(inside)):
        found = {**{plainly(key): value for key, value in inside.items()}, **found, "text": words}
    for beside in ("data", "metadata", "meta", "additions"):
        if isinstance(inside := found.get(beside), dict) and has_text(found, "text"):
            found = {**{plainly(key): value for key, value in inside.items()}, **found}
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
        found |= {plainly(key): value for key, value in places[0].items()}
    return found


def has_text(turn: Mapping[str, Any], key: str) -> bool:
    return isinstance(turn.get(key), str)


def name_of_part(turn: Mapping[str, Any]) -> str | None:
    """Return what names a turn that may come again, with more words; None where nothing does."""
    return next((str(turn[key]) for key in PARTS if isinstance(turn.get(key), str | int)), None)


def is_turn(entry: object) -> bool:
    """Return whether an object says something, and by whom or when."""
    if not isinstance(entry, dict):
        return False
    turn = turn_of(entry)
    return bool(text_of(turn)) and (
        tells_who(turn) or any(turn.get(name) is not None for name in turn.keys() & WHEN.keys())
    )


def text_of(turn: Mapping[str, Any]) -> str:
    """Return what a turn says: a text, or the parts of one."""
    for key in TEXT:
        if words := _words_in(turn.get(key)):
            return words
    return ""


def text_in(entry: Object) -> str:
    return text_of({plainly(key): value for key, value in entry.items() if isinstance(key, str)})


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


def tells_who(turn: Mapping[str, Any]) -> bool:
    has_party = (has_text(turn, "source") and _is_party(turn)) or any(
        turn[kind] in PARTIES or (turn[kind] in ROLES and "parts" in turn) for kind in KINDS if has_text(turn, kind)
    )
    return (
        has_party or bool(_origin(turn)) or names_somebody(turn) or any(turn.get(key) is not None for key in CHANNELS)
    )


def names_somebody(turn: Mapping[str, Any]) -> bool:
    return any(turn.get(key) is not None for key in WHO)


def _is_party(turn: Mapping[str, Any]) -> bool:
    """Return whether the source of a turn is who says it: a microphone, an agent (AutoGen), a bot or its user (Lex)."""
    is_message = any(str(turn.get(key)).endswith(("Message", "PlainText")) for key in ("type", "contenttype"))
    return turn["source"] in SOURCES or is_message


def _origin(turn: Mapping[str, Any]) -> str:
    """Return the user from whom an event of LINE comes."""
    return optional_text(turn["source"], "userId") if isinstance(turn.get("source"), dict) else ""


def who_of(turn: Mapping[str, Any], people: Mapping[str, str] | None = None) -> str:
    """Return who says a turn, by name where the document has it; else by the channel."""
    for key in WHO:
        value = turn.get(key)
        if key == "role" and has_text(turn, "name") and is_written_as_name(turn["name"]):
            value = turn["name"]
        if isinstance(value, list):
            value = next((one for one in value if isinstance(one, dict | str)), None)
        if isinstance(value, dict):
            person = turn_of(value)
            full = " ".join(one for key in ("firstname", "lastname") if isinstance(one := person.get(key), str))
            value = full or next(
                (one for name in NAMES if isinstance(one := person.get(name), str | int) and one != ""), None
            )
        if isinstance(value, bool) or value is None or (isinstance(value, str) and not value.strip()):
            continue
        if isinstance(value, str | int) and not (key == "from" and value == turn.get("text")):
            return (people or {}).get(str(value)) or speaker_name(
                value.strip().lstrip("#@") if isinstance(value, str) else value
            )
    if has_text(turn, "source") and _is_party(turn):
        return speaker_name(turn["source"])
    for party in (turn.get(kind) for kind in KINDS):
        if isinstance(party, str) and (party in PARTIES or (party in ROLES and "parts" in turn)):
            return speaker_name(ROLES.get(party, party))
    if name := _origin(turn):
        return (people or {}).get(name) or speaker_name(name)
    for parts in (turn.get(key) for key in ("words", "tokens")):
        first = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], dict) else {}
        if isinstance(told := first.get("speaker", first.get("label")), str | int):
            return speaker_name(told)
    channel = next((one for key in CHANNELS if isinstance(one := turn.get(key), str | int)), None)
    return UNKNOWN_SPEAKER if channel is None else channel_name(channel)


def people_of(document: Any, depth: int = 0) -> dict[str, str]:
    """Return what the people of a document are called, by each id that it has for them."""
    found: dict[str, str] = {}
    for key, value in document.items() if isinstance(document, dict) and depth < DEEPEST else ():
        if isinstance(value, dict):
            found |= people_of(value, depth + 1)
        elif isinstance(value, list) and len(value) == 1:
            found |= people_of(value[0], depth + 1)
        if isinstance(value, list) and plainly(key) in (
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
            name = next((one for key in NAMES[:-2] if isinstance(one := person.get(key), str) and one.strip()), "")
            for key in IDS:
                if name and isinstance(person.get(key), int | str):
                    yield str(person[key]), speaker_name(name.strip())


def when_of(turn: Mapping[str, Any], where: str, source: Source) -> tuple[float | None, datetime | None]:
    """Return when a turn begins, in seconds from the beginning, or as a moment."""
    return _when(turn, WHEN, where, source)


def until_of(turn: Mapping[str, Any], where: str, source: Source) -> tuple[float | None, datetime | None]:
    """Return when a turn ends, likewise."""
    return _when(turn, UNTIL, where, source)


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
            if abs(found) >= EPOCH:
                return None, datetime.fromtimestamp(epoch_seconds(found, name)).astimezone()
            return (found, None) if found == found else (None, None)
        except (TypeError, ValueError, OverflowError) as error:
            wrong = wrong or f'"{name}" of {where}: {error}'
    if wrong:
        source.problem(wrong)
    words = next((one for key in TIMED_PARTS if isinstance(one := turn.get(key), list) and one), [])
    first = words[0 if fields is WHEN else -1] if words else None
    if isinstance(first, dict):
        inside = turn_of(first)
        told = {
            key: value.get("absolute", value.get("relative"))
            for key, value in inside.items()
            if isinstance(value, dict)
        }
        return _when({**inside, **told, **dict.fromkeys(TIMED_PARTS)}, fields, where, source)
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
