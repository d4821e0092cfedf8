"""Each embedded engine in a home of its own, stopped afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis

import context_builder
from context_builder.engines.embeddings import EmbeddingEngine, is_available
from context_builder.engines.engine import Address, Engine, free_port
from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis import RedisEngine
from context_builder.memory.engine_embedder import EngineEmbedder
from tests.services.waiting import wait_until

START = """
import sys
from pathlib import Path
from {module} import {engine}
address = {engine}(Path(sys.argv[1]), int(sys.argv[2])).ensure()
print(address.url, address.started)
"""


class Subject(ABC):
    """An engine under test, and how to use what it serves."""

    make: type[RedisEngine] | type[PostgresEngine] | type[EmbeddingEngine]

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()

    @property
    def engine(self) -> Engine:
        """As another terminal would make it."""
        return self.make(self.home, self.port)

    def start_in_another_process(self) -> subprocess.Popen[str]:
        """A process that ensures the engine, prints ``URL STARTED`` and ends."""
        script = START.format(module=self.make.__module__, engine=self.make.__name__)
        return subprocess.Popen(
            [sys.executable, "-c", script, str(self.home), str(self.port)],
            cwd=Path(context_builder.__file__).parents[1],
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    async def remember(self, address: Address) -> None: ...

    @abstractmethod
    async def remembers(self, address: Address) -> bool: ...


class RedisSubject(Subject):
    make = RedisEngine

    @property
    def pid(self) -> int:
        return int(json.loads((self.home / "redis.json").read_text())["pid"])

    async def remember(self, address: Address) -> None:
        async with Redis.from_url(address.url) as client:
            await client.set("remembered", "yes")

            async def written() -> bool:
                return bool((await client.info("persistence"))["aof_buffer_length"] == 0)

            await wait_until(written, "Redis has written it, which it puts off while the disk is busy")

    async def remembers(self, address: Address) -> bool:
        async with Redis.from_url(address.url) as client:
            return bool(await client.get("remembered") == b"yes")


class PostgresSubject(Subject):
    make = PostgresEngine

    @property
    def pid(self) -> int:
        return int((self.home / "postgres" / "data" / "postmaster.pid").read_text().split()[0])

    async def remember(self, address: Address) -> None:
        connection = await asyncpg.connect(address.url)
        await connection.execute("CREATE TABLE remembered ()")
        await connection.close()

    async def remembers(self, address: Address) -> bool:
        connection = await asyncpg.connect(address.url)
        found = await connection.fetchval("SELECT to_regclass('remembered') IS NOT NULL")
        await connection.close()
        return bool(found)


class EmbeddingSubject(Subject):
    """It keeps nothing: what it always knows is how to embed."""

    make = EmbeddingEngine

    @property
    def pid(self) -> int:
        return int(json.loads((self.home / "embeddings.json").read_text())["pid"])

    async def remember(self, address: Address) -> None:
        assert await self.remembers(address)

    async def remembers(self, address: Address) -> bool:
        return len(await EngineEmbedder("", lambda: address.url, lambda: None).embed_query("remembered")) == 384


@pytest.fixture
def home(engine_folder: Path) -> Path:
    """An empty home that every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="home-", dir=engine_folder))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def redis_subject(home: Path) -> Iterator[RedisSubject]:
    subject = RedisSubject(home)
    yield subject
    subject.engine.stop()


@pytest.fixture
def postgres_subject(home: Path) -> Iterator[PostgresSubject]:
    subject = PostgresSubject(home)
    yield subject
    subject.engine.stop()


@pytest.fixture
def embedding_subject(home: Path) -> Iterator[EmbeddingSubject]:
    if not is_available():
        pytest.skip("the embedding engine is not installed")
    subject = EmbeddingSubject(home)
    yield subject
    subject.engine.stop()


@pytest.fixture(
    params=["redis_subject", "postgres_subject", "embedding_subject"], ids=["redis", "postgres", "embeddings"]
)
def subject(request: pytest.FixtureRequest) -> Subject:
    """All engines, one after the other."""
    found: Subject = request.getfixturevalue(request.param)
    return found
