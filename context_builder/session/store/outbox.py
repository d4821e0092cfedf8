"""An outbox is a list in Redis of entries that are committed and not yet delivered."""

from __future__ import annotations

from typing import Any, cast

from redis.asyncio import Redis

from context_builder.session.config import SessionConfig
from context_builder.session.keys import Keys, Receiver, dead_bytes_field, dead_count_field
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
