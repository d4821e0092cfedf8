"""An archive that is opened when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from context_builder.archive.archive import Archive, SummaryRow
from context_builder.errors import ArchiveUnavailable, EngineError


class DeferredArchive:
    """Opens the real archive on first use, off the start-up path; a failed opening is tried again next time.

    Implements :class:`~context_builder.archive.archive.Archive`.
    """

    def __init__(self, name: str, open_archive: Callable[[], Awaitable[Archive]]) -> None:
        self.name = name
        self._open_archive = open_archive
        self._opening = asyncio.Lock()
        self._archive: Archive | None = None

    async def deliver(self, row: SummaryRow) -> int:
        return await (await self._opened()).deliver(row)

    async def forget(self, session_id: str) -> int:
        return await (await self._opened()).forget(session_id)

    async def check(self) -> None:
        await (await self._opened()).check()

    async def applied(self) -> frozenset[str]:
        return await (await self._opened()).applied()

    async def close(self) -> None:
        if self._archive is not None:
            await self._archive.close()

    async def _opened(self) -> Archive:
        async with self._opening:
            if self._archive is None:
                try:
                    self._archive = await self._open_archive()
                except EngineError as error:
                    raise ArchiveUnavailable(str(error)) from None
            return self._archive
