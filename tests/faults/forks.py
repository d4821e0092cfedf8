"""The daemon forked from a process that has imported everything: as real and as mortal as any, but ready at once.

The parent, ``python -m tests.faults.forks``, takes one JSON line a daemon (``arguments``, ``environ``, ``log``)
and answers with its process id.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from click import Command
from typer.main import get_command

from scripts.campaign.daemon import ROOT
from tests.services.waiting import wait_until


class ForkServer:
    """The parent of all daemons of a run: it imports everything once."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.forks"], stdin=pipe, stdout=pipe, cwd=ROOT, text=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, asked: Mapping[str, Any]) -> int:
        """Fork a daemon; its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Forks:
    """Starts daemons in ``folder``, and kills them."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.log = folder / "forks.log"
        self._folder = folder
        self._server = server
        self._asking = asyncio.Lock()
        self._started: set[int] = set()

    async def __aenter__(self) -> Forks:
        return self

    async def __aexit__(self, *_: object) -> None:
        for pid in list(self._started):
            await self.kill(pid)

    async def start(self, environ: Mapping[str, str], *arguments: str) -> int:
        """Fork a daemon; its process id."""
        asked = {"arguments": arguments, "environ": dict(environ), "log": str(self.log), "folder": str(self._folder)}
        async with self._asking:
            pid = await asyncio.to_thread(self._server.fork, asked)
        self._started.add(pid)
        return pid

    async def kill(self, pid: int) -> None:
        """SIGKILL, and wait until the process is gone."""
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).ppid() == self._server.pid:  # the number may have been given away
                os.kill(pid, signal.SIGKILL)
        self._started.discard(pid)
        await wait_until(lambda: not psutil.pid_exists(pid), "the daemon is gone", poll=0.001)


def main() -> None:
    """Fork for every line until the input ends."""
    import asyncpg
    import openai

    import context_builder.analysis.openai
    import context_builder.archive.postgres
    import context_builder.wiring.app
    from context_builder.cli import app
    from context_builder.tokens.counter import TokenCounter

    _ = asyncpg, openai, context_builder
    TokenCounter("").load()
    command = get_command(app)
    gc.freeze()  # a collection in a daemon would copy every page it shares with this process
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead need no burial
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _become(json.loads(line), command)
        print(pid, flush=True)


def _become(asked: dict[str, Any], command: Command) -> None:
    """Be the daemon from here on."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(asked["folder"])
    os.environ.update(asked["environ"])
    try:
        command(asked["arguments"])
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
