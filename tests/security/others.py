"""Whether a server answers others while it is busy with somebody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.services.api_server import ApiServer

LOOK = 0.01
MOST_WAIT = 0.1
"""Seconds in which somebody else is answered, on a machine that is not busy with something else."""


@asynccontextmanager
async def others_are_answered(api: ApiServer) -> AsyncIterator[None]:
    """Ask for ``/livez`` again and again meanwhile; nearly every answer comes in time, and none late.

    How long the machine itself takes for it is measured before, and allowed beside.
    """

    async def look(seconds: float, over: asyncio.Event) -> list[float]:
        took: list[float] = []
        async with httpx.AsyncClient(base_url=api.url, timeout=60) as client:
            until = time.monotonic() + seconds
            while time.monotonic() < until and not over.is_set():
                began = time.perf_counter()
                assert (await client.get("/livez")).status_code == 200
                took.append(time.perf_counter() - began)
                await asyncio.sleep(LOOK)
        return took

    idle = max(await look(0.5, asyncio.Event()))
    over = asyncio.Event()
    looking = asyncio.create_task(look(120, over))
    try:
        yield
    finally:
        over.set()
        took = sorted(await looking)
    allowed = MOST_WAIT + 4 * idle
    assert took[len(took) * 19 // 20] < allowed, took[-10:]
    assert took[-1] < 4 * allowed, took[-10:]
