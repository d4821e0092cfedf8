"""A file that is not a whole, sound backup, and engines that are not empty, are refused; nothing is changed then."""

from __future__ import annotations

import resource
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import psutil
import pytest
from redis.asyncio import Redis

from context_builder.backup.backup import back_up, restore
from context_builder.database import migrations
from context_builder.errors import BackupError, DatabaseError
from context_builder.session.client import SessionClient
from context_builder.session.keys import FENCE, SESSIONS, Keys
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.session.store.registry import SessionRegistry
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines


def quiet(_: str) -> None:
    """Nobody is told."""


def only(redis: Redis, tenant: str = "default") -> SessionServers:
    return SessionServers([SessionServer("redis", redis, tenant)])


@pytest.fixture
async def backup(redis: Redis, migrated_url: str, tmp_path: Path) -> Path:
    """A backup of a session that waits to be run, and of one summary; Redis is empty again."""
    await SessionClient(redis, "monday").push({"text": "one"}, {"text": "two"})
    connection = await asyncpg.connect(migrated_url)
    await connection.execute(
        "INSERT INTO context_summaries (session_id, summary_seq, summary_text) VALUES ('old', 1, 't')"
    )
    await connection.close()
    path = tmp_path / "all.backup"
    await back_up(path, only(redis), migrated_url, quiet)
    await redis.flushall()
    return path


@pytest.fixture
async def empty(postgres_server: PostgresServer) -> AsyncIterator[str]:
    """An empty database, in which no row of ours is to be found in the end."""
    url = postgres_server.create_database()
    yield url
    connection = await asyncpg.connect(url)
    if await connection.fetchval("SELECT to_regclass('context_summaries')"):
        assert await connection.fetchval("SELECT count(*) FROM context_summaries") == 0
    await connection.close()


def content(path: Path) -> bytes:
    return path.read_bytes()


def names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


def overwrite(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def rewritten(path: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> Path:
    """Forge: change members and manifest, and make them fit."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = orjson.loads(members.pop("manifest.json"))
    change(members, manifest)
    manifest["members"] = [*members]
    forged = path.with_name("forged.backup")
    with zipfile.ZipFile(forged, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
        new.writestr("manifest.json", orjson.dumps(manifest))
    return forged


async def refused(path: Path, redis: Redis, url: str) -> str:
    with pytest.raises((BackupError, DatabaseError)) as error:
        await restore(path, only(redis), url, quiet)
    assert [key async for key in redis.scan_iter("*") if key != FENCE.encode()] in ([], [b"context_builder:forgotten"])
    assert "\n" not in str(error.value)
    assert str(error.value).count(str(path)) == isinstance(error.value, BackupError)
    assert str(path) not in [one.path for one in psutil.Process().open_files()]  # while the error is held
    return str(error.value)


async def test_it_is_restored_into_empty_engines(backup: Path, redis: Redis, postgres_server: PostgresServer) -> None:
    restored = await restore(backup, only(redis), postgres_server.create_database(), quiet)
    assert (restored.sessions, restored.migrations) == (1, [])
    assert await SessionClient(redis, "monday").waiting() == 2


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
async def test_a_file_that_lacks_its_end(backup: Path, redis: Redis, empty: str, kept: float) -> None:
    data = content(backup)
    overwrite(backup, data[: int(len(data) * kept)])
    assert "is not a backup, or an incomplete one" in await refused(backup, redis, empty)


async def test_a_file_with_a_changed_byte_anywhere(backup: Path, redis: Redis, empty: str) -> None:
    data = content(backup)
    for at in range(40, len(data), len(data) // 40):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        overwrite(backup, bytes(changed))
        # A byte that nothing depends on, such as a date of the archive's, may change; then the database is asked for.
        with pytest.raises((BackupError, DatabaseError), match=rf"{backup}|cannot be reached"):
            await restore(backup, only(redis), "postgresql://nobody@127.0.0.1:1/none", quiet)
    assert await redis.dbsize() == 0


async def test_a_file_of_a_newer_version(backup: Path, redis: Redis, empty: str) -> None:
    newer = rewritten(backup, lambda _, manifest: manifest.update(format=2))
    assert "reads format 1" in await refused(newer, redis, empty)
    later = rewritten(
        backup,
        lambda members, _: members.update(
            {"context_builder_migrations": members["context_builder_migrations"].replace(b"006_", b"999_")}
        ),
    )
    assert "upgrade first" in await refused(later, redis, empty)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _, manifest: manifest["tables"].update(pg_authid=manifest["tables"]["context_edges"]), "are not ours"),
        (lambda members, _: members.update({"sessions.jsonl": b'{"session": "a b"}\n'}), "header cannot be read"),
        (lambda members, _: members.update({"sessions.jsonl": b'{"key": "input", "values": []}\n'}), "no session"),
        (lambda members, _: members.update({"sessions.jsonl": b"[]\n"}), "no JSON object"),
        (lambda members, _: members.update({"sessions.jsonl": b'{"session"'}), "middle of a line"),
        (
            lambda members, _: members.update(
                {"sessions.jsonl": members["sessions.jsonl"].replace(b'"key":"input"', b'"key":"../input"')}
            ),
            "values cannot be read",
        ),
        (
            lambda members, _: members.update(
                {"sessions.jsonl": b"".join(members["sessions.jsonl"].splitlines(keepends=True)[:-1])}
            ),
            "no end",
        ),
        (lambda _, manifest: manifest["servers"][0].update(fence=-1), "counts of its sessions"),
        (lambda _, manifest: manifest["tables"]["context_packages"].update(days=["yesterday"]), "cannot be read"),
        (
            lambda _, manifest: manifest["tables"]["context_summaries"].update(columns=['x"; DROP TABLE y']),
            "no column",
        ),
        (lambda members, _: members.update({"context_summaries": b"torn"}), "refuses"),
        (lambda _, manifest: manifest["tables"]["context_summaries"].update(rows=7), "1 rows, not 7"),
        (lambda _, manifest: manifest["servers"][0].update(tenant="club"), "tenant 'club' have no Redis"),
        (lambda members, _: members.pop("sessions.jsonl"), "its parts are not its sessions and tables"),
        (lambda members, _: members.pop("context_builder_migrations"), "its parts are not its sessions and tables"),
        (lambda members, _: members.update({"../../etc/passwd": b""}), "its parts are not its sessions and tables"),
        (lambda members, _: members.update({"context_builder_migrations": b"\n"}), "upgrade first"),
    ],
)
async def test_a_hostile_file(
    backup: Path, redis: Redis, empty: str, change: Callable[[dict[str, bytes], dict[str, Any]], None], told: str
) -> None:
    assert told in await refused(rewritten(backup, change), redis, empty)


async def test_a_full_disk_is_told_and_leaves_nothing(redis: Redis, migrated_url: str, tmp_path: Path) -> None:
    await SessionClient(redis, "monday").push({"text": "x" * 200_000 + str(list(range(50_000)))})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(BackupError, match=r"all\.backup: cannot be written: File too large"):
            await back_up(tmp_path / "all.backup", only(redis), migrated_url, quiet)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not names(tmp_path)


async def test_something_that_is_no_backup_at_all(tmp_path: Path, redis: Redis, empty: str) -> None:
    text, archive = tmp_path / "notes.txt", tmp_path / "notes.zip"
    text.write_text("hello")
    with zipfile.ZipFile(archive, "w") as other:
        other.writestr("notes", "hello")
    assert "is not a backup, or an incomplete one" in await refused(text, redis, empty)
    assert "is not a backup of context_builder" in await refused(archive, redis, empty)
    assert "No such file" in await refused(tmp_path / "none", redis, empty)


async def test_engines_that_hold_something_are_left_alone_unless_they_are_to_be_replaced(
    backup: Path, redis: Redis, migrated_url: str
) -> None:
    servers = only(redis)
    with pytest.raises(BackupError, match="database is not empty: context_summaries"):
        await restore(backup, servers, migrated_url, quiet)
    await SessionClient(redis, "friday").push({"text": "other"})
    with pytest.raises(BackupError, match=r"Redis is not empty: there are 1 sessions \(friday\)"):
        await restore(backup, servers, migrated_url, quiet)
    await redis.set(Keys("friday").owner, '{"token": 3, "host": "lab", "pid": 7}')
    with pytest.raises(BackupError, match="session friday is run by process 7 on lab; stop it first"):
        await restore(backup, servers, migrated_url, quiet, force=True)
    await redis.delete(Keys("friday").owner)
    restored = await restore(backup, servers, migrated_url, quiet, force=True)
    assert restored.sessions == 1
    assert [session.session_id for session in await SessionRegistry(redis).sessions()] == ["monday"]


async def test_a_session_that_appears_meanwhile_undoes_the_restore(
    backup: Path, redis: Redis, empty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing_there(*_: object, **__: object) -> None:
        await SessionClient(redis, "monday").push({"text": "just now"})

    monkeypatch.setattr("context_builder.backup.backup._check_sessions", nothing_there)
    with pytest.raises(BackupError, match="session monday already exists"):
        await restore(backup, only(redis), empty, quiet)
    assert await SessionClient(redis, "monday").waiting() == 1


async def test_tokens_never_go_back_and_whoever_loaded_the_session_is_told(
    backup: Path, redis: Redis, postgres_server: PostgresServer
) -> None:
    client: Any = redis
    await client.hset(FENCE, "token", 5_000_000)
    await restore(backup, only(redis), postgres_server.create_database(), quiet)
    assert int(await client.hget(FENCE, "token")) > 5_000_000
    assert await SessionRegistry(redis).mark("monday")


async def test_what_was_forgotten_while_the_backup_was_made_stays_forgotten(
    redis: Redis, migrated_url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    for session in ("monday", "tuesday"):
        await SessionClient(redis, session).push({"text": "one"})

    async def forget() -> None:
        await SessionRegistry(redis).forget("monday")

    path = tmp_path / "all.backup"
    forgotten = [forget()]

    def told(what: str) -> None:
        if what.startswith("sessions"):
            import asyncio

            asyncio.get_running_loop().create_task(forgotten.pop())

    await back_up(path, only(redis), migrated_url, told)
    await redis.flushall()
    restored = await restore(path, only(redis), postgres_server.create_database(), quiet)
    assert restored.sessions == 1
    assert await SessionClient(redis, "monday").waiting() == 0
    assert await redis.zscore(SESSIONS, "monday") is None


async def test_an_existing_file_is_never_written_over(backup: Path, redis: Redis, migrated_url: str) -> None:
    before = content(backup)
    with pytest.raises(BackupError, match="already exists; choose another name"):
        await back_up(backup, only(redis), migrated_url, quiet)
    assert content(backup) == before


async def test_a_backup_that_fails_leaves_no_file(redis_server: RedisServer, redis: Redis, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="cannot be reached"):
        await back_up(tmp_path / "all.backup", only(redis), "postgresql://nobody@127.0.0.1:1/none", quiet)
    assert not list(tmp_path.glob("*backup*")) + list(tmp_path.glob(".*"))  # noqa: ASYNC240


async def test_a_backup_of_a_version_with_fewer_migrations_is_migrated(
    redis: Redis, database_url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    *_, last = migrations.digests()
    await migrations.apply(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("DELETE FROM context_builder_migrations WHERE name = $1", last)
    await connection.close()
    await back_up(tmp_path / "old.backup", only(redis), database_url, quiet)
    target = postgres_server.create_database()
    restored = await restore(tmp_path / "old.backup", only(redis), target, quiet)
    assert restored.migrations == [last]
    assert await migrations.lacking(target) == []


async def test_tables_of_an_earlier_version_that_are_refused_are_brought_into_this_one(
    redis: Redis, database_url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    await migrations.apply(database_url)
    connection = await asyncpg.connect(database_url)
    await connection.execute("UPDATE context_builder_migrations SET digest = 'another'")
    await connection.execute("INSERT INTO context_builder_migrations (name, digest) VALUES ('016_unseen_sources', 'x')")
    await connection.execute("ALTER TABLE context_edges DROP COLUMN derived")
    await connection.execute("INSERT INTO context_edges VALUES ('acme', 'a', 'b', 'links_to')")
    await connection.close()
    with pytest.raises(DatabaseError, match="restore FILE"):
        await migrations.apply(database_url)
    await back_up(tmp_path / "old.backup", only(redis), database_url, quiet)
    target = postgres_server.create_database()
    await restore(tmp_path / "old.backup", only(redis), target, quiet)
    assert await migrations.apply(target) == []
    connection = await asyncpg.connect(target)
    assert [tuple(row) for row in await connection.fetch("SELECT from_ref, derived FROM context_edges")] == [
        ("a", False)
    ]
    await connection.close()
