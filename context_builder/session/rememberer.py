"""Delivers what was summarized to the long-term memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from context_builder import metrics
from context_builder.clock import Clock
from context_builder.errors import CannotForget
from context_builder.memory.tenant import TenantMemory
from context_builder.session.courier import Courier
from context_builder.session.outbox import Outbox
from context_builder.session.preferring import preferences_in
from context_builder.session.recorder import DeadLettered
from context_builder.session.remembrance import Remembrance

log = structlog.get_logger(__name__)


def rememberer(
    outbox: Outbox, memory: TenantMemory, clock: Clock, dead_lettered: Callable[[DeadLettered], None]
) -> Courier:
    """Takes the outbox's remembrances to the memory, and the preferences that their messages state.

    In a memory that cannot forget, superseded points stay.
    """

    async def deliver(entry: bytes) -> None:
        part = Remembrance.decode(entry)
        stated = await asyncio.to_thread(preferences_in, part.memories)
        preferences = await stated.settled(memory)
        await memory.remember([*part.memories, *preferences])
        try:
            await memory.forget(part.superseded)
        except CannotForget:
            log.info("memory.superseded_stay", session_id=part.session_id, points=len(part.superseded))
        fed = {"memories": len(part.memories), "preferences": len(preferences)}
        log.info("memory.fed", session_id=part.session_id, **fed)

    return Courier(outbox, deliver, memory.name, metrics.MEMORY_FED, clock, dead_lettered)
