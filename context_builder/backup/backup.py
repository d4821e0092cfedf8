"""A backup takes every session as it is at one moment, and then the database as it is at one moment.

A restore reads the whole file first; then it fills empty engines, or none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from redis.asyncio import Redis

from context_builder.backup.container import BackupReader, BackupWriter
from context_builder.backup.sessions import (
    OnSession,
    SessionPosition,
    read_shared_counts,
    restore_sessions,
    session_lines,
    write_shared_counts,
)
from context_builder.backup.tables import (
    MIGRATIONS_TABLE,
    check_tables,
    clear,
    connected,
    filled,
    forget_migrations,
    read_table,
    tables,
    trim,
    write_tables,
)
from context_builder.database.migrations import apply, digests
from context_builder.errors import BackupError
from context_builder.session.keys import Keys
from context_builder.session.servers import SessionServer, SessionServers
from context_builder.session.store.lease import describe
from context_builder.session.store.registry import SessionRegistry
from context_builder.session.store.session_copy import SharedCounts, read_shared, restore_shared

SESSIONS: Final = "sessions.jsonl"


async def back_up(path: Path, servers: SessionServers, url: str, told: Callable[[str], None]) -> None:
    """Write all sessions and all tables into a new file. Sessions go on meanwhile.

    Sessions come first: what one hands to the database after its copy was taken is left out again by the restore, and
    what waits in the copy is delivered then, once. A session that is forgotten meanwhile is not restored.
    """
    count = 0

    def counted(_: str) -> None:
        nonlocal count
        count += 1
        if count % 100 == 0:
            told(f"sessions: {count}")

    with BackupWriter(path) as writer:
        before = [await read_shared(server.redis) for server in servers]
        with writer.member(SESSIONS) as stream:
            for number, server in enumerate(servers):
                async for line in session_lines(server.redis, number, told=counted, left_out=told):
                    stream.write(line)
        told(f"sessions: {count}")
        described: dict[str, Any] = {}
        async with (
            connected(url) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            for table in await tables(connection):
                with writer.member(table.name) as stream:

                    async def write(data: bytes, stream: IO[bytes] = stream) -> None:
                        stream.write(data)

                    described[table.name] = await read_table(connection, table, write)
                if described[table.name]["rows"]:
                    told(f"{table.name}: {described[table.name]['rows']} rows")
        after = [await read_shared(server.redis) for server in servers]
        forgotten = [
            {mark.decode("latin-1") for mark, value in now.marks.items() if then.marks.get(mark) != value}
            for then, now in zip(before, after, strict=True)
        ]
        writer.notes.update(
            created=time.time(),
            tables=described,
            servers=[
                {
                    "name": server.name,
                    "tenant": server.tenant_id,
                    "forgotten": sorted(gone),
                    **write_shared_counts(counts),
                }
                for server, gone, counts in zip(servers, forgotten, after, strict=True)
            ],
        )


@dataclass(frozen=True, slots=True)
class BackedUpServer:
    """Describes a Redis as the backup has it; ``forgotten`` are fields of sessions forgotten while it was made."""

    name: str
    tenant_id: str
    forgotten: frozenset[str]
    counts: SharedCounts


@dataclass(frozen=True, slots=True)
class Restored:
    """Counts what was restored; ``migrations`` are those applied afterwards."""

    sessions: int
    rows: int
    migrations: list[str]


async def restore(
    path: Path, servers: SessionServers, url: str, told: Callable[[str], None], *, force: bool = False
) -> Restored:
    """Restore the file into Redis and a database that are empty, or with ``force`` in place of what they hold.

    The database is filled in one transaction, which ends once all sessions are in their places; when anything fails
    before, those are taken out again. Raises :class:`BackupError` before anything was changed for a file that is
    damaged, none, or of a newer version, and for engines that are not empty.
    """
    with _naming(path), BackupReader(path) as reader:
        reader.verify()
        told("the file is whole")
        held = _servers(reader.manifest)
        described = check_tables(reader.manifest.get("tables"))
        if {*reader.manifest["members"]} != {SESSIONS, *described}:
            raise BackupError("is damaged: its parts are not its sessions and tables")
        listed: list[dict[str, Any]] = []
        left_out: set[str] = set()

        def look(session_id: str, server: int, at: SessionPosition) -> None:
            if Keys(session_id).forgotten_field in held[server].forgotten:
                left_out.add(session_id)
            else:
                listed.append(_trimmed_after(session_id, held[server].tenant_id, at))

        await _read(reader, None, len(held), frozenset(), look)
        had = _migrations_of(reader, described)
        places = _places(held, servers)
        await _check_sessions(servers, force=force)
        await apply(url)
        async with connected(url) as connection:
            if (rows := await filled(connection)) and not force:
                raise BackupError(
                    f"the database is not empty: {', '.join(rows[:3])} has rows; restore into an empty one, or replace "
                    "what it holds with --force"
                )
            async with connection.transaction():
                if force:
                    await clear(connection)
                await write_tables(connection, described, reader.parts, told)
                await forget_migrations(connection, had)
                await trim(connection, listed)
                await _put_sessions(reader, held, places, servers, frozenset(left_out), force=force)
                told(f"sessions: {len(listed)}")
        applied = await apply(url)
        return Restored(
            len(listed), sum(one["rows"] for name, one in described.items() if name != MIGRATIONS_TABLE), applied
        )


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Say of which file it is that something cannot be restored."""
    try:
        yield
    except BackupError as error:
        raise BackupError(f"{path}: {error}") from None


def _servers(manifest: Mapping[str, Any]) -> list[BackedUpServer]:
    try:
        return [
            BackedUpServer(
                str(one["name"]), str(one["tenant"]), frozenset(map(str, one["forgotten"])), read_shared_counts(one)
            )
            for one in manifest["servers"]
        ]
    except (KeyError, TypeError):
        raise BackupError("the description of its Redis servers cannot be read") from None


def _migrations_of(reader: BackupReader, described: Mapping[str, Any]) -> list[str]:
    """Return the names of the migrations that the database had. Raises :class:`BackupError` for a newer version's.

    A database with another text of one that we know was of an earlier version, whatever its others are called.
    """
    columns = described.get(MIGRATIONS_TABLE, {"columns": ()})["columns"]
    if not {"name", "digest"} <= {*columns}:
        raise BackupError("does not say which migrations its database had")
    with closing(reader.parts(MIGRATIONS_TABLE)) as parts:
        text = next(parts, b"").decode("utf-8", "replace")
    fields = [dict(zip(columns, line.split("\t"), strict=False)) for line in text.splitlines()]
    had, ours = {one.get("name", ""): one.get("digest") for one in fields}, digests()
    newer = sorted(had.keys() - ours)
    if newer and all(had[name] == ours[name] for name in had.keys() & ours):
        raise BackupError(
            f"version {reader.manifest.get('version')} wrote it, whose database has {newer[0]}; "
            "this version does not know that: upgrade first"
        )
    return [*had]


def _places(held: list[BackedUpServer], servers: SessionServers) -> dict[int, Redis]:
    """Return where the sessions of each server come to: the server of its name, else one of the same tenant."""
    present = [*servers]
    places = {}
    for number, one in enumerate(held):
        tenants = [server for server in present if server.tenant_id == one.tenant_id]
        same = [server for server in tenants if server.name == one.name]
        if not tenants:
            raise BackupError(
                f"sessions of tenant {one.tenant_id!r} have no Redis here: set TENANT_ID, or REDIS_URLS with tenant="
            )
        places[number] = (same or tenants)[0].redis
    return places


async def _check_sessions(servers: SessionServers, *, force: bool) -> None:
    sessions = await servers.sessions()
    for session in sessions:
        if session.owner is not None:
            raise BackupError(f"session {session.session_id} is run by {describe(session.owner)}; stop it first")
    if sessions and not force:
        named = ", ".join(session.session_id for session in sessions[:3])
        raise BackupError(
            f"Redis is not empty: there are {len(sessions)} sessions ({named}); restore into an empty one, or replace "
            "what it holds with --force"
        )


async def _put_sessions(
    reader: BackupReader,
    held: list[BackedUpServer],
    places: Mapping[int, Redis],
    servers: SessionServers,
    left_out: frozenset[str],
    *,
    force: bool,
) -> None:
    if force:
        for server in servers:
            await _forget_all(server)
    put: list[tuple[str, int]] = []
    try:
        for number, one in enumerate(held):
            await restore_shared(places[number], one.counts)
        await _read(reader, places, len(held), left_out, lambda session_id, server, _: put.append((session_id, server)))
    except BaseException:
        for session_id, number in put:
            await SessionRegistry(places[number]).forget(session_id)
        raise


async def _forget_all(server: SessionServer) -> None:
    registry = SessionRegistry(server.redis)
    for session in await registry.sessions():
        await registry.forget(session.session_id)


async def _read(
    reader: BackupReader,
    places: Mapping[int, Redis] | None,
    count: int,
    left_out: frozenset[str],
    done: OnSession,
) -> None:
    with closing(reader.lines(SESSIONS)) as lines:
        await restore_sessions(lines, places, count, left_out=left_out, done=done)


def _trimmed_after(session_id: str, tenant_id: str, at: SessionPosition) -> dict[str, Any]:
    return {
        "tenant": tenant_id,
        "session": session_id,
        "message": at.message,
        "summary": at.summary,
        "point": at.point,
    }
