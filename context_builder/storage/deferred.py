"""A store that is opened when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from context_builder.errors import ArchiveError, ContextBuilderError, EngineError


class Closable(Protocol):
    async def close(self) -> None: ...


S = TypeVar("S", bound=Closable)


class Deferred(Generic[S]):
    """Opens the real store on first use, off the start-up path; a failed opening is tried again next time.

    What an engine or the making of its tables fails with is raised as ``unavailable``.
    """

    def __init__(
        self, name: str, open_store: Callable[[], Awaitable[S]], unavailable: type[ContextBuilderError]
    ) -> None:
        self.name = name
        self._open_store = open_store
        self._unavailable = unavailable
        self._opening = asyncio.Lock()
        self._store: S | None = None

    async def opened(self) -> S:
        async with self._opening:
            if self._store is None:
                try:
                    self._store = await self._open_store()
                except (EngineError, ArchiveError) as error:
                    raise self._unavailable(str(error)) from None
            return self._store

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
