"""What a conversation needs, all of it real: Redis, PostgreSQL, Supabase's client, a small model, the daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.small_model import SmallModelServer, started_or_skipped

Command = Callable[..., Daemon]


@pytest.fixture(scope="session")
def small_model() -> Iterator[SmallModelServer]:
    """A real small model behind a real OpenAI-compatible server."""
    server = started_or_skipped()
    yield server
    server.stop()


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
