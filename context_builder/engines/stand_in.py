"""A stand-in for Redis where no Redis server runs: fakeredis on a port, in memory only.

It runs as a process of its own, :mod:`~context_builder.engines.stand_in_server`, which imports fakeredis; this module
does not, so that looking whether there is one costs nothing.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

NAME: Final = "fakeredis"
WARNING: Final = f"{NAME} stands in for Redis: nothing is kept when it stops; install redis-server or valkey"


@dataclass(frozen=True, slots=True)
class StandInConfig:
    """Tells where the stand-in listens, who may log in, and as which user it runs, if not the present one.

    Without ``password_sha256`` everybody may; but for the visitor's, names are no part of a login here.
    """

    port: int
    password_sha256: str | None = None
    uid: int | None = None
    gid: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def is_available() -> bool:
    """Return whether fakeredis is installed together with the Lua it needs to run commits."""
    return find_spec("fakeredis") is not None and find_spec("lupa") is not None


def command(folder: Path) -> list[str]:
    """Return the command that starts it; the folder is only for who reads the list of processes."""
    return [sys.executable, "-m", f"{__name__}_server", str(folder)]
