"""What a restore drill needs beside the engines: fresh ones, and the daemon."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer
from tests.stories.conftest import context_builder, done

__all__ = ["context_builder", "done"]


@pytest.fixture
def fresh_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A second Redis, empty."""
    folder = tmp_path / "fresh_redis"
    folder.mkdir()
    server = RedisServer(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def fresh_database_url(postgres_server: PostgresServer) -> str:
    """A second database, empty."""
    return postgres_server.create_database()
