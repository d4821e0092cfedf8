"""Waiting that can be cut short."""

from __future__ import annotations

import asyncio


async def stopped(stop: asyncio.Event, within: float) -> bool:
    """Wait for ``stop``, at most ``within`` seconds; whether it is set."""
    try:
        async with asyncio.timeout(max(within, 0.0)):
            return await stop.wait()
    except TimeoutError:
        return stop.is_set()
