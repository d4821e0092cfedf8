"""Carries what waits in an outbox to where it goes, in order, as often as it takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from prometheus_client import Counter

from context_builder.errors import (
    ArchiveError,
    ArchiveRejected,
    ContextBuilderError,
    MemoryRejected,
    MemoryStoreError,
    StoreUnavailable,
)
from context_builder.session.availability import until_available
from context_builder.session.outbox import Outbox

log = structlog.get_logger(__name__)

LONGEST_WAIT: Final = 30.0
"""Seconds between attempts while the receiver refuses or stays away."""


class Courier:
    """Beside the session's loop, which it never slows. ``deliver`` is idempotent, so an entry may go out twice.

    ``receiver`` is what people call where it goes, ``deliveries`` counts by outcome.
    """

    def __init__(
        self, outbox: Outbox, deliver: Callable[[bytes], Awaitable[None]], receiver: str, deliveries: Counter
    ) -> None:
        self.receiver = receiver
        self.waiting = 0
        """Entries in the outbox at the last commit."""
        self.failures = 0
        """Deliveries in a row that the receiver did not take."""
        self._last_error: ContextBuilderError | None = None
        self._outbox = outbox
        self._deliver = deliver
        self._deliveries = deliveries
        self._wake = asyncio.Event()
        self._wake.set()

    def expect(self, waiting: int) -> None:
        """So many entries are in the outbox."""
        self.waiting = waiting
        if waiting:
            self._wake.set()

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            async for attempt in until_available(self._is_worth_another_try, longest_wait=LONGEST_WAIT):
                with attempt:
                    while await self._deliver_oldest():
                        pass

    async def _deliver_oldest(self) -> bool:
        entry = await self._outbox.oldest()
        if entry is None:
            return False
        await self._deliver(entry)
        await self._outbox.discard(entry)
        self.failures, self._last_error = 0, None
        self._deliveries.labels("delivered").inc()
        return True

    def _is_worth_another_try(self, error: Exception) -> bool:
        if isinstance(error, ArchiveError | MemoryStoreError):
            self._deliveries.labels("failed").inc()
            self.failures += 1
            if type(error) is not type(self._last_error):
                tell = log.error if isinstance(error, ArchiveRejected | MemoryRejected) else log.warning
                tell("delivery.waiting", receiver=self.receiver, error=str(error))
            self._last_error = error
        return isinstance(error, ArchiveError | MemoryStoreError | StoreUnavailable)
