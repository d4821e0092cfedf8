"""Deliveries read from the input list and sorted: new messages, known ones, and dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from context_builder import metrics
from context_builder.clock import Clock
from context_builder.errors import MessageError
from context_builder.session.availability import until_available
from context_builder.session.dead_letters import DeadLetter
from context_builder.session.message import MAX_NUMBER, Message, decode
from context_builder.session.recent import Recent
from context_builder.session.rules import Rules
from context_builder.session.store import SessionStore

BLOCK_SECONDS: Final = 1
"""One blocking read lasts this long at most; below every socket timeout."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Deliveries that one commit is to acknowledge together, oldest first.

    ``dead`` are dead letters as they are stored: JSON with the reason and the raw bytes. ``committed`` is set
    when the commit is done; only then are the next deliveries read.
    """

    raw: Sequence[bytes]
    messages: Sequence[Message]
    dead: Sequence[bytes]
    committed: asyncio.Event = field(default_factory=asyncio.Event)


class Inbox:
    """Reads a session's input, one batch at a time.

    ``waiting`` deliveries were in the input at the latest commit; ``highest_number`` is the highest message number
    among those taken in.
    """

    def __init__(self, store: SessionStore, rules: Rules, clock: Clock, recent: Recent) -> None:
        self._store = store
        self._recent = recent
        self._rules = rules
        self._clock = clock
        self.waiting = 0
        self.highest_number = MAX_NUMBER

    async def feed(self, deliver: Callable[[Batch], None]) -> None:
        """Deliver batches for ever, reconnecting around the read."""
        while True:
            async for attempt in until_available():
                with attempt:
                    batch = await self._next()
            deliver(batch)
            await batch.committed.wait()
            _count(batch)

    async def _next(self) -> Batch:
        """What waits, or else the next delivery at once, alone: reading on would hold it up."""
        if self.waiting and (raw := await self._store.read_input()):
            return await self._sorted(raw)
        while (delivery := await self._store.next_input(BLOCK_SECONDS)) is None:
            pass
        return await self._sorted([delivery])

    async def _sorted(self, raw: Sequence[bytes]) -> Batch:
        now = self._clock.now()
        messages: list[Message] = []
        dead: list[bytes] = []
        for delivery in raw:
            try:
                messages.append(decode(delivery, now, max_bytes=self._rules.max_message_bytes))
            except MessageError as error:
                dead.append(DeadLetter.of(delivery, str(error), now).encode())
        return Batch(raw, await self._unknown(messages), dead)

    async def _unknown(self, messages: Sequence[Message]) -> list[Message]:
        """Messages taken in neither before nor earlier in this batch.

        A number is part of a message's identity, so Redis is not asked about one that is beyond all others.
        """
        unsure = [message.identity for message in messages if not self._is_beyond(message)]
        known = {
            identity
            for identity, is_known in zip(unsure, await self._store.are_known(unsure), strict=True)
            if is_known or identity in self._recent  # Redis may have fallen back
        }
        first = {message.identity: message for message in reversed(messages) if message.identity not in known}
        fresh = [message for message in messages if first.get(message.identity) is message]
        self.highest_number = max([self.highest_number, *map(_spoken_number, fresh)])
        return fresh

    def _is_beyond(self, message: Message) -> bool:
        return _spoken_number(message) > self.highest_number


def _count(batch: Batch) -> None:
    new, dead = len(batch.messages), len(batch.dead)
    for outcome, count in (("new", new), ("known", len(batch.raw) - new - dead), ("dead", dead)):
        metrics.MESSAGES.labels(outcome).inc(count)


def _spoken_number(message: Message) -> int:
    """The number that a person's message came with; the assistant's contributions are numbered apart, if at all."""
    return -1 if message.consilience or message.number is None else message.number
