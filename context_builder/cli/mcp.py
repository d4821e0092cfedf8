"""``mcp``: the tools that agents use, over standard input and output."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from context_builder.cli.command import run, settings_in_force
from context_builder.cli.signals import stopping_signals
from context_builder.errors import require_extra


def mcp() -> None:
    """Serve the Model Context Protocol on standard input and output, with this user's rights, until the input ends.

    Agents can search memories, read and explain sessions, send messages, and build context packages. `serve` has the
    same tools at /mcp, for callers with a credential.

    Example:

        claude mcp add context-builder -- context-builder mcp
    """
    run(_mcp(), interrupted=0)


async def _mcp() -> None:
    from context_builder import log

    settings = settings_in_force()
    for module in ("mcp", "fastapi", "cedarpy", "jwt", "ulid", "jsonpatch"):
        require_extra("server", module, "mcp")
    from context_builder.server.access.caller import local_caller
    from context_builder.wiring.server import open_services

    log.configure(settings.process.log_level, settings.process.log_format)
    async with open_services(settings, for_this_user=True) as opened:
        from context_builder.server.agent_server import agent_server

        caller = local_caller(settings.memory.tenant_id)
        server = agent_server(opened.services, lambda: caller)
        task = asyncio.ensure_future(server.run_stdio_async())
        with stopping_signals(task.cancel), suppress(asyncio.CancelledError):
            await task
