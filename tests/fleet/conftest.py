"""Fleets of real worker processes on a real Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.fleet.watching import Fleet
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer

StartWorker = Callable[..., Daemon]

AWAY = {"supabase_url": "http://127.0.0.1:1", "supabase_key": "sb_secret_x"}
"""An archive that takes nothing."""


@pytest.fixture
def start_worker(redis_server: RedisServer, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts ``context-builder fleet`` with these settings; whatever still runs is killed in the end."""
    with ExitStack() as stack:

        def started(**settings: object) -> Daemon:
            folder = tmp_path / f"worker-{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            archive = {} if "database_url" in settings else AWAY
            common = {"redis_url": redis_server.url, "log_format": "json", "feed_memory": "false"}
            return stack.enter_context(Daemon(folder, "fleet", **{**common, **archive, **settings}))

        yield started


@pytest.fixture
def fleet(redis: Redis) -> Fleet:
    return Fleet(redis)
