"""An archive that is opened when it is first used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from context_builder.archive.archive import Archive, SummaryRow
from context_builder.errors import ArchiveUnavailable
from context_builder.storage.deferred import Deferred


class DeferredArchive(Deferred[Archive]):
    """Implements :class:`~context_builder.archive.archive.Archive`."""

    def __init__(self, name: str, open_archive: Callable[[], Awaitable[Archive]]) -> None:
        super().__init__(name, open_archive, ArchiveUnavailable)

    async def deliver(self, row: SummaryRow) -> int:
        return await (await self.opened()).deliver(row)

    async def forget(self, session_id: str) -> int:
        return await (await self.opened()).forget(session_id)

    async def check(self) -> None:
        await (await self.opened()).check()

    async def applied(self) -> frozenset[str]:
        return await (await self.opened()).applied()
