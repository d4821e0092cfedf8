"""What a conversation needs beside the engines: the daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services.command import command
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer

Command = Callable[..., Daemon]
Done = Callable[..., str]


@pytest.fixture
def context_builder(redis_server: RedisServer, tmp_path: Path) -> Iterator[Command]:
    """``context-builder ...`` as typed in a terminal; what still runs is killed in the end."""
    started: list[Daemon] = []

    def run(*arguments: str, **settings: object) -> Daemon:
        started.append(Daemon(tmp_path, *arguments, **{"redis_url": redis_server.url, **settings}))
        return started[-1]

    yield run
    for daemon in started:
        daemon.kill()
        print(daemon.output)  # shown when the story fails


@pytest.fixture
def done(redis_server: RedisServer, tmp_path: Path) -> Done:
    """``context-builder ...`` that ends by itself, and well; what it prints."""

    def run(*arguments: str, **settings: object) -> str:
        ended = command(tmp_path, *arguments, **{"redis_url": redis_server.url, **settings})
        assert ended.exit_code == 0, ended.output
        return ended.output

    return run
