"""Chats in JSON, by whichever program they were written: found in a table by what a list of their messages holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from context_builder.transcript.fields import inner, optional_text, some_objects
from context_builder.transcript.formats import discord, matrix, messengers, slack
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Transcript, name_of


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A format of documents in JSON: ``matches`` tells whether one is in it, ``read`` returns what it says."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, Source], Transcript]


CHATS: Final = (
    DocumentFormat("Matrix", matrix.is_matrix, matrix.read_matrix),
    DocumentFormat("Discord", discord.is_discord, discord.read_discord),
    DocumentFormat("Telegram and others", messengers.is_messages, messengers.read_messages),
    DocumentFormat("Slack", slack.is_slack, slack.read_slack),
)

_LISTS: Final = ("messages", "chunk", "events", "value", "posts", "zerver_message", "requests")
"""Where documents hold a chat's messages."""


def read_chat(document: Any, source: Source) -> Transcript | None:
    """Return what was said in a chat; None for a document of an unknown form."""
    people = document.get("zerver_userprofile") if isinstance(document, dict) else None  # Zulip's export
    for one in some_objects(people):
        if name := optional_text(one, "full_name"):
            source.names = {**source.names, str(one.get("id")): name_of(name)}
    for messages in lists_of(document, source):
        if (chat := chat_of(messages)) is not None:
            return chat.read(messages, source)
    return None


def chat_of(messages: object) -> DocumentFormat | None:
    return next((one for one in CHATS if one.matches(messages)), None)


def lists_of(document: Any, source: Source) -> Iterator[list[Any]]:
    """Yield the lists of a document that may hold messages; several chats of a person's are one list."""
    if isinstance(document, list):
        yield document
        return
    if not isinstance(document, dict):
        return
    for key in _LISTS:
        match document.get(key):
            case list(messages):
                yield messages
            case dict(posts):  # Mattermost's, by their ids
                yield [*posts.values()]
    if several := _by_number(document):
        if len(several) > 1:
            source.notes.append(f"{len(several)} chats in the order of time")
        yield [message for messages in several for message in messages]
    if messengers.messenger_of(document) is not None:
        yield [document]
    rooms = some_objects([*inner(document, "rooms", "join").values()])  # Matrix' sync
    timelines = [inner(room, "timeline").get("events") for room in rooms]
    yield [event for events in timelines if isinstance(events, list) for event in events]
    chats, key = inner(document, "chats").get("list"), "messages"  # Telegram
    if not isinstance(chats, list):
        chats, key = document.get("conversations"), "MessageList"  # Skype
    if any("events" in one for one in some_objects(chats)):  # Hangouts
        key = "events"
        for one in some_objects(chats):
            for person in some_objects(inner(one, "conversation", "conversation").get("participant_data")):
                if name := optional_text(person, "fallback_name"):
                    source.names = {**source.names, str(inner(person, "id").get("gaia_id")): name_of(name)}
    if isinstance(chats, list):
        each = [one[key] for one in some_objects(chats) if isinstance(one.get(key), list)]
        if len(each) > 1:
            source.notes.append(f"{len(each)} chats in the order of time")
        yield [message for messages in each for message in messages]


def _by_number(document: Any) -> list[list[Any]]:
    """Return the messages of chats that are named by a number, each with its chat's name (WhatsApp-Chat-Exporter)."""
    found = []
    for number, chat in document.items():
        messages = some_objects([*inner(chat, "messages").values()]) if isinstance(chat, dict) else []
        if messages and "from_me" in messages[0]:
            name = optional_text(chat, "name") or str(number).partition("@")[0]
            found.append([{"chat": name, **one} for one in messages])
    return found
