"""A program outside a session pushes messages to it and reads what it publishes.

Everything here goes through the documented keys, so it works with any process that runs the
session, on any machine that reaches the same Redis.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast

import orjson
from redis.asyncio import Redis

from context_builder.clock import SystemClock
from context_builder.concurrency import beside_loop
from context_builder.errors import MessageError, StoreError
from context_builder.json_shape import Shape, loads
from context_builder.session.keys import ARRIVALS, Keys
from context_builder.session.messages.message import CONSILIENCE, Message, decode, delivered, is_assistants
from context_builder.session.messages.message_index import (
    MOST_SPEAKERS,
    SPEAKERS,
    HeldMessage,
    MessageIndex,
    fields_of,
    fields_wanted,
    speaker_field,
    speakers_in,
)
from context_builder.session.messages.revision import MessageReference, str_of
from context_builder.session.stored import CONVERSATION, COST, HEAD, OWNER, STATE, SUMMARY, count_of, reading
from context_builder.session.summary.citation import ExplainedPoint, explain
from context_builder.storage.redis_availability import read_together, translated
from context_builder.tracing import TRACEPARENT, recorded_span, span

JsonObject = dict[str, Any]

MOST_COMPARED: Final = 1_000
"""Newest waiting deliveries among which those are looked for that a message corrects."""

QUICK: Final = 65_536
"""Bytes of a state that are read within a millisecond."""

QUEUE_TAIL: Final = 200
"""Newest waiting deliveries among which the highest number is looked for."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Tells that a session was ended on purpose, at epoch second ``at``.

    ``summaries`` are those made in all, of ``messages``; ``undelivered`` of them still wait for the archive.
    """

    at: float
    messages: int
    summaries: int
    undelivered: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session's published values at one moment; ``None`` if a key is absent.

    ``waiting`` counts deliveries that the session has not taken in yet. ``ended`` is ``None`` while it goes on,
    and known also when the state has expired.
    """

    session_id: str
    state: JsonObject | None = None
    conversation: JsonObject | None = None
    waiting: int = 0
    owner: JsonObject | None = None
    ended: Ended | None = None


class SessionClient:
    """Gives a program access to one session that a daemon runs.

    Raises :class:`SessionIdError` for an id that no session can have, and from every method
    :class:`StoreUnavailable` when Redis does not answer, :class:`StoreError` when a key holds
    something that is not the documented JSON.
    """

    def __init__(self, redis: Redis, session_id: str) -> None:
        self._redis = redis
        self._keys = Keys(session_id)
        self.session_id = session_id

    async def push(self, *messages: Mapping[str, object]) -> None:
        """Hand messages to the session, the oldest first, in one step."""
        if not messages:
            return
        told: dict[str, str | int] = {"session.id": self.session_id, "session.messages": len(messages)}
        with span("session.push", told, kind="PRODUCER"):
            if recorded := recorded_span():
                messages = tuple({**message, TRACEPARENT: recorded.traceparent} for message in messages)
            async with translated(), self._redis.pipeline(transaction=False) as pipe:
                pipe.lpush(self._keys.input, *(orjson.dumps(message) for message in messages))
                pipe.publish(ARRIVALS, self.session_id)  # which a user of the Redis may not be allowed to
                pushed, _ = await pipe.execute(raise_on_error=False)
                if isinstance(pushed, Exception):
                    raise pushed

    async def correct(
        self, reference: MessageReference, *, text: str | None = None, speaker: str | None = None
    ) -> None:
        """Say what a message says: other words, another speaker, or both; what is None stays.

        Like everything that is pushed, it is applied in its turn. Raises :class:`MessageError` without either.
        """
        if text is None and speaker is None:
            raise MessageError("a correction has neither text nor speaker")
        said = {name: value for name, value in (("text", text), ("speaker", speaker)) if value is not None}
        await self._revise({"corrects": str_of(reference), **said})

    async def rename_speaker(self, old: str, new: str) -> None:
        """Call the speaker ``old`` ``new``, in all that was said and is yet to be said in the session."""
        await self._revise({"renames": old, "speaker": new})

    async def strike(self, reference: MessageReference, origin: str = "") -> None:
        """Let nothing of a message be left anywhere; ``origin`` as in :class:`StrikeRequest`."""
        await self._revise({"strikes": str_of(reference), **({"origin": origin} if origin else {})})

    async def _revise(self, fields: Mapping[str, object]) -> None:
        revision = {"session_id": self.session_id, "timestamp": datetime.now().astimezone().isoformat(), **fields}
        delivered(revision, SystemClock().now())  # which tells what is wrong with it
        await self.push(revision)

    async def has_spoken(self, speaker: str) -> bool:
        """Return whether a message of the session was sent with this name, or somebody was renamed to it; true, too,
        where too many have spoken to tell.
        """
        key = self._keys.message_index
        async with translated():
            dropped, known = await cast("Any", self._redis.hmget(key, [SPEAKERS, speaker_field(speaker)]))
            with reading(self.session_id, key, SPEAKERS):
                if known is not None or count_of(dropped or b"0") >= MOST_SPEAKERS:
                    return True
            fields = cast("Any", self._redis.hscan_iter(key, match="i:*", count=1_000))
            async for _, held in fields:
                with reading(self.session_id, key):
                    if speaker in speakers_in(held):
                        return True
            head = await cast("Awaitable[bytes | None]", self._redis.hget(self._keys.checkpoint, "head"))
        return speaker in ((_decode(head, self._keys.checkpoint, HEAD) or {}).get("names") or {}).values()

    async def held_message(self, reference: MessageReference) -> HeldMessage:
        """Return whether the session has the message: ``unknown`` also while it waits to be taken in.

        Raises :class:`MessageError` for one that is too old to be corrected.
        """
        return (await self._index_of(fields_of(reference))).held_message(reference)

    async def id_of(self, reference: MessageReference) -> int | None:
        """Return the id of the message, None while it is ``unknown``; raises as :meth:`held_message` does."""
        return (await self._index_of(fields_of(reference))).find(reference)

    async def replaced_by(self, messages: Sequence[Message]) -> list[int | None]:
        """Return, for each, the id of the message that it would correct, by ``corrects`` or by number and timestamp;
        None for one that corrects nothing the session has taken in. Raises as :meth:`held_message` does.
        """
        wanted = fields_wanted(messages, dict.fromkeys(range(len(messages)), False))
        index = await self._index_of(wanted) if wanted else MessageIndex(self.session_id, {}, 0)
        return [index.replaced_by(one) for one in messages]

    async def _index_of(self, wanted: Iterable[str]) -> MessageIndex:
        async with translated():
            fields = [*wanted]
            held = await cast("Any", self._redis.hmget(self._keys.message_index, fields))
            known = {name: value for name, value in zip(fields, held, strict=True) if value is not None}
            index = MessageIndex(self.session_id, known, 0)
            if of_numbers := [*index.wanted()]:
                more = await cast("Any", self._redis.hmget(self._keys.message_index, of_numbers))
                index.hold({name: value for name, value in zip(of_numbers, more, strict=True) if value is not None})
        return index

    async def is_known(self) -> bool:
        """Return whether a process runs the session, or Redis still has a trace that one ever did."""
        keys = self._keys
        async with translated():
            return bool(await self._redis.exists(keys.checkpoint, keys.state, keys.owner, keys.conversation))

    async def state(self) -> JsonObject | None:
        """Return the published state, or ``None`` when there is none (never ran, or expired)."""
        return await self._read(self._keys.state, STATE)

    async def remembered(self) -> JsonObject | None:
        """Return the published state; after it has expired, the one its checkpoint gives, as long as that is kept."""
        if (published := await self.state()) is not None:
            return published
        async with translated():
            fields, pending = await read_together(
                self._redis, ("hgetall", self._keys.checkpoint), ("llen", self._keys.pending)
            )
        with reading(self.session_id, self._keys.checkpoint):
            return await beside_loop(_restored, self.session_id, fields, pending) if fields else None

    async def conversation_state(self) -> JsonObject | None:
        """Return the published silence clock, or ``None`` when no process keeps it."""
        return await self._read(self._keys.conversation, CONVERSATION)

    async def owner(self) -> JsonObject | None:
        """Return who runs the session (``token``, ``host``, ``pid``, ``since``), or ``None`` when nobody does."""
        return await self._read(self._keys.owner, OWNER)

    async def waiting(self) -> int:
        """Return how many deliveries the session has not taken in yet."""
        async with translated():
            return int(await self._redis.llen(self._keys.input))

    async def corrects_waiting(self, messages: Sequence[Message]) -> list[bool]:
        """Return, for each, whether it may correct, by number and timestamp, what the session has not taken in yet.

        Any with both may, where more than 1,000 deliveries wait.
        """
        told_apart = [bool(one.corrects is None and one.number is not None and one.stamp) for one in messages]
        if not any(told_apart):
            return told_apart
        async with translated():
            waiting = await cast("Any", self._redis.lrange(self._keys.input, 0, MOST_COMPARED))
        if len(waiting) > MOST_COMPARED:
            return told_apart
        held = await beside_loop(_messages_of, waiting)
        return [
            may and any(_place_of(one) == _place_of(other) and one.text != other.text for other in held)
            for may, one in zip(told_apart, messages, strict=True)
        ]

    async def next_number(self) -> int:
        """Return the number for a listener's next message, so that the session's numbering goes on."""
        async with translated():
            state, head, queued = await read_together(
                self._redis,
                ("get", self._keys.state),
                ("hget", self._keys.checkpoint, "head"),
                ("lrange", self._keys.input, 0, QUEUE_TAIL - 1),
            )
        known = await _decoded(state, self._keys.state, STATE) or _decode(head, self._keys.checkpoint, HEAD) or {}
        return 1 + max(int(known.get("highest_message_number", 0)), _highest_number(queued))

    async def points(self) -> list[ExplainedPoint]:
        """Return the points of the summary, oldest first, each with the messages behind it."""
        async with translated():
            fields = await cast("Awaitable[dict[bytes, bytes]]", self._redis.hgetall(self._keys.checkpoint))
        with reading(self.session_id, self._keys.checkpoint):
            return await beside_loop(lambda: explain({name.decode(): value for name, value in fields.items()}))

    async def cost(self) -> JsonObject | None:
        """Return what the session's model calls have cost, also after the state has expired; None where that cannot be
        read.
        """
        async with translated():
            head = await cast("Awaitable[bytes | None]", self._redis.hget(self._keys.checkpoint, "head"))
        counters = (_decode(head, self._keys.checkpoint, HEAD) or {}).get("counters", {})
        try:
            return {**COST.whole(orjson.dumps(counters.get("cost")))}
        except ValueError:
            return None

    async def ended(self) -> Ended | None:
        """Return when and how the session was ended; ``None`` for one that goes on, or never ran."""
        keys = self._keys
        async with translated():
            (head, summary), undelivered = await read_together(
                self._redis, ("hmget", keys.checkpoint, ["head", "summary"]), ("llen", keys.outbox)
            )
        counters = (_decode(head, keys.checkpoint, HEAD) or {}).get("counters", {})
        if not counters.get("ended_at"):
            return None
        ledger = _decode(summary, keys.checkpoint, SUMMARY) or {}
        return Ended(counters["ended_at"], ledger.get("message_count", 0), ledger.get("seq", 0), undelivered)

    async def snapshot(self) -> Snapshot:
        """Return everything that is published of the session, read at one moment."""
        keys = self._keys
        async with translated():
            (state, conversation, owner), waiting = await read_together(
                self._redis, ("mget", keys.state, keys.conversation, keys.owner), ("llen", keys.input)
            )
        return Snapshot(
            session_id=self.session_id,
            state=await _decoded(state, keys.state, STATE),
            conversation=_decode(conversation, keys.conversation, CONVERSATION),
            waiting=int(waiting),
            owner=_decode(owner, keys.owner, OWNER),
            ended=await self.ended() if owner is None else None,
        )

    async def _read(self, key: str, shape: Shape[Any]) -> JsonObject | None:
        async with translated():
            raw = await self._redis.get(key)
        return await _decoded(raw, key, shape)


def spoken(session_id: str, number: int, speaker: str, text: str, at: datetime) -> JsonObject:
    """Return a message as a listener sends it."""
    return {
        "session_id": session_id,
        "speaker": speaker,
        "text": text,
        "timestamp": at.isoformat(),
        "confidence": 1.0,
        "message_number": number,
        "_score": float(number),
    }


def contributed(
    text: str, at: datetime, metadata: Mapping[str, object] | None = None, speaker: str = CONSILIENCE
) -> JsonObject:
    """Return an assistant's contribution as an orchestrator sends it, numbered by its time in milliseconds.

    Where several assistants take part, each is a ``speaker`` of its own.
    """
    return {
        "message_number": int(at.timestamp() * 1000),
        "speaker": speaker,
        "text": text,
        "timestamp": at.isoformat(),
        "type": "consilience",
        "metadata": dict(metadata or {}),
    }


def _restored(session_id: str, fields: Mapping[bytes, bytes], pending: int) -> JsonObject:
    """Return the state that a checkpoint holds."""
    from context_builder.session.config import SessionConfig
    from context_builder.session.conversation.state import restore, take_session_state
    from context_builder.tokens.counter import estimate_tokens

    now = SystemClock().now()
    named = {name.decode(): value for name, value in fields.items()}
    conversation = restore(session_id, named, pending, SessionConfig(), now, estimate_tokens)
    state: JsonObject = orjson.loads(bytes(take_session_state(conversation, 0, now)))
    return state


async def _decoded(raw: bytes | str | None, key: str, shape: Shape[Any]) -> JsonObject | None:
    """Return what a key holds; what is large is read beside the loop."""
    if raw is None or len(raw) <= QUICK:
        return _decode(raw, key, shape)
    return await beside_loop(_decode, raw, key, shape)


def _decode(raw: bytes | str | None, key: str, shape: Shape[Any]) -> JsonObject | None:
    if raw is None:
        return None
    try:
        value = loads(raw)
    except ValueError as error:
        raise StoreError(f"{key}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise StoreError(f"{key}: not a JSON object")
    return shape.known(value)


def _place_of(message: Message) -> tuple[bool, int | None, str]:
    """Return what a message shares with one that it corrects without saying so."""
    return message.consilience, message.number, message.stamp


def _messages_of(deliveries: Iterable[bytes]) -> list[Message]:
    """Return the messages among raw deliveries that can be read."""
    now = SystemClock().now()
    messages: list[Message] = []
    for raw in deliveries:
        with suppress(MessageError):
            one = decode(raw, now, max_bytes=len(raw))
            messages += [one] if isinstance(one, Message) else []
    return messages


def _highest_number(deliveries: Iterable[bytes | str]) -> int:
    """Return the highest listener number among raw deliveries; 0 when none has one."""
    return max((_listener_number(raw) for raw in deliveries), default=0)


def _listener_number(raw: bytes | str) -> int:
    try:
        message = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return 0
    if not isinstance(message, dict):
        return 0
    number = message.get("message_number")
    return number if isinstance(number, int) and not is_assistants(message) else 0
