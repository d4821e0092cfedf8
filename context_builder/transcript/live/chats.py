"""Chats as they go on: events of Slack (Events API, Socket Mode) and of Matrix; an edit is a correction.

https://docs.slack.dev/reference/events/message and https://spec.matrix.org/latest/client-server-api/#event-replacements
"""

from __future__ import annotations

from collections.abc import Iterator

from context_builder.transcript.fields import inner
from context_builder.transcript.formats import matrix, slack
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.source import Source
from context_builder.transcript.utterance import Heard


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
