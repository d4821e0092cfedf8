"""What a listener and a reader see of a fleet."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from redis.asyncio import Redis

from context_builder.session.keys import Keys
from tests.services.daemon import Daemon
from tests.services.waiting import wait_until


class Fleet:
    """Pushes as a listener does, by LPUSH alone, and reads what is published."""

    def __init__(self, redis: Redis) -> None:
        self.redis = redis
        self._numbers: dict[str, int] = {}

    async def say(self, *session_ids: str, text: str = "Helicase unwinds the double helix") -> None:
        """Somebody says something in each of these sessions."""
        for session_id in session_ids:
            number = self._numbers[session_id] = self._numbers.get(session_id, 0) + 1
            message = {"speaker": "Alice", "text": text, "message_number": number}
            await self.redis.lpush(Keys(session_id).input, orjson.dumps(message))

    async def received(self, session_id: str) -> int:
        """How many messages the session says that it has received."""
        state: dict[str, Any] = orjson.loads(await self.redis.get(Keys(session_id).state) or b"{}")
        return int(state.get("received_messages", 0))

    async def hears(self, *session_ids: str) -> None:
        """Returns when all that was said in these sessions is published."""

        async def heard() -> bool:
            counts = [await self.received(session_id) for session_id in session_ids]
            return counts == [self._numbers[session_id] for session_id in session_ids]

        await wait_until(heard, f"{len(session_ids)} sessions publish what was said")

    async def owners(self, *session_ids: str) -> dict[str, int]:
        """The process ids of those sessions' owners that have one."""
        values = await asyncio.gather(*(self.redis.get(Keys(session_id).owner) for session_id in session_ids))
        return {name: orjson.loads(raw)["pid"] for name, raw in zip(session_ids, values, strict=True) if raw}

    async def owned_by(self, *workers: Daemon, sessions: list[str]) -> None:
        """Returns when each of the sessions is run by one of the workers."""
        pids = {worker.process.pid for worker in workers}

        async def all_owned() -> bool:
            owners = await self.owners(*sessions)
            return len(owners) == len(sessions) and set(owners.values()) <= pids

        await wait_until(all_owned, f"{len(sessions)} sessions are run by {pids}")


async def ready(*workers: Daemon) -> None:
    """Returns when the workers take sessions."""
    for worker in workers:
        await wait_until(lambda worker=worker: said(worker, "fleet.ready"), "a worker is ready")


def said(worker: Daemon, event: str) -> bool:
    """Whether the worker's log has the event; fails when it has ended without."""
    there = f'"{event}"' in worker.output
    assert there or worker.process.poll() is None, worker.output
    return there
