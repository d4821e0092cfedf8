"""The message feed remembers what was just said, so that it is found before it is summarized.

It may leave messages out: the outbox delivers the same memories under the same ids once they are summarized, so nothing
is lost and nothing doubled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import Final

import structlog

from context_builder import metrics
from context_builder.breaker import guard_calls_to
from context_builder.clock import Clock
from context_builder.errors import DatabaseUnavailable
from context_builder.memory.memory import Memory
from context_builder.session.conversation.memory_batch import of_message
from context_builder.session.failures import raise_what_ends_the_task, reason_of
from context_builder.session.messages.buffered_message import BufferedMessage

log = structlog.get_logger(__name__)

INTERVAL: Final = 0.2
"""Seconds from the beginning of a batch to that of the next, at least."""

BATCH: Final = 200
"""Most messages of a batch."""

WAITING: Final = 1000
"""Most messages that wait; of more, the oldest are found once they are summarized."""

WAITING_CHARS: Final = 4 * 2**20
"""Most characters of text that wait."""

FRESH: Final = 1.0
"""Seconds after a commit in which the session is taken to be there and this process's. A process that stood still for
longer may have slept through the session's being forgotten, and waits for its next commit."""

LAST_WAIT: Final = 0.5
"""Seconds that an ending session waits for the batch under way: what was sent cannot be called back."""


class MessageFeed:
    """Remembers a session's newly committed messages with ``remember``, a batch at a time, beside the session's loop.

    What the memory, called ``receiver``, is too unavailable to take waits for it behind a breaker; what it refuses is
    left to the outbox. ``forget`` deletes memories by id, and ``are_known`` tells which identities of messages the
    session in Redis has.
    """

    def __init__(
        self,
        session_id: str,
        receiver: str,
        remember: Callable[[Sequence[Memory]], Awaitable[None]],
        forget: Callable[[Sequence[str]], Awaitable[object]],
        are_known: Callable[[Sequence[bytes]], Awaitable[list[bool]]],
        clock: Clock,
    ) -> None:
        self._session_id = session_id
        self._receiver = receiver
        self._remember = remember
        self._forget = forget
        self._are_known = are_known
        self._clock = clock
        self._breaker = guard_calls_to(receiver, monotonic=lambda: clock.now().monotonic)
        self._waiting: dict[int, BufferedMessage] = {}
        self._chars = 0
        self._failing = False
        self._committed = asyncio.Event()
        self._committed_at = float("-inf")
        self._sending = asyncio.Lock()
        self._under_way: frozenset[str] = frozenset()
        self._unconfirmed: frozenset[str] = frozenset()
        """Ids that may have been remembered since the last commit, before which nobody had forgotten the session."""

    def committed(self, entries: Iterable[BufferedMessage]) -> None:
        """Take note of a commit and of the messages that it was the first to contain."""
        for entry in entries:
            self._drop(entry.id)  # that was corrected since
            self._waiting[entry.id] = entry
            self._chars += len(entry.text)
        while len(self._waiting) > WAITING or (self._chars > WAITING_CHARS and len(self._waiting) > 1):
            self._drop(next(iter(self._waiting)))
        self._unconfirmed = self._under_way
        self._committed_at = self._clock.now().monotonic
        if self._waiting:
            self._committed.set()

    async def run(self) -> None:
        """Remember what is committed, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await self._committed.wait()  # commits or refreshes never cease: each looks what waits, and at the breaker
            self._committed.clear()
            is_fresh = self._clock.now().monotonic - self._committed_at <= FRESH
            if not self._waiting or not is_fresh or self._breaker.refuses:
                continue
            began = loop.time()
            await self._remember_next()
            await asyncio.sleep(max(0.0, began + INTERVAL - loop.time()))
            if self._waiting:
                self._committed.set()

    def strike(self, entry_ids: Iterable[int]) -> None:
        """Remember nothing of struck messages that wait."""
        for entry_id in entry_ids:
            self._drop(entry_id)

    async def give_way(self, delivered: Iterable[Memory], revised: Iterable[str] = ()) -> None:
        """Leave these memories to the outbox, whose messages have keywords and domains; others, by id, it revises.

        Returns when nothing that the feed writes can come after what the outbox delivers.
        """
        ids = set(revised)
        for memory in delivered:
            ids.add(memory.id)
            if memory.kind == "message" and memory.position is not None:
                self._drop(memory.position)
        if not ids.isdisjoint(self._under_way):
            async with self._sending:
                pass

    async def take_back(self) -> None:
        """Delete what may have been remembered although the session was forgotten.

        What a session begun anew has been told again is kept.
        """
        ids = sorted(self._unconfirmed)
        told_again = await self._are_known([bytes.fromhex(one.rpartition(":")[2]) for one in ids])
        if late := [one for one, known in zip(ids, told_again, strict=True) if not known]:
            await self._forget(late)

    def _drop(self, entry_id: int) -> None:
        if (entry := self._waiting.pop(entry_id, None)) is not None:
            self._chars -= len(entry.text)

    async def _remember_next(self) -> None:
        entries = list(islice(self._waiting.values(), BATCH))
        batch = [of_message(self._session_id, entry) for entry in entries]
        async with self._sending:
            self._under_way = frozenset(memory.id for memory in batch)
            self._unconfirmed |= self._under_way
            try:
                with self._breaker.guard():
                    await self._send(batch)
            except BaseException as error:  # noqa: BLE001 a memory may be anybody's and fail in any way
                raise_what_ends_the_task(error)
                self._note(error, len(batch))
                if isinstance(error, DatabaseUnavailable):
                    return
            else:
                metrics.MESSAGES_FED.labels("remembered").inc(len(batch))
                self._failing = False
            finally:
                self._under_way = frozenset()
        for entry in entries:
            self._drop(entry.id)

    async def _send(self, batch: Sequence[Memory]) -> None:
        sending = asyncio.ensure_future(self._remember(batch))
        try:
            await asyncio.wait([sending])
        except asyncio.CancelledError:
            await asyncio.wait([sending], timeout=LAST_WAIT)
            sending.cancel()
            await asyncio.wait([sending], timeout=LAST_WAIT)
            if sending.done() and not sending.cancelled():
                sending.exception()  # retrieved, or asyncio would log it
            raise
        sending.result()

    def _note(self, error: BaseException, messages: int) -> None:
        metrics.MESSAGES_FED.labels("failed").inc(messages)
        if not self._failing:
            log.warning("feed.failing", receiver=self._receiver, messages=messages, error=reason_of(error))
        self._failing = True
