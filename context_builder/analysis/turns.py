"""Who wants to work takes turns: so many at a time, and each share of those who wait as often as any other."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextvars import ContextVar
from typing import Final

share: Final[ContextVar[str]] = ContextVar("share", default="")
"""Whose share of the turns a task uses: its tenant's."""


class FairTurns:
    """Lets ``places`` tasks work at a time, each within ``async with``, but of one share no more than ``most``.

    Whose turn is next goes round the shares that wait; within one, who came first. A tenant with a thousand sessions
    that wait so leaves another one, with a single session, every second turn.
    """

    def __init__(self, places: int = 1, most: int | None = None) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._free = places
        self._most = most
        self._working = Counter[str]()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    async def acquire(self) -> None:
        """Wait for a turn, which :meth:`release` ends."""
        if self._free and self._may_work(share.get()):
            self._begin(share.get())
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(share.get(), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give the turn to whose it is next."""
        self._working -= Counter([share.get()])  # which forgets who has none
        self._free += 1
        while (name := next(filter(self._may_work, self._waiting), None)) is not None:
            queue = self._waiting.pop(name)
            turn = queue.popleft()
            if queue:
                self._waiting[name] = queue  # behind the other shares
            if not turn.done():
                self._begin(name)
                turn.set_result(None)
                return

    def _may_work(self, name: str) -> bool:
        return self._most is None or self._working[name] < self._most

    def _begin(self, name: str) -> None:
        self._free -= 1
        self._working[name] += 1
