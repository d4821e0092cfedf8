"""A joining memory makes one call of what many sessions remember at about the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from context_builder.errors import DatabaseRejected
from context_builder.memory.memory import ForwardingMemory, Memory, MemoryFilter, MemoryStore

WAIT: Final = 0.25
"""Seconds that memories wait for others. Longer saves PostgreSQL more, whose counts of words are updated once a call;
but what was said is to be found within a second, and the feed takes some of it."""

MOST: Final = 500
"""Memories in a call, at most."""

MOST_CHARACTERS: Final = 1_000_000
"""Of their text, about, so that no call takes longer than it may."""

SMALL: Final = 20
"""Memories of one caller; who has more is not joined, and holds up nobody."""


class _Waiting(NamedTuple):
    memories: Sequence[Memory]
    done: asyncio.Future[None]


class JoiningMemory(ForwardingMemory):
    """Joins calls that remember little for the same tenant; everything else is passed on as it is.

    What is refused in company is sent again alone, so that nobody's fault is another's. What was sent may be remembered
    although its caller was cancelled; to forget waits for what is under way.
    """

    def __init__(self, memory: MemoryStore) -> None:
        super().__init__(memory)
        self._waiting: dict[str, list[_Waiting]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._calls: dict[str, asyncio.Task[None]] = {}

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        if len(memories) > SMALL:
            await self._memory.remember(tenant_id, memories)
            return
        waiting = _Waiting(memories, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(tenant_id, []).append(waiting)
        if tenant_id not in self._senders:
            self._senders[tenant_id] = asyncio.create_task(self._send_all(tenant_id), name="joining memory")
        await waiting.done

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        if call := self._calls.get(tenant_id):
            await asyncio.wait([call])
        return await self._memory.forget(tenant_id, ids=ids, filter=filter)

    async def close(self) -> None:
        """Close the memory once what is under way is over."""
        await asyncio.gather(*self._senders.values())
        await self._memory.close()

    async def _send_all(self, tenant_id: str) -> None:
        """Send what waits for the tenant, until nothing does."""
        try:
            while self._waiting.get(tenant_id):
                await asyncio.sleep(WAIT)
                joined = self._next(tenant_id)
                self._calls[tenant_id] = asyncio.create_task(self._send(tenant_id, joined))
                await self._calls[tenant_id]
        finally:
            for mapping in (self._senders, self._calls, self._waiting):
                mapping.pop(tenant_id, None)

    def _next(self, tenant_id: str) -> list[_Waiting]:
        """Take those who wait, and were not cancelled, as long as no two remember the same."""
        joined: list[_Waiting] = []
        ids: set[str] = set()
        characters = 0
        waiting = [one for one in self._waiting[tenant_id] if not one.done.done()]
        while waiting and len(ids) < MOST and characters < MOST_CHARACTERS:
            if not ids.isdisjoint(own := {memory.id for memory in waiting[0].memories}):
                break
            joined.append(waiting.pop(0))
            ids |= own
            characters += sum(len(memory.text) for memory in joined[-1].memories)
        self._waiting[tenant_id] = waiting
        return joined

    async def _send(self, tenant_id: str, joined: Sequence[_Waiting]) -> None:
        """Send in one call, and tell each caller what came of it."""
        if not joined:
            return
        error: BaseException | None = None
        try:
            await self._memory.remember(tenant_id, [memory for one in joined for memory in one.memories])
        except DatabaseRejected as refused:
            if len(joined) > 1:
                for one in joined:
                    await self._send(tenant_id, [one])
                return
            error = refused
        except Exception as failed:  # noqa: BLE001 a memory may be anybody's and fail in any way
            error = failed
        for one in joined:
            if one.done.done():
                continue
            if error is None:
                one.done.set_result(None)
            else:
                one.done.set_exception(error)
