"""All viewers of the same data share one query, which is repeated as long as anybody watches."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Final, Generic, TypeVar

import structlog
from fastapi import Depends, Request

from context_builder.errors import ContextBuilderError

log = structlog.get_logger(__name__)

T = TypeVar("T")

MOST_TENANTS: Final = 100

SHARE: Final = 5.0
"""A look is followed by a pause of so many times its own length, at least: a slow one takes no more than a sixth."""


class SharedLook(Generic[T]):
    """What was seen last; ``number`` counts what was new. ``failing`` says that the last look failed."""

    def __init__(self, look: Callable[[], Awaitable[T]], interval: float) -> None:
        self._look = look
        self._interval = interval
        self.seen: T | None = None
        self.number = 0
        self.failing = False
        self.changed = asyncio.Event()
        self.watchers = 0
        self.task: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            began = time.monotonic()
            try:
                seen = await self._look()
            except Exception as error:  # noqa: BLE001  # whoever watches waits for the next look
                tell = log.warning if isinstance(error, ContextBuilderError) else log.exception
                tell("page.unread", error=type(error).__name__)
                self._note(self.seen, failing=True)
            else:
                self._note(seen, failing=False)
            took = time.monotonic() - began
            await asyncio.sleep(max(self._interval - took, SHARE * took))

    def _note(self, seen: T | None, *, failing: bool) -> None:
        if seen != self.seen or failing != self.failing:
            self.seen, self.failing = seen, failing
            self.number += 1
            self.changed.set()
            self.changed = asyncio.Event()


class SharedLooks:
    """The looks of one process, by what they look at."""

    def __init__(self) -> None:
        self._looks: dict[Hashable, SharedLook[Any]] = {}
        self._tenants: OrderedDict[str, Any] = OrderedDict()

    def of_tenant(self, tenant_id: str, make: Callable[[], T]) -> T:
        """Return what all lookers of a tenant share, made for the first; that of the latest tenants is kept."""
        shared: T = self._tenants.setdefault(tenant_id, None) or make()
        self._tenants[tenant_id] = shared
        self._tenants.move_to_end(tenant_id)
        while len(self._tenants) > MOST_TENANTS:
            self._tenants.popitem(last=False)
        return shared

    @asynccontextmanager
    async def watching(
        self, what: Hashable, look: Callable[[], Awaitable[T]], interval: float
    ) -> AsyncIterator[SharedLook[T]]:
        """Watch meanwhile; ``look`` is that of whoever came first."""
        shared = self._looks.setdefault(what, SharedLook(look, interval))
        shared.watchers += 1
        try:
            if shared.task is None:
                shared.task = asyncio.create_task(shared.follow(), name=f"page look {what}")
            yield shared
        finally:
            shared.watchers -= 1
            if not shared.watchers:
                if shared.task is not None:
                    shared.task.cancel()
                self._looks.pop(what, None)


async def _looks(request: Request) -> SharedLooks:
    looks: SharedLooks = request.app.state.looks
    return looks


LooksHere = Annotated[SharedLooks, Depends(_looks)]
