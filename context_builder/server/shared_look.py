"""All who watch the same thing share one look at it, which is repeated as long as anybody watches."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import structlog

from context_builder.errors import ContextBuilderError

log = structlog.get_logger(__name__)

T = TypeVar("T")

MOST_TENANTS: Final = 100

MOST_KEPT: Final = 256
"""Looks that are kept, with what they know, for those who come back."""

SHARE: Final = 5.0
"""A look is followed by a pause of so many times its own length, at least: a slow one takes no more than a sixth."""


class Changes(Generic[T]):
    """Counts changes, and remembers the last of them, at most so many and of so many bytes, for those who come back."""

    def __init__(self, most: int, most_bytes: float = math.inf) -> None:
        self.number = 0
        self._most = most
        self._most_bytes = most_bytes
        self._kept: deque[tuple[int, T, int]] = deque()

    def add(self, change: T, size: int = 0) -> None:
        """Note a change; ``size`` is its bytes."""
        self.number += 1
        self._kept.append((self.number, change, size))
        while len(self._kept) > self._most or sum(size for *_, size in self._kept) > self._most_bytes:
            self._kept.popleft()

    def begin_anew(self) -> None:
        """Note that nothing known leads to how it is now."""
        self.number += 1
        self._kept.clear()

    def since(self, number: int) -> list[T] | None:
        """Return what changed after that change, the oldest first; None where that is not all known."""
        missed = [change for at, change, _ in self._kept if at > number]
        return missed if len(missed) == self.number - number else None

    def __reversed__(self) -> Iterator[tuple[int, T]]:
        return ((at, change) for at, change, _ in reversed(self._kept))


class SharedLook(Generic[T]):
    """What was seen last; ``number`` counts what was new. ``failing`` says that the last look failed."""

    def __init__(self, look: Callable[[], Awaitable[T]], interval: float, share: float = SHARE) -> None:
        self._look = look
        self._interval = interval
        self._share = share
        self._one_at_a_time = asyncio.Lock()
        self.seen: T | None = None
        self.number = 0
        self.failing = False
        self.changed = asyncio.Event()
        self.watchers = 0
        self.task: asyncio.Task[None] | None = None

    async def now(self) -> T:
        """Look. Raises what the look raises."""
        async with self._one_at_a_time:
            seen = await self._look()
            self._note(seen, failing=False)
            return seen

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            began = time.monotonic()
            try:
                await self.now()
            except Exception as error:  # noqa: BLE001  # whoever watches waits for the next look
                tell = log.warning if isinstance(error, ContextBuilderError) else log.exception
                tell("watch.unread", error=type(error).__name__)
                self._note(self.seen, failing=True)
            took = time.monotonic() - began
            await asyncio.sleep(max(self._interval - took, self._share * took))

    def _note(self, seen: T | None, *, failing: bool) -> None:
        if seen != self.seen or failing != self.failing:
            self.seen, self.failing = seen, failing
            self.number += 1
            self.changed.set()
            self.changed = asyncio.Event()


class SharedLooks:
    """The looks of one process, by what they look at."""

    def __init__(self) -> None:
        self._looks: OrderedDict[Hashable, SharedLook[Any]] = OrderedDict()
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
        self,
        what: Hashable,
        look: Callable[[], Awaitable[T]],
        interval: float,
        *,
        share: float = SHARE,
        kept: bool = False,
    ) -> AsyncIterator[SharedLook[T]]:
        """Watch meanwhile; ``look`` is that of whoever came first. One that is ``kept`` is known to who comes back."""
        shared = self._looks.setdefault(what, SharedLook(look, interval, share))
        self._looks.move_to_end(what)
        shared.watchers += 1
        try:
            if shared.task is None:
                shared.task = asyncio.create_task(shared.follow(), name=f"watch {what}")
            yield shared
        finally:
            shared.watchers -= 1
            if not shared.watchers:
                if shared.task is not None:
                    shared.task.cancel()
                    shared.task = None
                if not kept:
                    self._looks.pop(what, None)
            self._drop_idle()

    def _drop_idle(self) -> None:
        for what in [what for what, look in self._looks.items() if not look.watchers]:
            if len(self._looks) <= MOST_KEPT:
                return
            del self._looks[what]
