"""A backup takes every session as it is at one moment, and then the database as it is at one moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from context_builder.backup.container import BackupWriter
from context_builder.backup.sessions import session_lines, write_shared_counts
from context_builder.backup.tables import connected, read_table, tables
from context_builder.session.servers import SessionServers
from context_builder.session.store.session_copy import read_shared

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
