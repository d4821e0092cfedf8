"""Forgetting: all of it, or none while something is away; all that is left is told, in one error."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest
from redis import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.cli.forget import STEP, Delivered
from context_builder.errors import CannotForget, DatabaseUnavailable
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, TenantMemory
from context_builder.memory.options import SomaBrainOptions
from context_builder.memory.somabrain import SomaBrainClient, SomaBrainStore
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.testing import InMemoryArchive, InMemoryStore
from tests.archive.rows import summary
from tests.services.command import command_in
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

SAID = [Memory("monday:1", "hello", session_id="monday"), Memory("tuesday:1", "hello", session_id="tuesday")]


@pytest.fixture
async def archive() -> InMemoryArchive:
    archive = InMemoryArchive()
    await archive.deliver(summary(session_id="monday"))
    return archive


@pytest.fixture
async def memory() -> InMemoryStore:
    memory = InMemoryStore()
    await memory.remember("lab", SAID)
    return memory


async def test_a_session_is_forgotten_and_no_other(archive: InMemoryArchive, memory: InMemoryStore) -> None:
    delivered = Delivered("monday", archive, TenantMemory(memory, "lab"))
    await delivered.forget()
    await delivered.forget()
    assert (delivered.rows, delivered.memories, delivered.refusal) == (1, 1, None)
    assert [*memory.kept["lab"]] == ["tuesday:1"]


async def test_while_archive_or_memory_is_away_nothing_is_forgotten(
    archive: InMemoryArchive, memory: InMemoryStore
) -> None:
    delivered = Delivered("monday", archive, TenantMemory(memory, "lab"))
    memory.failure = DatabaseUnavailable("away")
    with pytest.raises(DatabaseUnavailable):
        await delivered.forget()
    memory.failure, archive.failure = None, DatabaseUnavailable("away")
    with pytest.raises(DatabaseUnavailable):
        await delivered.forget()
    assert (len(archive.rows), len(memory.kept["lab"])) == (1, 2)


async def test_a_memory_that_cannot_forget_does_not_save_the_rest(archive: InMemoryArchive) -> None:
    somabrain = SomaBrainStore(SomaBrainClient(SomaBrainOptions("http://soma")))
    delivered = Delivered("monday", archive, TenantMemory(somabrain, "lab"))
    await delivered.forget()
    assert (delivered.rows, type(delivered.refusal)) == (1, CannotForget)


class SlowStore(InMemoryStore):
    """A database that deletes two hundred memories in time, and no more."""

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        concerned = ids or [one.id for one in self.kept[tenant_id].values() if filter is None or filter.passes(one)]
        if len(concerned) > 200:
            raise DatabaseUnavailable("does not answer in time")
        return await super().forget(tenant_id, ids=ids, filter=filter)


async def test_a_session_with_very_many_memories_is_forgotten_in_steps(archive: InMemoryArchive) -> None:
    memory = SlowStore()
    await memory.remember("lab", [Memory(f"monday:{n}", "hello", session_id="monday") for n in range(3_000)] + SAID[1:])
    delivered = Delivered("monday", archive, TenantMemory(memory, "lab"))
    await delivered.forget()
    assert delivered.memories == 3_000
    assert [*memory.kept["lab"]] == ["tuesday:1"]


async def test_what_is_deleted_at_once_is_a_step_so_that_others_are_not_held_up(archive: InMemoryArchive) -> None:
    memory = StepsStore()
    said = [Memory(f"monday:{n}", "hello", session_id="monday") for n in range(2 * STEP + 1)]
    await memory.remember("lab", said + SAID[1:])
    delivered = Delivered("monday", archive, TenantMemory(memory, "lab"))
    await delivered.forget()
    assert (memory.steps, delivered.memories) == ([STEP, STEP, 1, 0], len(said))
    assert [*memory.kept["lab"]] == ["tuesday:1"]


class StepsStore(InMemoryStore):
    """Notes how many memories are deleted at once."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        self.steps.append(await super().forget(tenant_id, ids=ids, filter=filter))
        return self.steps[-1]


WAITING = "SELECT pid FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"


async def waiting(database: asyncpg.Connection) -> bool:
    return bool(await database.fetch(WAITING))


async def none_waiting(database: asyncpg.Connection) -> bool:
    return not await waiting(database)


@pytest.mark.engines
@pytest.mark.usefixtures("redis")  # which is empty then
async def test_a_command_that_is_killed_in_the_middle_is_run_again(
    redis_server: RedisServer, migrated_url: str, tmp_path: Path
) -> None:
    memory = PostgresMemory(migrated_url)
    said = [Memory(f"monday:{n}", "hello", session_id="monday", position=n) for n in range(4 * STEP)]
    for begin in range(0, len(said), STEP):
        await memory.remember("local", said[begin : begin + STEP])
    left = MemoryQuery("", limit=len(said), filter=MemoryFilter(session_id="monday"))
    environ = {"REDIS_URL": redis_server.url, "DATABASE_URL": migrated_url, "TENANT_ID": "local"}
    environ |= {"CONTEXT_BUILDER_HOME": str(tmp_path)}
    forget = ["forget", "monday", "--yes"]
    holder = await asyncpg.connect(migrated_url)
    held = holder.transaction()
    await held.start()  # no step can delete this one, which is the last to be found
    await holder.execute("SELECT FROM context_memories WHERE id = 'monday:0' FOR UPDATE")
    asked = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "context_builder", *forget],
        env=os.environ | environ,
        stderr=asyncio.subprocess.PIPE,
    )
    assert asked.stderr is not None
    while b"memories deleted" not in (line := await asked.stderr.readline()):
        assert line, "it tells how far it is"
    await wait_until(lambda: waiting(holder), "the last step waits")
    asked.kill()
    await asked.wait()
    await holder.execute(f"SELECT pg_terminate_backend(pid) FROM ({WAITING}) AS waiting")
    await wait_until(lambda: none_waiting(holder), "its connection ends")
    await held.rollback()
    await holder.close()
    kept = len(await memory.search("local", left))
    assert kept == STEP
    result = command_in(environ, *forget)
    assert result.exit_code == 0, result.stderr
    assert f"{kept:,} memories deleted" in result.stdout
    assert await memory.search("local", left) == []
    await memory.close()


async def test_what_is_away_when_it_is_deleted_again_does_not_hide_the_rest(
    archive: InMemoryArchive, memory: InMemoryStore
) -> None:
    delivered = Delivered("monday", archive, TenantMemory(memory, "lab"))
    await delivered.forget()
    archive.failure = DatabaseUnavailable("the archive is away")
    await delivered.forget_again()
    assert delivered.failure.startswith("the archive is away; ")
    archive.failure = None
    await delivered.forget_again()
    assert delivered.failure == ""


@pytest.mark.engines
def test_all_that_is_left_is_named_at_once(redis_server: RedisServer, migrated_url: str) -> None:
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
        redis.set("context_builder:monday:owner", '{"token": 1, "pid": 7, "host": "elsewhere"}')
        redis.sadd("context_builder:monday:recordings", "elsewhere:/var/monday.jsonl", "lab-3:/var/monday.jsonl")
    env = {
        "CONTEXT_BUILDER_REDIS_URLS": f"{redis_server.url} redis://127.0.0.1:1",
        "CONTEXT_BUILDER_DATABASE_URL": migrated_url,
        "CONTEXT_BUILDER_SA01_SOMA_BASE_URL": "http://127.0.0.1:1",
        "CONTEXT_BUILDER_LEASE_TIME": "1.1",
    }
    result = CliRunner().invoke(app, ["forget", "monday", "--yes"], env=env)
    assert result.exit_code == 1, result.stderr
    for left in (
        "127.0.0.1:1/0: Redis is not available",
        "what the memory holds of it stays: ",
        "delete elsewhere:/var/monday.jsonl, lab-3:/var/monday.jsonl",
        "process 7 on elsewhere did not say that it has left",
    ):
        assert left in result.stderr, result.stderr
    assert "Forgot session monday: " in result.stdout
