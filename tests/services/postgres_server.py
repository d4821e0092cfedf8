"""A real PostgreSQL as a process of its own."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.postgres_programs import Programs, find_programs


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
        options = f"-p {self.port} -c listen_addresses={LOOPBACK} -c unix_socket_directories= -c fsync=off"
        log = str(self.folder / "server.log")
        self._programs.run("pg_ctl", "start", "-w", "-D", self._data, "-l", log, "-o", options)

    def stop(self) -> None:
        self._programs.run("pg_ctl", "stop", "-D", self._data, "-m", "immediate")

    def create_database(self) -> str:
        """The superuser's URL of a new, empty database."""
        name = next(self._names)
        self._programs.run("psql", "-X", "-q", "-d", self.url, stdin=f"CREATE DATABASE {name}")
        return self._url(name)

    @property
    def _programs(self) -> Programs:
        return find_programs(self.folder.parent, self.folder)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@{LOOPBACK}:{self.port}/{database}"
