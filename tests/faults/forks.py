"""Daemons that are killed at any moment, forked so that they are ready at once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from tests.services.fork_server import ForkedProcess, fork_server


class Forks:
    """Starts daemons in ``folder``, and kills them."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "forks.log"
        self._folder = folder
        self._started: dict[int, ForkedProcess] = {}

    async def __aenter__(self) -> Forks:
        return self

    async def __aexit__(self, *_: object) -> None:
        for pid in list(self._started):
            await self.kill(pid)

    async def start(self, environ: Mapping[str, str], *arguments: str) -> int:
        """Fork a daemon; its process id."""
        status = self._folder / f"forked-{os.urandom(8).hex()}"
        given = (arguments, {**os.environ, **environ}, self._folder, self.log, status)
        process = await asyncio.to_thread(fork_server().fork, *given)
        self._started[process.pid] = process
        return process.pid

    async def kill(self, pid: int) -> None:
        """SIGKILL, and wait until the process is gone."""
        process = self._started.pop(pid)
        process.kill()
        await asyncio.to_thread(process.wait)
