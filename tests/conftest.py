"""Real engines for the tests that are about one; started once, on free loopback ports."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import asyncpg
import pytest
import structlog
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis

from context_builder.memory.options import SomaBrainOptions
from context_builder.memory.somabrain import SomaBrainClient, SomaBrainStore
from tests.services.api_server import ApiServer
from tests.services.emptied_redis import emptied
from tests.services.postgres_server import PostgresServer
from tests.services.postgrest import PostgrestFront, serving_project
from tests.services.redis_server import RedisServer
from tests.services.small_model import SmallModelServer, started_or_skipped
from tests.services.somabrain import SomaBrainServer

os.environ["EMBEDDED_EMBEDDINGS"] = "false"  # tests of that engine turn it on, and stop it
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what the tests start would be compiled anew each time,
sys.dont_write_bytecode = False  # and all tests in each worker of each run

settings.register_profile("quick", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=20)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=100)
settings.load_profile("quick")  # CI runs what is marked `hypothesis` a second time, thoroughly


STARTING: Final = {
    "redis_server",
    "postgres_server",
    "small_model",
    "chromium",
    "home",
    "process",
    "python",
}
"""Fixtures that start processes. Whatever uses one, however indirectly, is marked ``engines``."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a process, or for time to pass."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not STARTING.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("engines")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have garbage collection neither run while tests are collected, all of which stay, nor look through them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have a test that starts a process and is not marked fail: the marked ones are left out by ``./scripts/check``."""
    _quick.running = item.get_closest_marker("engines") is None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    _quick.running = False  # whichever test is the last stops the servers


_quick = SimpleNamespace(running=False)


def _refuse_processes(event: str, _: object) -> None:
    if _quick.running and event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        raise AssertionError("this test starts a process: mark it `engines`")


sys.addaudithook(_refuse_processes)


@pytest.fixture(autouse=True)
def logging_as_at_first() -> Iterator[None]:
    """Commands configure logging for their process, which a test shares with those after it."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def engine_folder() -> Iterator[Path]:
    """A folder for engines' data that every user may enter.

    PostgreSQL does not run as root: run by root, it is another user's process, which could not
    enter the folders that pytest makes.
    """
    folder = Path(tempfile.mkdtemp(prefix="context-builder-tests-"))
    folder.chmod(0o755)
    yield folder
    # A hundred thousand files of hundreds of databases: nobody need wait until they are gone.
    subprocess.Popen(["rm", "-rf", str(folder)], start_new_session=True)


@pytest.fixture(scope="session")
def redis_server(engine_folder: Path) -> Iterator[RedisServer]:
    """A real Redis for the whole run; a test that kills it must restart it.

    In the end it tells whether anything was sent that Redis 6.2 does not know.
    """
    folder = engine_folder / "redis"
    folder.mkdir()
    server = RedisServer(folder)
    server.start()
    yield server
    newer = server.newer_commands()
    server.kill()
    assert not newer, f"Redis 6.2 does not know {newer}"


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    """A client of the real Redis, which is empty at the start of the test."""
    async with emptied(redis_server) as client:
        yield client


@pytest.fixture(scope="session")
def postgres_server(engine_folder: Path) -> Iterator[PostgresServer]:
    """A real PostgreSQL for the whole run; ``url`` leads to an empty database as superuser."""
    server = PostgresServer(engine_folder / "postgres")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def database_url(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> str:
    """A database of the test's own in the real PostgreSQL, which is empty unless it asks for ``migrated_url``, too."""
    return postgres_server.create_database(migrated="migrated_url" in request.fixturenames)


@pytest.fixture
def migrated_url(database_url: str) -> str:
    """A database of the test's own with our tables, which are empty."""
    return database_url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """The superuser's connection to the test's own database."""
    connection = await asyncpg.connect(database_url)
    yield connection
    await connection.close()


@pytest.fixture(scope="session")
def api(engine_folder: Path, redis_server: RedisServer, postgres_server: PostgresServer) -> Iterator[ApiServer]:
    """The real HTTP server, one for the whole run; its database keeps what tests store, its Redis is each test's."""
    folder = engine_folder / "api"
    folder.mkdir()
    server = ApiServer(folder, redis_server.url, postgres_server.create_database(migrated=True))
    yield server
    server.close()


@pytest.fixture
async def supabase_project(database_url: str) -> AsyncIterator[PostgrestFront]:
    """A Supabase project on the test's own database, without any table of ours unless it asks for ``migrated_url``."""
    async with serving_project(database_url) as front:
        yield front


@pytest.fixture(scope="session")
def small_model() -> Iterator[SmallModelServer]:
    """A real small model behind a real OpenAI-compatible server, one for the whole run."""
    server = started_or_skipped()
    yield server
    server.stop()


@pytest.fixture
def somabrain() -> Iterator[SomaBrainServer]:
    """A server that answers as SomaBrain does, and holds nothing yet."""
    with SomaBrainServer() as server:
        yield server


@pytest.fixture
async def somabrain_store(somabrain: SomaBrainServer) -> AsyncIterator[SomaBrainStore]:
    """A store in :func:`somabrain`, which is asked once a call."""
    store = SomaBrainStore(SomaBrainClient(SomaBrainOptions(somabrain.url, retries=0)))
    yield store
    await store.close()
