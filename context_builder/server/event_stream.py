"""A stream of server-sent events ends when its login or credential becomes invalid, or when the server stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol

import orjson
from fastapi import Request
from starlette.responses import StreamingResponse

from context_builder.concurrency import beside_loop
from context_builder.server.services import Services

HEARTBEAT: Final = 10.0
"""Seconds without an event after which a comment is sent, so that nothing between here and there gives up."""

RECHECK: Final = 0.5
"""Seconds after which the login or credential is looked up again."""

RETRY: Final = b"retry: 1000\n\n"
"""Tells browsers to come back after a second."""


class Changing(Protocol):
    """Sets ``changed``, and replaces it, whenever there is something new; ``failing`` while it cannot be read."""

    changed: asyncio.Event
    failing: bool


def event(name: str, data: Any, number: int | str | None = None) -> bytes:
    """Return an event; ``number`` is what a browser that comes back says it had last."""
    begin = f"id: {number}\n" if number is not None else ""
    return f"{begin}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"


async def written_event(name: str, data: Any, number: int | str | None = None) -> bytes:
    """Return an event that may be megabytes, written beside the loop."""
    return await beside_loop(event, name, data, number)


def stream(
    request: Request,
    services: Services,
    watching: AbstractAsyncContextManager[Changing],
    news: Callable[[Any], Awaitable[bytes | None]],
    pause: float = 0.0,
) -> StreamingResponse:
    """Answer with events: ``news`` returns what there is to send of what is watched, or nothing; None at the end.

    After each there is a ``pause``, in seconds. The event ``failing`` says whether what is watched cannot be read.
    """
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    events = _events(request, services, watching, news, pause)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _events(
    request: Request,
    services: Services,
    watching: AbstractAsyncContextManager[Changing],
    news: Callable[[Any], Awaitable[bytes | None]],
    pause: float,
) -> AsyncGenerator[bytes, None]:
    still_holds = request.scope["state"]["still_holds"]
    yield RETRY
    was_failing = False
    sent_at = checked_at = time.monotonic()
    async with watching as watched:
        while not services.stopping.is_set():
            changed = watched.changed
            if (piece := await news(watched)) is None:
                return
            if watched.failing != was_failing:
                was_failing = watched.failing
                piece += event("failing", {"failing": was_failing})
            if piece:
                yield piece
                sent_at = time.monotonic()
                await asyncio.sleep(pause)
            now = time.monotonic()
            if now - sent_at >= HEARTBEAT:
                yield b": still here\n\n"
                sent_at = now
            if now - checked_at >= RECHECK:
                if not await still_holds():
                    return
                checked_at = now
            await first_of(changed, services.stopping, within=RECHECK)


async def first_of(*events: asyncio.Event, within: float) -> None:
    """Wait until one of the events is set, but not longer than so many seconds."""
    tasks = [asyncio.ensure_future(one.wait()) for one in events]
    try:
        await asyncio.wait(tasks, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
