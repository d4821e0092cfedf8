"""A session's own Redis: killed and started again, put back to an earlier moment, replaced by its replica."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff, NoBackoff

from context_builder.engines.engine import LOOPBACK
from tests.services.link import Link
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

_OPTIONS: Final = (
    *("--appendfsync", "always"),  # what Redis acknowledged is lost only where a fault takes it
    *("--auto-aof-rewrite-percentage", "0"),  # a moment is a length of the files
    *("--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"),
)


@dataclass(frozen=True)
class Moment:
    """How long each append-only file was at a monotonic time; of an empty Redis there are none."""

    at: float
    lengths: Mapping[Path, int]


EMPTY: Final = Moment(0.0, {})
"""The moment before anything was written."""


def client_of(port: int) -> Redis:
    """A client that neither waits long nor tries again by itself."""
    return _client(port, 2.0, Retry(NoBackoff(), 0))


def reader_of(port: int) -> Redis:
    """A client for what may be asked twice, and is asked while Redis is being started again."""
    return _client(port, 10.0, Retry(ConstantBackoff(0.01), 2_000))


def _client(port: int, timeout: float, retry: Retry) -> Redis:
    return Redis(
        host=LOOPBACK, port=port, socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry, retry_on_error=[]
    )


class RedisHost:
    """Programs reach it over ``link``, whose port stays the same; ``redis`` leads to it directly."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self._server = self._new_server("first")
        self.redis = reader_of(self._server.port)
        self.link = Link(self._server.port)

    @classmethod
    @asynccontextmanager
    async def opened(cls, folder: Path, *options: str) -> AsyncIterator[RedisHost]:
        """Running with these ``options``, its data in ``folder``, which is gone afterwards."""
        host = cls(folder / "redis", *options)
        try:
            await asyncio.to_thread(host._server.start)
            await host.link.open()
            yield host
        finally:
            await host.link.close()
            await host.redis.aclose()
            host.kill()
            shutil.rmtree(folder / "redis", ignore_errors=True)

    @property
    def port(self) -> int:
        """Its own, past the link."""
        return self._server.port

    def kill(self) -> None:
        """SIGKILL."""
        self._server.kill()

    async def start_again(self) -> None:
        """The same Redis, with what it wrote down."""
        await asyncio.to_thread(self._server.start)
        with suppress(OSError):
            await self.redis.connection_pool.disconnect()

    def moment(self) -> Moment:
        """What it has written down until now."""
        files = self._server.folder.rglob("*aof*")
        return Moment(time.monotonic(), {file: file.stat().st_size for file in files if file.is_file()})

    async def fall_back(self, moment: Moment) -> None:
        """Power fails, and what was written since ``moment`` was not on the disk yet."""
        self.kill()
        if moment is EMPTY:
            shutil.rmtree(self._server.folder)
            self._server.folder.mkdir()
        for file, length in moment.lengths.items():
            with file.open("r+b") as opened:
                opened.truncate(length)
        await self.start_again()

    @asynccontextmanager
    async def replicated(self) -> AsyncIterator[Replica]:
        """A replica that has everything, and is gone afterwards unless it was promoted."""
        server = self._new_server(f"replica-of-{self._server.port}")
        replica = Replica(server, Link(self._server.port))
        try:
            await replica.follow(self.redis)
            yield replica
        finally:
            await replica.link.close()
            await replica.redis.aclose()
            if server is not self._server:
                server.kill()

    async def promote(self, replica: Replica) -> None:
        """The replica takes the place of the Redis that it followed, which is gone for good."""
        self.kill()
        await replica.link.close()
        await replica.redis.replicaof("NO", "ONE")
        await self._replace_by(replica)

    async def fail_over(self, replica: Replica) -> None:
        """Both change roles in order, with nothing missing; then the one that was followed is gone."""
        await self.redis.execute_command("FAILOVER", "TIMEOUT", "10000")
        await wait_until(lambda: _is_master(replica.redis), "the replica leads", poll=0.005)
        self.kill()
        await self._replace_by(replica)

    async def _replace_by(self, replica: Replica) -> None:
        await self.redis.aclose()
        shutil.rmtree(self._server.folder, ignore_errors=True)
        self._server = replica.server
        self.redis = reader_of(self._server.port)
        self.link.lead_to(self._server.port)
        await wait_until(self._has_written_all, "its append-only file is complete", poll=0.005)

    async def _has_written_all(self) -> bool:
        info: dict[str, Any] = await self.redis.info("persistence")
        return not (info["aof_rewrite_in_progress"] or info.get("aof_rewrite_scheduled"))

    def _new_server(self, name: str) -> RedisServer:
        folder = self._folder / name
        folder.mkdir(parents=True)
        return RedisServer(folder, *_OPTIONS, *self._options)


class Replica:
    """Follows a Redis over ``link``, which may stall."""

    def __init__(self, server: RedisServer, link: Link) -> None:
        self.server = server
        self.redis = reader_of(server.port)
        self.link = link

    async def follow(self, followed: Redis) -> None:
        """Returns when it has everything."""
        await asyncio.to_thread(self.server.start)
        await self.link.open()
        await self.redis.replicaof(LOOPBACK, self.link.port)

        async def is_in_step() -> bool:
            others: dict[str, Any] = await followed.info("replication")
            own: dict[str, Any] = await self.redis.info("replication")
            return own["master_link_status"] == "up" and own["slave_repl_offset"] >= others["master_repl_offset"]

        await wait_until(is_in_step, "the replica has everything", poll=0.01)


async def _is_master(redis: Redis) -> bool:
    info: dict[str, Any] = await redis.info("replication")
    return bool(info["role"] == "master")
