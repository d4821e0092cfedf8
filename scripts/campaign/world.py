"""What all sessions share: PostgreSQL, the model, and the links to them."""

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

from context_builder.database.migrations import apply
from context_builder.engines.engine import LOOPBACK, free_port
from scripts.campaign.daemon import ROOT
from tests.services.link import Link
from tests.services.postgres_server import PostgresServer
from tests.services.waiting import wait_until

_REFUSALS: Final = Path(__file__).with_name("refusals.sql")

REFUSED: Final = "refused"
"""The fault of a model that cannot be reached at all."""


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
        self.calm = Calm(lanes)
        self.archive_outage = asyncio.Lock()
        self.model_outage = asyncio.Lock()
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
        await asyncio.to_thread(self._postgres.start)
        self._database = self._postgres.create_database()
        await apply(self._database)
        await self._execute(_REFUSALS.read_text())
        await self.model.open()
        await self.archive.open()
        await self._model_answers()

    async def _stop(self) -> None:
        await self.model.close()
        await self.archive.close()
        if self._model_process is not None:
            self._model_process.kill()
            self._model_process.wait(10)
        if self._postgres.folder.exists():
            await asyncio.to_thread(self._postgres.stop)

    def environ(self, redis: Link) -> dict[str, str]:
        """Settings of a daemon that reaches Redis over ``redis``."""
        return {
            "REDIS_URL": f"redis://{LOOPBACK}:{redis.port}/0",
            "OPENAI_BASE_URL": f"http://{LOOPBACK}:{self.model.port}/v1",
            "DATABASE_URL": self._database.replace(f":{self._postgres.port}/", f":{self.archive.port}/"),
        }

    @asynccontextmanager
    async def model_fault(self, kind: str) -> AsyncIterator[None]:
        """All calls of the model fail in this way; ``REFUSED`` is for connections to it."""
        if kind == REFUSED:
            async with self.model.refusing():
                yield
            return
        await self._set_model_fault(kind)
        try:
            yield
        finally:
            await self._set_model_fault(None)

    async def summary_asked_for(self, timeout: float) -> None:
        """Until the model was asked for another summary, or so many seconds have passed."""
        before = await self._summaries_asked_for()

        async def asked() -> bool:
            return await self._summaries_asked_for() > before

        with suppress(AssertionError):
            await wait_until(asked, "a summary is asked for", timeout, poll=0.1)

    async def _summaries_asked_for(self) -> int:
        async with httpx.AsyncClient() as http:
            stats = (await http.get(f"http://{LOOPBACK}:{self._model_port}/stats")).json()
        return int(stats["tasks"].get("summary", 0))

    async def _set_model_fault(self, fault: str | None) -> None:
        async with httpx.AsyncClient() as http:
            await http.post(f"http://{LOOPBACK}:{self._model_port}/faults", json={"fault": fault})

    async def archived(self, session_id: str) -> list[tuple[int, int, str, int | None]]:
        """The archive's rows of a session: summary_seq, message_count, summary_text, superseded_by."""
        columns = "summary_seq, message_count, summary_text, superseded_by"
        sql = f"SELECT {columns} FROM context_summaries WHERE session_id = $1 ORDER BY summary_seq"
        return await self._rows(sql, session_id)

    async def remembered(self, session_id: str) -> list[tuple[str, str]]:
        """The session's memories: kind, text."""
        return await self._rows("SELECT kind, text FROM context_memories WHERE session_id = $1", session_id)

    async def refuse(self, session_id: str, place: str, marker: str, sqlstate: str) -> None:
        """From now on, in ``place`` (archive or memory), a summary of this number or a memory with this word."""
        values = (session_id, place, marker, sqlstate)
        await self._execute("INSERT INTO campaign_refusals VALUES ($1, $2, $3, $4)", *values)

    async def refuse_nothing(self, session_id: str) -> None:
        """What was refused is taken from now on."""
        await self._execute("DELETE FROM campaign_refusals WHERE session_id = $1", session_id)

    async def _execute(self, statement: str, *values: object) -> None:
        connection = await asyncpg.connect(self._database)
        try:
            await connection.execute(statement, *values)
        finally:
            await connection.close()

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
