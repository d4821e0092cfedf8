"""An outbox is a list in Redis of entries that are committed and not yet delivered.

What waits in a session's lists to be delivered, or was refused, is kept free of what was struck since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import orjson
from redis.asyncio import Redis

from context_builder.errors import EntryUnreadable
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.memory_batch import MemoryBatch, StruckMessage
from context_builder.session.keys import RECEIVERS, Keys, Receiver, dead_bytes_field, dead_count_field
from context_builder.session.messages.message_index import id_field, number_in
from context_builder.session.store.dead_letters import DeadLetter, without_words
from context_builder.session.store.scripts import script
from context_builder.storage.redis_availability import translated


class Outbox:
    """Reads the entries for ``receiver``, oldest first, which commits add. What the receiver will never take goes to
    its dead letters, so many and so large as ``rules`` say.

    Raises :class:`StoreUnavailable` as the store does.
    """

    def __init__(self, client: Redis, session_id: str, receiver: Receiver, rules: SessionConfig) -> None:
        self.receiver: Receiver = receiver
        self._client: Any = client  # redis-py types its commands as sync or async at once
        self._rules = rules
        keys = Keys(session_id)
        self._key = keys.outbox_of(receiver)
        self._dead_letter_keys = [self._key, keys.dead_letters_of(receiver), keys.checkpoint]
        self._dead_letter = script(client, "dead_letter")

    async def at(self, place: int) -> bytes | None:
        """Return the entry at ``place``, 0 being the one that has waited longest; None beyond the last."""
        async with translated():
            return cast("bytes | None", await self._client.lindex(self._key, place))

    async def discard(self, entry: bytes) -> None:
        """Remove a delivered entry; repeating it has no effect."""
        async with translated():
            await self._client.lrem(self._key, 1, entry)

    async def move_to_dead_letters(self, entry: bytes, letter: bytes) -> int:
        """Replace the entry by its dead letter in one step, and return how many there have been; repeating it has no
        effect.
        """
        limits = [self._rules.dead_letters_max, self._rules.dead_letters_bytes]
        fields = [dead_count_field(self.receiver), dead_bytes_field(self.receiver)]
        async with translated():
            return int(await self._dead_letter(keys=self._dead_letter_keys, args=[entry, letter, *limits, *fields]))


Revise = Callable[[bytes], bytes]
"""A function that returns an item as it is to be, or nothing if the item is to be removed."""


class WaitingItems:
    """Changes items in place. All of it may be done again, and raises :class:`StoreUnavailable` as the store does."""

    def __init__(self, client: Redis, session_id: str) -> None:
        self._client: Any = client  # redis-py types its commands as sync or async at once
        self._keys = keys = Keys(session_id)
        self._counted_in = {keys.dead: "dead_bytes"} | {
            keys.dead_letters_of(receiver): dead_bytes_field(receiver) for receiver in RECEIVERS
        }
        self._replace = script(client, "replace_item")

    async def strike(self, struck: Sequence[tuple[StruckMessage, str]], since: int | None) -> None:
        """Let nothing of struck messages wait, nor of summaries ``since`` a number, which may tell them."""
        messages = [message for message, _ in struck]

        def batch(entry: bytes) -> bytes:
            with suppress(EntryUnreadable):
                held = MemoryBatch.decode(entry)
                if (without := held.without(messages)) != held:
                    return without.encode()
            return entry

        texts, ids = {text for _, text in struck if text}, {message.id for message in messages}
        keys = self._keys
        await self._revise(keys.memory_outbox, batch)
        await self._revise(keys.memory_dead, lambda letter: _of_letter(letter, batch))
        if since is not None:
            await self._revise(keys.outbox, lambda entry: _before(entry, since))
            await self.supersede(since)
        await self._revise(keys.agent_items, lambda item: b"" if _is_struck(item, ids, texts) else item)
        places = [message.entry_id for message in messages]
        async with translated():
            held = await self._client.hmget(keys.message_index, [id_field(place) for place in places])
        numbers = {
            place if (number := number_in(one)) is None else number
            for place, one in zip(places, held, strict=True)
            if one
        }
        await self._revise(keys.dead, lambda letter: without_words(letter, places, numbers))

    async def correct(self, delivered: MemoryBatch) -> None:
        """Let what the memory refused say what a batch that was delivered corrects, and who said it: it is put back
        after that, and must not bring old words back. What waits in front of the batch needs no change, and is told
        first.
        """

        def batch(entry: bytes) -> bytes:
            with suppress(EntryUnreadable):
                held = MemoryBatch.decode(entry)
                if (corrected := held.followed_by(delivered)) != held:
                    return corrected.encode()
            return entry

        if delivered.amended or delivered.renamed:
            await self._revise(self._keys.memory_dead, lambda letter: _of_letter(letter, batch))

    async def supersede(self, since: int) -> None:
        """Let the archive's dead letters hold no summary ``since`` a number: put back, it would not be marked."""
        await self._revise(self._keys.archive_dead, lambda letter: _of_letter(letter, lambda row: _before(row, since)))

    async def _revise(self, key: str, revise: Revise) -> None:
        async with translated():
            items: list[bytes] = await self._client.lrange(key, 0, -1)
        for item, after in await asyncio.to_thread(_changed, items, revise):
            async with translated():
                args = [item, after, self._counted_in.get(key, "")]
                await self._replace(keys=[key, self._keys.checkpoint], args=args)


def _changed(items: Sequence[bytes], revise: Revise) -> list[tuple[bytes, bytes]]:
    """Return the items that are to change, each with what it is to be."""
    return [(item, after) for item in items if (after := revise(item)) != item]


def _before(row: bytes, since: int) -> bytes:
    """Return a summary's row as it is, if its number is below another one."""
    with suppress(orjson.JSONDecodeError):
        held = orjson.loads(row)
        if isinstance(held, Mapping) and held.get("summary_seq", -1) >= since:
            return b""
    return row


def _of_letter(encoded: bytes, revise: Revise) -> bytes:
    letter = DeadLetter.decode(encoded)
    after = revise(letter.raw) if letter.is_whole else b""  # of what is not whole, nobody can tell what is in it
    if after == letter.raw:
        return encoded
    return replace(letter, raw=after, size=len(after)).encode() if after else b""


def _is_struck(entry: bytes, ids: Container[str], texts: Container[str]) -> bool:
    """Return whether an item of the OpenAI Agents SDK is a struck message, by the ids that are kept beside it, or by
    what it says."""
    try:
        held = orjson.loads(entry)
    except orjson.JSONDecodeError:
        return False
    match held:
        case [item, [_, str() as memory_id]]:
            return memory_id in ids
        case [item, None] | item:
            return _says(item) in texts


def _says(item: Any) -> str:
    """Return what an item says; empty for what is said by nobody."""
    content = item.get("content") if isinstance(item, Mapping) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))
