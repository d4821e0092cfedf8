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
from context_builder.session.message import Message, decode
from context_builder.session.rules import Rules
from context_builder.session.store import SessionStore

BLOCK_SECONDS: Final = 2
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
    """Reads a session's input, one batch at a time."""

    def __init__(self, store: SessionStore, rules: Rules, clock: Clock) -> None:
        self._store = store
        self._rules = rules
        self._clock = clock

    async def feed(self, deliver: Callable[[Batch], None]) -> None:
        """Deliver batches for ever, reconnecting around the read."""
        while True:
            async for attempt in until_available():
                with attempt:
                    batch = await self._next()
            if batch.raw:
                deliver(batch)
                await batch.committed.wait()

    async def _next(self) -> Batch:
        while not await self._store.wait_for_input(BLOCK_SECONDS):
            pass
        return await self.read()

    async def read(self) -> Batch:
        """The oldest deliveries, sorted."""
        raw = await self._store.read_input()
        now = self._clock.now()
        messages: list[Message] = []
        dead: list[bytes] = []
        for delivery in raw:
            try:
                messages.append(decode(delivery, now, max_bytes=self._rules.max_message_bytes))
            except MessageError as error:
                dead.append(DeadLetter.of(delivery, str(error), now).encode())
        fresh = await self._unknown(messages)
        for outcome, count in (("new", len(fresh)), ("known", len(messages) - len(fresh)), ("dead", len(dead))):
            metrics.MESSAGES.labels(outcome).inc(count)
        return Batch(raw, fresh, dead)

    async def _unknown(self, messages: Sequence[Message]) -> list[Message]:
        """Messages taken in neither before nor earlier in this batch."""
        known = await self._store.are_known([message.identity for message in messages])
        first: dict[bytes, Message] = {}
        for message, is_known in zip(messages, known, strict=True):
            if not is_known:
                first.setdefault(message.identity, message)
        return list(first.values())
