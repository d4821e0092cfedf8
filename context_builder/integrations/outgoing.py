"""What frameworks report in events that nobody may wait in is said in the session here, in order, in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from context_builder.errors import StoreError
from context_builder.integrations.live_session import LiveSession
from context_builder.storage.redis_availability import until_available

log = structlog.get_logger(__name__)

MOST_WAITING: Final = 10_000
"""Messages that wait while Redis is away; what comes then is lost, and the log says so."""

GRACE: Final = 3.0
"""Seconds for which the end waits for Redis."""

Push = Callable[[], Awaitable[object]]


class Outgoing:
    """Pushes messages to a session, one after the other, each until Redis accepts it."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._queue: asyncio.Queue[Push] = asyncio.Queue(MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._waiting = 0

    def hear(self, speaker: str | None, text: str, at: datetime | None = None) -> None:
        """Say in a moment what somebody said."""
        self._put(partial(self._live.hear, speaker, text, at or datetime.now().astimezone()))

    def answer(self, text: str, *, agent: str | None = None, interrupted: bool = False) -> None:
        """Say in a moment what the assistant said, as :meth:`LiveSession.answer`."""
        now = datetime.now().astimezone()
        self._put(partial(self._live.answer, text, now, agent=agent, interrupted=interrupted))

    async def close(self, patience: float = GRACE) -> None:
        """Say the rest, for ``patience`` seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._queue.join()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        if self._waiting:
            log.error("integration.not_said", session_id=self._live.session_id, messages=self._waiting)

    def _put(self, push: Push) -> None:
        try:
            self._queue.put_nowait(push)
            self._waiting += 1
        except asyncio.QueueFull:
            log.error("integration.not_said", session_id=self._live.session_id, messages=1)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._say_all(), name=f"says in {self._live.session_id}")

    async def _say_all(self) -> None:
        while True:
            push = await self._queue.get()
            try:
                async for attempt in until_available():
                    with attempt:
                        await push()
            except StoreError as error:  # for good: no password, no right
                log.exception("integration.not_said", kind=type(error).__name__, messages=1, exc_info=False)
            self._waiting -= 1
            self._queue.task_done()
