"""The embedded PostgreSQL: the real server, on loopback, behind a password of its own."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from context_builder.engines.engine import LOOPBACK, Address, RecordedEngine, choose_port, free_port, keep_port
from context_builder.engines.home import exclusive, last_words, make_folder, write_private
from context_builder.engines.postgres_programs import Programs, find_programs
from context_builder.errors import EngineError

STANDARD_PORT: Final = 5432
ROLE: Final = "context_builder"
DATABASE: Final = "context_builder"

_CREATE_DATABASE: Final = rf"""
SELECT 'CREATE DATABASE {DATABASE}'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{DATABASE}') \gexec
"""  # noqa: S608 (only constants)

SHARED_BUFFERS: Final = 512
"""Megabytes that the cache of PostgreSQL grows to as it reads; an eighth of the memory where that is less. Searches of
200,000 memories by words and by meaning go through as many."""

_PID_LINE, _PORT_LINE = 0, 3  # of PostgreSQL's own record of a running server, postmaster.pid


class PostgresEngine(RecordedEngine):
    """Runs the PostgreSQL of one home folder. See :class:`~context_builder.engines.engine.Engine`.

    PostgreSQL records its process and port in its data folder itself. That record is believed
    when the server there accepts this home's password and names this home's data folder.
    """

    def __init__(self, home: Path, standard_port: int = STANDARD_PORT) -> None:
        self._home = home = home.absolute()
        self._folder = home / "postgres"
        self._data = self._folder / "data"
        self._log = self._folder / "server.log"
        self._password_file = home / "postgres.password"
        self._lock = home / "postgres.lock"
        self._port_file = home / "postgres.port"
        self._standard_port = standard_port

    def running(self) -> Address | None:
        record = self._recorded()
        if record is None or not self._password_file.exists():
            return None
        port = record[_PORT_LINE]
        programs = find_programs(self._home, self._folder)
        try:
            folder = self._query(programs, port, "SHOW data_directory")
        except EngineError:
            return None  # nobody there, or another server that does not know the password
        return self._address(port) if Path(folder).resolve() == self._data.resolve() else None

    def stop(self) -> bool:
        with exclusive(self._lock):
            if self.running() is None:
                return False
            programs = find_programs(self._home, self._folder)
            programs.run("pg_ctl", "stop", "-D", str(self._data), "-m", "fast", "-w")
            return True

    def _start(self) -> Address:
        programs = find_programs(self._home, make_folder(self._folder))
        if not self._data.exists():
            self._create(programs)
        elif not self._password_file.exists():
            raise EngineError(f"{self._password_file} is missing; restore it, or move {self._data} away")
        self._discard_stale_record()
        ports = choose_port(self._standard_port, self._port_file), free_port()  # the first may be snatched meanwhile
        for port in map(str, ports):
            options = f"-p {port} -c shared_buffers={_shared_buffers()}MB"
            try:
                programs.run(*("pg_ctl", "start", "-w", "-D", str(self._data), "-l", str(self._log), "-o", options))
            except EngineError:
                continue
            keep_port(self._port_file, int(port))
            self._query(programs, port, _CREATE_DATABASE)
            return self._address(port, started=True)
        raise EngineError(f"PostgreSQL did not start: {last_words(self._log)} (see {self._log})")

    def _create(self, programs: Programs) -> None:
        """Make the data folder, under another name until it is whole."""
        unfinished = self._folder / "data.creating"
        shutil.rmtree(unfinished, ignore_errors=True)
        password = self._folder / "password"
        write_private(password, self._password())
        if programs.owner:
            os.chown(password, programs.owner.uid, programs.owner.gid)
        programs.run(
            *("initdb", "-D", str(unfinished), "-U", ROLE, "--pwfile", str(password)),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
            *("--set", f"listen_addresses={LOOPBACK}", "--set", "unix_socket_directories="),
        )
        password.unlink()
        unfinished.rename(self._data)

    def _password(self) -> str:
        """Return this home's password, made up at first use."""
        if not self._password_file.exists():
            write_private(self._password_file, secrets.token_hex(16))
        return self._password_file.read_text()

    def _query(self, programs: Programs, port: str, sql: str) -> str:
        where = f"host={LOOPBACK} port={port} dbname=postgres user={ROLE}"
        options = ("-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", where)
        return programs.run("psql", *options, stdin=sql, password=self._password())

    def _address(self, port: str, *, started: bool = False) -> Address:
        url = f"postgresql://{ROLE}:{self._password()}@{LOOPBACK}:{port}/{DATABASE}"
        return Address(url, f"embedded PostgreSQL at {LOOPBACK}:{port}", started=started)

    def _recorded(self) -> list[str] | None:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return None
        return lines if len(lines) > _PORT_LINE and lines[_PID_LINE].isdecimal() else None

    def _discard_stale_record(self) -> None:
        """Remove the record of a dead server whose process number is not free.

        PostgreSQL itself clears one whose process is gone, but refuses to start when a process
        has that number, be it another program or the dead server that nobody has reaped.
        """
        import psutil

        record = self._recorded()
        if record is None:
            return
        try:
            process = psutil.Process(int(record[_PID_LINE]))
            alive = process.name().startswith("postgres") and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return
        if not alive:
            (self._data / "postmaster.pid").unlink(missing_ok=True)


def _shared_buffers() -> int:
    import psutil

    return min(SHARED_BUFFERS, psutil.virtual_memory().total // 8 // 2**20)
