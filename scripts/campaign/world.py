"""Everything around the daemons: Redis, PostgreSQL, the model, and the links to them."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff, NoBackoff

from context_builder.archive.migrations import apply
from context_builder.engines.ports import LOOPBACK, free_port
from scripts.campaign.daemon import ROOT
from scripts.campaign.link import Link
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer

_REDIS_OPTIONS: Final = ("--appendfsync", "always", "--auto-aof-rewrite-min-size", "32mb")


def client_of(port: int) -> Redis:
    """A client that neither waits long nor tries again by itself."""
    return _client(port, 2.0, Retry(NoBackoff(), 0))


def reader_of(port: int) -> Redis:
    """A client for what may be asked twice: a lane may have killed the Redis that another one looks at."""
    return _client(port, 10.0, Retry(ConstantBackoff(0.01), 2_000))


def _client(port: int, timeout: float, retry: Retry) -> Redis:
    return Redis(
        host=LOOPBACK, port=port, socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry, retry_on_error=[]
    )


class Calm:
    """Lanes go their ways ``beside`` one another; a lane that is ``alone`` has the machine for itself."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._free = asyncio.Semaphore(lanes)
        self._wants_all = asyncio.Lock()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        async with self._wants_all:  # wait for one that wants to be alone
            await self._free.acquire()
        try:
            yield
        finally:
            self._free.release()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with self._wants_all:
            for _ in range(self._lanes):
                await self._free.acquire()
            try:
                yield
            finally:
                for _ in range(self._lanes):
                    self._free.release()


class World:
    """Shared by all lanes; ``model`` and ``archive`` are the links that all daemons use."""

    def __init__(self, folder: Path, lanes: int) -> None:
        self.folder = folder
        self.redis_server = RedisServer(folder, *_REDIS_OPTIONS)
        self.redis = reader_of(self.redis_server.port)
        self.calm = Calm(lanes)
        self.archive_outage = asyncio.Lock()
        self._postgres = PostgresServer(folder / "postgres")
        self._model_port = free_port()
        self.model = Link(self._model_port)
        self.archive = Link(self._postgres.port)
        self._model_process: subprocess.Popen[bytes] | None = None
        self._database = ""

    @classmethod
    @asynccontextmanager
    async def opened(cls, lanes: int) -> AsyncIterator[World]:
        """Everything running, in a folder that is gone afterwards."""
        folder = _folder()
        world = cls(folder, lanes)
        try:
            await world._start()
            yield world
        finally:
            await world._stop()
            shutil.rmtree(folder, ignore_errors=True)

    async def _start(self) -> None:
        self._model_process = _model_process(self._model_port)
        await asyncio.to_thread(self.redis_server.start)
        await asyncio.to_thread(self._postgres.start)
        self._database = self._postgres.create_database()
        await apply(self._database)
        await self.model.open()
        await self.archive.open()
        await self._model_answers()

    async def _stop(self) -> None:
        await self.redis.aclose()
        await self.model.close()
        await self.archive.close()
        if self._model_process is not None:
            self._model_process.kill()
            self._model_process.wait(10)
        self.redis_server.kill()
        if self._postgres.folder.exists():
            await asyncio.to_thread(self._postgres.stop)

    def environ(self, redis: Link) -> dict[str, str]:
        """Settings of a daemon that reaches Redis over ``redis``."""
        return {
            "REDIS_URL": f"redis://{LOOPBACK}:{redis.port}/0",
            "OPENAI_BASE_URL": f"http://{LOOPBACK}:{self.model.port}/v1",
            "DATABASE_URL": self._database.replace(f":{self._postgres.port}/", f":{self.archive.port}/"),
        }

    async def set_model_fault(self, fault: str | None) -> None:
        async with httpx.AsyncClient() as http:
            await http.post(f"http://{LOOPBACK}:{self._model_port}/faults", json={"fault": fault})

    async def kill_redis(self, away: float) -> None:
        """SIGKILL, and ``away`` seconds later the same Redis again, with what it wrote down."""
        self.redis_server.kill()
        await asyncio.sleep(away)
        await asyncio.to_thread(self.redis_server.start)
        with suppress(OSError):
            await self.redis.connection_pool.disconnect()

    async def archived(self, session_id: str) -> list[tuple[int, int, str]]:
        """The archive's rows of a session: summary_seq, message_count, summary_text."""
        sql = "SELECT summary_seq, message_count, summary_text FROM context_summaries WHERE session_id = $1"
        return await self._rows(f"{sql} ORDER BY summary_seq", session_id)

    async def remembered(self, session_id: str) -> list[tuple[str, str]]:
        """The session's memories: kind, text."""
        return await self._rows("SELECT kind, text FROM context_memories WHERE session_id = $1", session_id)

    async def _rows(self, sql: str, session_id: str) -> list[Any]:
        connection = await asyncpg.connect(self._database)
        try:
            return [tuple(row) for row in await connection.fetch(sql, session_id)]
        finally:
            await connection.close()

    async def _model_answers(self) -> None:
        deadline = time.monotonic() + 20
        async with httpx.AsyncClient() as http:
            while time.monotonic() < deadline:
                with suppress(httpx.HTTPError):
                    await http.get(f"http://{LOOPBACK}:{self._model_port}/stats")
                    return
                await asyncio.sleep(0.05)
        raise RuntimeError("the model server does not start")


def _folder() -> Path:
    """A new one that every user may enter: PostgreSQL started by root runs as another."""
    folder = Path(tempfile.mkdtemp(prefix="context-builder-faults-"))
    folder.chmod(0o755)
    return folder


def _model_process(port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "scripts.campaign.model", "--port", str(port)], cwd=ROOT)
