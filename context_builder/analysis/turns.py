"""Who wants to work takes turns: so many at a time, and each share of those who wait as often as any other."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from typing import Final

share: Final[ContextVar[str]] = ContextVar("share", default="")
"""Whose share of the turns a task uses: its tenant's."""


class FairTurns:
    """Lets ``places`` tasks work at a time, each within ``async with``.

    Whose turn is next goes round the shares that wait; within one, who came first. A tenant with a thousand sessions
    that wait so leaves another one, with a single session, every second turn.
    """

    def __init__(self, places: int = 1) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._free = places

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()

    async def acquire(self) -> None:
        """Wait for a turn, which :meth:`release` ends."""
        if self._free:
            self._free -= 1
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
        while self._waiting:
            name = next(iter(self._waiting))
            queue = self._waiting.pop(name)
            turn = queue.popleft()
            if queue:
                self._waiting[name] = queue  # behind the other shares
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
