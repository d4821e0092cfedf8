"""A deferred store is opened when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from context_builder.errors import ContextBuilderError, EngineError


class Closable(Protocol):
    async def close(self) -> None: ...


S = TypeVar("S", bound=Closable)


class Deferred(Generic[S]):
    """Opens the real store on first use, off the start-up path; a failed opening is tried again next time.

    What the opening ``fails_with`` is raised as ``unavailable``.
    """

    def __init__(
        self,
        name: str,
        open_store: Callable[[], Awaitable[S]],
        unavailable: type[ContextBuilderError],
        fails_with: tuple[type[ContextBuilderError], ...] = (EngineError,),
    ) -> None:
        self.name = name
        self._open_store = open_store
        self._unavailable = unavailable
        self._fails_with = fails_with
        self._opening = asyncio.Lock()
        self._store: S | None = None

    async def opened(self) -> S:
        async with self._opening:
            if self._store is None:
                try:
                    self._store = await self._open_store()
                except self._fails_with as error:
                    raise self._unavailable(str(error)) from None
            return self._store

    async def close(self) -> None:
        if self._store is not None:
            await self._store.close()
