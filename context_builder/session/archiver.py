"""Delivers summaries from the outbox to the archive, in order, as often as it takes."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from context_builder import metrics
from context_builder.archive.archive import Archive, SummaryRow
from context_builder.errors import ArchiveError, ArchiveRejected, StoreUnavailable
from context_builder.session.availability import until_available
from context_builder.session.store import SessionStore

log = structlog.get_logger(__name__)

LONGEST_WAIT: Final = 30.0
"""Seconds between attempts while the archive refuses or stays away."""


class Archiver:
    """Beside the session's loop, which it never slows. Delivery is idempotent, so a row may go out twice."""

    def __init__(self, store: SessionStore, archive: Archive) -> None:
        self._store = store
        self._archive = archive
        self._wake = asyncio.Event()
        self._wake.set()
        self.last_error: ArchiveError | None = None

    def wake(self) -> None:
        """There may be something in the outbox."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            async for attempt in until_available(self._worth_another_try, longest_wait=LONGEST_WAIT):
                with attempt:
                    while await self._deliver_oldest():
                        pass

    async def _deliver_oldest(self) -> bool:
        encoded = await self._store.oldest_summary()
        if encoded is None:
            return False
        row = SummaryRow.model_validate_json(encoded)
        await self._archive.deliver(row)
        await self._store.discard_summary(encoded)
        self.last_error = None
        metrics.SUMMARIES_ARCHIVED.labels("delivered").inc()
        log.info("summary.archived", session_id=row.session_id, summary_seq=row.summary_seq)
        return True

    def _worth_another_try(self, error: Exception) -> bool:
        if isinstance(error, ArchiveError):
            metrics.SUMMARIES_ARCHIVED.labels("failed").inc()
            if type(error) is not type(self.last_error):
                tell = log.error if isinstance(error, ArchiveRejected) else log.warning
                tell("summary.waiting", archive=self._archive.name, error=str(error))
            self.last_error = error
        return isinstance(error, ArchiveError | StoreUnavailable)
