"""Who wants to work takes turns: one at a time, and each share of those who wait as often as any other."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from typing import Final

share: Final[ContextVar[str]] = ContextVar("share", default="")
"""Whose share of the turns a task uses: its tenant's."""


class FairTurns:
    """Lets one task work at a time. Whose turn is next goes round the shares that wait; within one, who came first.

    A tenant with a thousand sessions that wait so leaves another one, with a single session, every second turn.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_taken = False

    async def acquire(self) -> None:
        """Wait for a turn, which :meth:`release` ends."""
        if not self._is_taken:
            self._is_taken = True
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
        self._is_taken = False
