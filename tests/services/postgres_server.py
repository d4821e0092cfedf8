"""A real PostgreSQL as a process of its own."""

from __future__ import annotations

from functools import cached_property
from itertools import count
from pathlib import Path

import asyncpg

from context_builder.database.migrations import apply
from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.postgres import Programs, find_programs
from tests.services.in_thread import in_thread
from tests.services.postgrest import make_project


class PostgresServer:
    """PostgreSQL on a free loopback port, its data in ``folder``; fast instead of durable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._data = str(folder / "data")
        self._names = (f"test_{number}" for number in count(1))

    @property
    def url(self) -> str:
        """The superuser's."""
        return self._url("postgres")

    dsn = url

    def start(self) -> None:
        self.folder.mkdir(mode=0o700)
        self._programs.run("initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync")
        options = f"-p {self.port} -c listen_addresses={LOOPBACK} -c unix_socket_directories="
        options += " -c fsync=off -c full_page_writes=off -c autovacuum=off"  # which visits each database in turn
        log = str(self.folder / "server.log")
        self._programs.run("pg_ctl", "start", "-w", "-D", self._data, "-l", log, "-o", options)

    def stop(self) -> None:
        self._programs.run("pg_ctl", "stop", "-D", self._data, "-m", "immediate")

    def create_database(self, *, migrated: bool = False) -> str:
        """The superuser's URL of a new database: empty, or with our tables in it."""
        template = f"TEMPLATE {self._migrated}" if migrated else ""
        name = next(self._names)
        in_thread(_execute(self.url, f"CREATE DATABASE {name} STRATEGY FILE_COPY {template}"))
        return self._url(name)

    @cached_property
    def _migrated(self) -> str:
        """The name of a database with our tables. Copies of it take a quarter of the time that migrations take.

        It is a Supabase project's, whose roles the migrations grant to where there are any.
        """
        url = self.create_database()
        in_thread(make_project(url))
        in_thread(apply(url))
        return url.rpartition("/")[2]

    @property
    def _programs(self) -> Programs:
        return find_programs(self.folder.parent, self.folder)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/{database}"


async def _execute(url: str, sql: str) -> None:
    """Execute a statement; a process of psql would take as long again as what it does."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
