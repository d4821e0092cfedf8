"""Exports of chats: Slack's, a folder or file of messages of a channel, and Matrix', as Element writes it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from context_builder.transcript.fields import number, objects, text
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Utterance

_SPOKEN: Final = (None, "", "thread_broadcast", "me_message", "file_share", "bot_message")
"""Subtypes of Slack's messages in which somebody says something; others announce joining, topics and the like."""

_REFERENCE: Final = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")

Names = Mapping[str, str]


def slack_names(users: object) -> dict[str, str]:
    """Return the names in Slack's ``users.json`` by user id. Raises :class:`ValueError`."""
    return {str(one.get("id")): _name_of(one) or str(one.get("id")) for one in objects(users, "users")}


def slack(messages: object, names: Names) -> list[tuple[float, Utterance]]:
    """Return what was said in a channel, with the epoch seconds of each message.

    Raises :class:`ValueError` naming what is not as it must be.
    """
    said = []
    for place, one in enumerate(objects(messages, "messages")):
        if one.get("type") != "message" or one.get("subtype") not in _SPOKEN:
            continue
        where = f"messages[{place}]"
        if (at := number(one, "ts", where)) is None:
            raise ValueError(f'{where} has no "ts"')
        if words := _plain(text(one, "text", where), names):
            said.append((at, Utterance(_slack_speaker(one, names), words)))
    return said


def matrix(messages: object) -> list[tuple[float, Utterance]]:
    """Return what was said in a room, with the epoch seconds of each message. Raises :class:`ValueError`."""
    return [*_matrix(objects(messages, "messages"))]


def _matrix(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, Utterance]]:
    for place, one in enumerate(messages):
        content = one.get("content")
        if one.get("type") != "m.room.message" or not isinstance(content, dict) or "body" not in content:
            continue
        where = f"messages[{place}]"
        if (at := number(one, "origin_server_ts", where)) is None:
            raise ValueError(f'{where} has no "origin_server_ts"')
        sender = str(one.get("sender") or UNKNOWN_SPEAKER)
        if words := text(content, "body", where):
            yield at / 1000, Utterance(sender.removeprefix("@").partition(":")[0] or sender, words)


def _slack_speaker(message: Mapping[str, Any], names: Names) -> str:
    profile = message.get("user_profile")
    user = str(message.get("user") or "")
    own = _name_of(profile) if isinstance(profile, dict) else ""
    return names.get(user) or own or str(message.get("username") or user or UNKNOWN_SPEAKER)


def _name_of(user: Mapping[str, Any]) -> str:
    inner = user.get("profile")
    profile = inner if isinstance(inner, dict) else {}
    candidates = (profile.get("display_name"), user.get("display_name"), user.get("real_name"), user.get("name"))
    return next((one for one in candidates if isinstance(one, str) and one), "")


def _plain(marked: str, names: Names) -> str:
    """Return a text without Slack's marks: people, channels and links by their names."""

    def named(found: re.Match[str]) -> str:
        kind, target, label = found.groups()
        if kind == "@":
            return f"@{label or names.get(target, target)}"
        return f"{kind if kind == '#' else ''}{label or target}"

    return html.unescape(_REFERENCE.sub(named, marked))
