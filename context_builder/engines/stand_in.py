"""A stand-in for Redis where no Redis server can be had: fakeredis on a port, in memory only."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from context_builder.engines.ports import LOOPBACK

WARNING: Final = "fakeredis stands in for Redis: nothing is kept when it stops; install redis-server or valkey"


_SERVE: Final = f"""
import sys
from fakeredis import TcpFakeServer
TcpFakeServer(({LOOPBACK!r}, int(sys.argv[1])), server_type="redis").serve_forever()
"""


def is_available() -> bool:
    """Whether fakeredis is installed together with the Lua it needs to run commits."""
    return find_spec("fakeredis") is not None and find_spec("lupa") is not None


def command(port: int, folder: Path) -> list[str]:
    """How it is started, and recognized: the folder tells one home's stand-in from another's."""
    return [sys.executable, "-c", _SERVE, str(port), str(folder)]


def is_running(pid: int, port: int, folder: Path) -> bool:
    """Whether that process is this home's stand-in; its command line says so."""
    import psutil

    try:
        return bool(psutil.Process(pid).cmdline()[1:] == command(port, folder)[1:])
    except psutil.Error:
        return False
