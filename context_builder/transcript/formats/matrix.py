"""Exports of Matrix rooms, as Element writes them, and events as servers give them.

The events are those of the specification (https://spec.matrix.org/latest/client-server-api/): ``m.room.message``,
replaced by ``m.replace``, in reply to others, with a caption beside a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from context_builder.transcript.fields import Object, each_object, inner, optional_text, plain, some_objects
from context_builder.transcript.moments import epoch_of, of_chat
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_SPOKEN: Final = frozenset({"m.text", "m.notice", "m.emote"})
_FILES: Final = frozenset({"m.image", "m.file", "m.audio", "m.video"})
"""Kinds of messages whose ``body`` is the name of a file, unless ``filename`` has that."""


def is_matrix(messages: object) -> bool:
    """Return whether a list holds events as Matrix has them."""
    return any(
        "origin_server_ts" in one or str(one.get("type", "")).startswith(("m.room", "m.reaction"))
        for one in some_objects(messages, 200)
    )


def read_matrix(messages: object, source: Source) -> Transcript:
    """Return what was said in a room, each message with its last text. Raises :class:`ValueError` for no list."""
    events = [*each_object(messages, "messages", source)]
    names = {**_members(one for _, one in events), **source.names}
    said: dict[str, tuple[float, str, str]] = {}  # by event: the epoch second, the sender, the text
    edits: dict[str, list[tuple[float, str, str]]] = {}
    if encrypted := sum(_is_encrypted(one) for _, one in events):
        source.notes.append(f"{encrypted} encrypted {'message' if encrypted == 1 else 'messages'} not read")
    redacted = _redacted(one for _, one in events)
    for where, one in events:
        content = inner(one, "content")
        if one.get("type") != "m.room.message" or not content or str(one.get("event_id")) in redacted:
            continue
        try:
            at = epoch_of(one, "origin_server_ts", where)
        except ValueError as error:
            source.problem(error)
            continue
        sender = str(one.get("sender") or one.get("user_id") or UNKNOWN_SPEAKER)
        relation = inner(content, "m.relates_to")
        if relation.get("rel_type") == "m.replace":
            words = _text(inner(content, "m.new_content") or _unstarred(content))
            edits.setdefault(str(relation.get("event_id")), []).append((at, sender, words))
            continue
        bundled = inner(one, "unsigned", "m.relations", "m.replace", "content", "m.new_content")
        said[str(one.get("event_id") or where)] = (at, sender, _text(bundled or content))
    for event, changes in edits.items():
        if event not in redacted:
            _replace(said, event, changes)
    return of_chat(
        (at, Utterance(names.get(sender) or name_of(_local(sender)), words))
        for at, sender, words in said.values()
        if words
    )


def _redacted(events: Iterable[Object]) -> set[str]:
    """Return the ids of events that were redacted: by others, or that servers have left without content."""
    found: set[str] = set()
    for one in events:
        if one.get("type") == "m.room.redaction":
            found.add(str(one.get("redacts") or inner(one, "content").get("redacts")))
        elif one.get("type") == "m.room.message" and (
            not inner(one, "content") or inner(one, "unsigned").get("redacted_because")
        ):
            found.add(str(one.get("event_id")))
    return found


def _is_encrypted(event: Object) -> bool:
    return event.get("type") == "m.room.encrypted" or inner(event, "content").get("msgtype") == "m.bad.encrypted"


def _replace(said: dict[str, tuple[float, str, str]], event: str, changes: list[tuple[float, str, str]]) -> None:
    """Put the last text of an edited message in its place; only who wrote it can edit it."""
    at, sender, _ = said.get(event, min(changes))
    own = [one for one in changes if one[1] == sender]
    if own:
        said[event] = (at, sender, max(own, key=lambda one: one[0])[2])


def _members(events: Iterator[Object]) -> dict[str, str]:
    """Return what the members of the room are called, by user id, as their newest event has it."""
    names: dict[str, str] = {}
    for one in events:
        shown = optional_text(inner(one, "content"), "displayname")
        if one.get("type") == "m.room.member" and shown:
            names[str(one.get("state_key") or one.get("sender"))] = name_of(shown)
    return names


def _local(sender: str) -> str:
    """Return the local part of a user id."""
    return sender.removeprefix("@").partition(":")[0] or sender


def _text(content: Object) -> str:
    kind, body = str(content.get("msgtype", "m.text")), content.get("body")
    if not isinstance(body, str):
        return ""
    if kind in _FILES:
        name = content.get("filename")
        return plain(body) if isinstance(name, str) and name != body else ""
    if kind not in _SPOKEN:
        return ""
    return plain(_without_quote(body) if "m.in_reply_to" in inner(content, "m.relates_to") else body)


def _without_quote(body: str) -> str:
    """Return a reply without what it quotes for programs that know no replies: lines with ``>``, and an empty one."""
    lines = body.split("\n")
    count = next((place for place, line in enumerate(lines) if not line.startswith(">")), len(lines))
    return "\n".join(lines[count:])


def _unstarred(content: Object) -> dict[str, Any]:
    body = content.get("body")
    return {**content, "body": body.removeprefix("* ")} if isinstance(body, str) else {}
