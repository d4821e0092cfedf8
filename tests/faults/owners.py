"""Processes that want to run one session."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import psutil
from redis.asyncio import Redis

from context_builder.session.keys import Keys
from tests.faults.forks import Forks
from tests.services.waiting import wait_until

SESSION = "monday"
KEYS = Keys(SESSION)


class Owners:
    """Processes that want to run the session."""

    def __init__(self, forks: Forks, redis: Redis, url: str) -> None:
        self.redis = redis
        self._forks = forks
        self._url = url

    async def start(self, *options: str, lease: float = 10) -> int:
        environ = {"REDIS_URL": self._url, "LEASE_TIME": str(lease), "DATABASE_URL": "postgresql://127.0.0.1:9/none"}
        return await self._forks.start(environ, "run", SESSION, *options)

    async def kill(self, pid: int) -> None:
        await self._forks.kill(pid)

    async def owns(self, pid: int) -> bool:
        return (await self._owner()).get("pid") == pid and bool(await self.redis.exists(KEYS.state))

    async def say(self, *numbers: int) -> None:
        await self.redis.lpush(
            KEYS.input, *(json.dumps({"text": f"message {number}", "message_number": number}) for number in numbers)
        )

    async def shows(self, *numbers: int) -> bool:
        state = json.loads(await self.redis.get(KEYS.state) or b"{}")
        return [entry["message_number"] for entry in state.get("raw_recent_buffer", [])] == [*numbers]

    def said(self) -> str:
        return self._forks.log.read_text() if self._forks.log.exists() else ""

    async def _owner(self) -> dict[str, Any]:
        return json.loads(await self.redis.get(KEYS.owner) or b"{}")

    async def texts(self) -> list[str]:
        """What the published buffer says, in its order."""
        state = json.loads(await self.redis.get(KEYS.state) or b"{}")
        return [entry["text"] for entry in state.get("raw_recent_buffer", [])]

    async def hears(self, *texts: str) -> bool:
        return await self.texts() == [*texts]

    async def has_read_all(self) -> bool:
        """Whether the input is empty, and whoever took it in has published since."""
        return not await self.redis.exists(KEYS.input) and bool(await self.redis.exists(KEYS.conversation))

    async def freeze(self, pid: int) -> None:
        """Stop the process where it is, and wait until its lease has run out."""
        os.kill(pid, signal.SIGSTOP)
        await wait_until(self._is_free, "the lease ran out")

    async def thaw(self, pid: int) -> None:
        """Let the process go on; it ends."""
        os.kill(pid, signal.SIGCONT)
        await wait_until(lambda: not psutil.pid_exists(pid), f"process {pid} has ended")

    async def stop(self, pid: int) -> None:
        """End the process as people do."""
        os.kill(pid, signal.SIGTERM)
        await wait_until(lambda: not psutil.pid_exists(pid), f"process {pid} has stopped")

    async def _is_free(self) -> bool:
        return not await self.redis.exists(KEYS.owner)
