"""Slack's exports: files of a channel's messages, one for each day, and who the people are beside them.

An export shows a message as it was left: edited ones with their last text. What its events interface sends, changes and
deletions as messages of their own, is read as well.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from context_builder.transcript.fields import Object, each_object, inner, optional_text, plain, some_objects
from context_builder.transcript.moments import epoch_of, of_chat
from context_builder.transcript.source import Names, Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Transcript, Utterance, name_of

_SPOKEN: Final = (
    None, "", "thread_broadcast", "reply_broadcast", "me_message", "file_share", "file_comment", "bot_message",
    "assistant_app_thread",
)  # fmt: skip
"""Subtypes of messages in which somebody says something; others announce joining, topics and the like."""

_REFERENCE: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_MENTION: Final = re.compile(r"@([UW][A-Z0-9]{1,20})(?!\w)")
_SPACES_OWN: Final = frozenset({"here", "channel", "everyone"})
_OTHERS: Final = ("date", "timestamp", "from", "role", "created_at", "createdAt")
"""Fields of other programs' messages of this type."""

_DEEPEST: Final = 12
_THREADS: Final = ("slackdump_thread_replies", "thread_replies", "replies", "thread_messages")
"""Where programs that save a channel keep the messages of a thread; Slack's own export has their moments alone."""


def names_of(users: object) -> dict[str, str]:
    """Return the names in ``users.json``, or ``org_users.json`` of a Grid, by user id; others' entries are left out."""
    found = users.get("members", users.get("users")) if isinstance(users, dict) else users
    return {str(one["id"]): name_of(_name(one) or one["id"]) for one in some_objects(found) if one.get("id")}


def is_slack(messages: object) -> bool:
    """Return whether a list holds messages as Slack writes them."""
    return any(
        "ts" in one or (one.get("type") == "message" and one.keys().isdisjoint(_OTHERS))
        for one in some_objects(messages, 50)
    )


def read_slack(messages: object, source: Source) -> Transcript:
    """Return what was said in a channel. Raises :class:`ValueError` for what is not a list of messages."""
    return of_chat(said_in(messages, source))


def with_names(said: Iterable[tuple[float, Utterance]], names: Names) -> Iterator[tuple[float, Utterance]]:
    """Yield what was said with the names, by id, of people who were mentioned before they wrote anything."""
    for at, one in said:
        text = (
            _MENTION.sub(lambda found: f"@{names.get(found[1], found[1])}", one.text) if "@" in one.text else one.text
        )
        yield at, one if text == one.text else replace(one, text=text)


def names_in(messages: object) -> dict[str, str]:
    """Return the names that messages carry of who wrote them (``user_profile``), by user id."""
    written = _with_replies(some_objects(messages))
    told = {str(one["user"]): _name(inner(one, "user_profile")) for one in written if one.get("user")}
    return {user: name_of(name) for user, name in told.items() if name}


def _with_replies(messages: Iterable[Object], depth: int = 0) -> Iterator[Object]:
    """Yield messages, each with those of its thread that a program keeps within it (slackdump and others)."""
    for one in messages:
        yield one
        for key in _THREADS if depth < _DEEPEST else ():
            replies = some_objects(one.get(key))
            yield from _with_replies((reply for reply in replies if "text" in reply or "blocks" in reply), depth + 1)


def said_in(messages: object, source: Source) -> list[tuple[float, Utterance]]:
    """Return what was said in messages of a channel, with their epoch seconds."""
    said: dict[tuple[str, str], tuple[float, Utterance]] = {}  # by moment and author, which edits keep
    listed = [*each_object(messages, "messages", source)]
    source.names = {**names_in(messages), **source.names}
    for where, one in [(where, each) for where, whole in listed for each in _with_replies([whole])]:
        subtype = one.get("subtype")
        if subtype == "message_deleted":
            said = {key: value for key, value in said.items() if key[0] != str(one.get("deleted_ts"))}
            continue
        message = inner(one, "message") if subtype == "message_changed" else one
        key = (str(message.get("ts")), str(message.get("user") or message.get("bot_id") or message.get("username")))
        if message.get("type", "message") != "message" or message.get("subtype") not in _SPOKEN:
            continue
        try:
            at = epoch_of(message, "ts", where)
        except ValueError as error:
            source.problem(error)
            continue
        if words := _text(message, source.names):
            said[key] = (at, Utterance(_speaker(message, source.names), words))
        else:
            said.pop(key, None)
    return [*said.values()]


def _speaker(message: Object, names: Names) -> str:
    user = str(message.get("user") or "")
    own = _name(inner(message, "user_profile"))
    bot = optional_text(message, "username") or optional_text(inner(message, "bot_profile"), "name")
    shown = bot if message.get("subtype") == "bot_message" or message.get("bot_id") else ""
    return name_of(shown or names.get(user) or own or bot or user or message.get("bot_id") or UNKNOWN_SPEAKER)


def _name(user: Object) -> str:
    """Return what somebody is called: what is shown first."""
    profile = inner(user, "profile")
    shown = optional_text(profile, "display_name") or optional_text(user, "display_name")
    return (
        shown or optional_text(user, "real_name") or optional_text(profile, "real_name") or optional_text(user, "name")
    )


def _text(message: Object, names: Names) -> str:
    """Return what a message says: its text, or where that is blank its blocks; and what its attachments add."""
    own = _plain(str(message["text"]), names) if isinstance(message.get("text"), str) else ""
    own = own or " ".join(_blocks(message.get("blocks"), names))
    told = [own] if own else []
    for attachment in some_objects(message.get("attachments")):
        if _is_preview(attachment) and own:
            continue
        for part in _attachment(attachment, names):
            if not any(part in other for other in told):
                told.append(part)
    return " ".join(told)


def _is_preview(attachment: Object) -> bool:
    """Return whether an attachment only shows what a link or a quotation in the text leads to."""
    return any(
        attachment.get(key) for key in ("from_url", "is_msg_unfurl", "is_share", "original_url", "is_app_unfurl")
    )


def _attachment(attachment: Object, names: Names) -> Iterator[str]:
    found = [_plain(str(attachment[key]), names) for key in ("pretext", "title", "text") if _is_text(attachment, key)]
    for entry in some_objects(attachment.get("fields")):
        pair = [_plain(str(entry[key]), names) for key in ("title", "value") if _is_text(entry, key)]
        found.append(": ".join(part for part in pair if part))
    found += _blocks(attachment.get("blocks"), names)
    if not any(found) and _is_text(attachment, "fallback"):
        found = [_plain(str(attachment["fallback"]), names)]
    yield from (one for one in found if one)


def _blocks(blocks: object, names: Names) -> list[str]:
    """Return the texts of blocks: sections, headers, contexts, and rich text."""
    return [words for block in some_objects(blocks) if (words := plain(" ".join(_block(block, names))))]


def _block(block: Object, names: Names) -> Iterator[str]:
    if block.get("type") == "rich_text":
        yield "".join(_rich(block, names, 0))
        return
    for held in (block.get("text"), *some_objects(block.get("fields")), *some_objects(block.get("elements"))):
        told = held.get("text") if isinstance(held, dict) and held.get("type") != "button" else held
        if isinstance(told, str):
            yield _plain(told, names)


def _rich(element: Object, names: Names, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    kind = element.get("type")
    if kind == "text" or (kind == "link" and element.get("text")):
        yield str(element.get("text") or "")
    elif kind == "link":
        yield str(element.get("url") or "")
    elif kind == "user":
        yield f"@{names.get(str(element.get('user_id')), element.get('user_id'))}"
    elif kind == "channel":
        yield f"#{element.get('channel_id')}"
    elif kind == "broadcast":
        yield f"@{element.get('range')}"
    elif kind == "emoji":
        yield f":{element.get('name')}:"
    for one in some_objects(element.get("elements")):
        yield from _rich(one, names, depth + 1)
    if str(kind).startswith("rich_text_"):
        yield "\n"


def _plain(marked: str, names: Names) -> str:
    """Return a text without Slack's marks: people, channels and links by their names."""

    def named(found: re.Match[str]) -> str:
        kind, target, label = found.groups()
        if kind == "@":
            return f"@{names.get(target) or label or target}"
        if kind == "!":
            command = target.partition("^")[0]
            shown = label or (command if command in _SPACES_OWN else target)
            return shown if command == "date" or shown.startswith("@") else f"@{shown}"
        return f"{kind}{label or target}"

    return plain(html.unescape(_REFERENCE.sub(named, marked)))


def _is_text(entry: Object, key: str) -> bool:
    return isinstance(entry.get(key), str) and bool(entry[key].strip())
