"""Shells complete session ids: quickly, and in silence where there is nothing to be had."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from context_builder.settings.settings import Settings

PATIENCE: Final = 0.5
"""Seconds that Redis has to answer: somebody waits with a finger on the key."""

NEWEST: Final = 1000
"""So many of the sessions of each Redis are looked through."""


def session_ids(incomplete: str) -> list[str]:
    """Return the newest sessions whose ids begin so; none when Redis is away, slow, or not set up."""
    from context_builder import log
    from context_builder.settings.settings import load_settings
    from context_builder.wiring import servers  # noqa: F401  # which takes its time, and not Redis'

    log.configure("error")  # a warning would be written across the command line
    try:
        return asyncio.run(asyncio.wait_for(_session_ids(load_settings(), incomplete), PATIENCE))
    except Exception:  # noqa: BLE001  # an error would be, too
        return []


async def _session_ids(settings: Settings, incomplete: str) -> list[str]:
    from context_builder.session.store.registry import SessionRegistry
    from context_builder.wiring.servers import running_servers

    found: list[str] = []
    async with running_servers(settings) as servers:
        for server in servers:
            found += await SessionRegistry(server.redis).newest(NEWEST)
    return [name for name in found if name.startswith(incomplete)]
