"""Chats as they go on: events of Slack, Matrix, Discord, Telegram and others; an edit is a correction.

https://docs.slack.dev/reference/events/message, https://spec.matrix.org/latest/client-server-api/#event-replacements,
https://discord.com/developers/docs/events/gateway-events#message-create and https://core.telegram.org/bots/api#update
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from context_builder.transcript.fields import inner, optional_text, parse
from context_builder.transcript.formats import discord, matrix, messengers, slack
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import UNKNOWN_SPEAKER, Heard, Utterance, name_of


def slack_event(message: Message) -> Message:
    """Return the event in an envelope of Slack's, or the message itself."""
    return inner(message, "payload", "event") or inner(message, "event") or message


def is_slack(message: Message) -> bool:
    event = slack_event(message)
    return event.get("type") == "message" and isinstance(event.get("ts"), str)


def read_slack(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what an event says, or corrects. Raises :class:`ValueError`."""
    event = slack_event(message)
    said = inner(event, "message") if event.get("subtype") == "message_changed" else event
    source = Source("event")
    spoken = [one for _, one in slack.said_in([event], source)]
    for one in spoken:
        yield from stream.said_or_corrected(("slack", str(event.get("channel")), str(said.get("ts"))), one)


def is_matrix(message: Message) -> bool:
    return message.get("type") == "m.room.message"


def read_matrix(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what an event says, or corrects; only who wrote a message can edit it. Raises :class:`ValueError`."""
    relation = inner(message, "content", "m.relates_to")
    edited = str(relation.get("event_id")) if relation.get("rel_type") == "m.replace" else ""
    event = edited or str(message.get("event_id"))
    transcript = matrix.read_matrix([{"origin_server_ts": 0, **message}], Source("event"))
    for one in transcript.utterances:
        yield from stream.said_or_corrected(("matrix", event), one)


def is_discord(message: Message) -> bool:
    """Return whether it is of Discord's gateway, an event or what keeps the connection alive."""
    return isinstance(message.get("op"), int) and "d" in message


def read_discord(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a message says that was written, or corrects one that was edited."""
    event = inner(message, "d")
    if message.get("t") in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
        for one in discord.read_discord([{"timestamp": _NO_MOMENT, **event}], Source("event")).utterances:
            yield from stream.said_or_corrected(("discord", str(event.get("id"))), one)


_NO_MOMENT: Final = "1970-01-01T00:00:00+00:00"
_TELEGRAM: Final = ("message", "edited_message", "channel_post", "edited_channel_post")


def is_telegram(message: Message) -> bool:
    return "update_id" in message


def read_telegram(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what an update of Telegram's bots says, or corrects."""
    one = next((inner(message, kind) for kind in _TELEGRAM if kind in message), {})
    sender = inner(one, "from") or inner(one, "sender_chat") or inner(one, "chat")
    name = " ".join(part for key in ("first_name", "last_name") if (part := optional_text(sender, key)))
    if text := optional_text(one, "text", "caption"):
        who = name_of(name or optional_text(sender, "username", "title") or UNKNOWN_SPEAKER)
        key = ("telegram", str(inner(one, "chat").get("id")), str(one.get("message_id")))
        yield from stream.said_or_corrected(key, Utterance(who, text))


def is_zulips_edit(message: Message) -> bool:
    return message.get("type") == "update_message" and "message_id" in message


def read_zulips_edit(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield the correction of a message of Zulip."""
    if text := optional_text(message, "content"):
        yield from stream.corrected(("messenger", str(message["message_id"])), text=text)


def messenger_message(message: Message) -> Message | None:
    """Return the message of another chat program in what it sends: Mattermost, Rocket.Chat, or signal-cli."""
    arguments = inner(message, "fields").get("args")
    post = inner(message, "data").get("post")
    try:
        posted = parse(post) if isinstance(post, str) else None
    except ValueError:
        posted = None
    if isinstance(posted, dict):
        posted = {**posted, "user": optional_text(inner(message, "data"), "sender_name").lstrip("@") or None}
    first = arguments[0] if isinstance(arguments, list) and arguments else None
    for one in (posted, first, inner(message, "params"), inner(message, "message"), message):
        if isinstance(one, dict) and messengers.messenger_of(one) is not None:
            return one
    return None


def read_messenger(message: Message, stream: Stream) -> Iterator[Heard]:
    """Yield what a message of another chat program says, or corrects."""
    if (one := messenger_message(message)) is not None:
        key: Hashable = ("messenger", str(one.get("_id") or one.get("id")))
        if (signal := messengers.signal_message(one)) is not None:
            edited = ("signal", str(signal.who), str(signal.edits)) if signal.edits is not None else None
            key = stream.first_of(("signal", str(signal.who), str(signal.at)), edited)
        for said in messengers.read_messages([one], Source("event")).utterances:
            if one.get("edit_at") and stream.was_said(key):  # an edit of Mattermost's names nobody
                yield from stream.corrected(key, text=said.text)
                continue
            yield from stream.said_or_corrected(key, said)
