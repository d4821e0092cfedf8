"""Work that no turn waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Background:
    """Runs at most ``most`` coroutines beside the turns, each for at most ``timeout`` seconds; more are let go."""

    def __init__(self, *, most: int = 100, timeout: float = 30.0) -> None:
        self._most = most
        self._timeout = timeout
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, coroutine: Coroutine[Any, Any, None]) -> bool:
        """Begin the coroutine now, and return whether there was room for it. Its errors are logged."""
        if len(self._tasks) >= self._most:
            coroutine.close()
            log.warning("background.full", work=name, running=len(self._tasks))
            return False
        task = asyncio.create_task(self._run(name, coroutine), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: coroutine.close())  # which had not begun, if the task was cancelled at once
        return True

    async def drain(self) -> None:
        """Wait until no coroutine is running."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def cancel(self) -> None:
        """Cancel the running coroutines."""
        for task in self._tasks:
            task.cancel()
        await self.drain()

    async def _run(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await coroutine
        except Exception as error:  # noqa: BLE001 nobody waits for this work: the log is where its end is told
            log.warning("background.failed", work=name, error=type(error).__name__)
