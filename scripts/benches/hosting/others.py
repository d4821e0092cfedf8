"""How much of the machine others used meanwhile: figures taken beside much other work are no figures of the program."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

LOOK_SECONDS: Final = 2.0


class Others:
    """Measures from now on the cores that neither the bench nor what it has started uses.

    ``home`` is the folder of the PostgreSQL that the bench has started, which is no child of it.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._began = time.monotonic()
        self._first = _busy() - self._own()

    def cores(self) -> float:
        """Return how many cores others have used since the beginning, on average."""
        return max(0.0, (_busy() - self._own() - self._first) / (time.monotonic() - self._began))

    def _own(self) -> float:
        return used_with_children(os.getpid()) + used_by_postgres(self._home)


def used_with_children(pid: int) -> float:
    """Return the processor seconds that the process and all that it has started have used; none if it is gone."""
    used = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                used += times.user + times.system + times.children_user + times.children_system
    return used


def used_by_postgres(home: Path) -> float:
    """Return the processor seconds that the PostgreSQL of the folder has used; none if it does not run."""
    with suppress(OSError, ValueError):
        return used_with_children(int((home / "postgres/data/postmaster.pid").read_text().splitlines()[0]))
    return 0.0


def _busy() -> float:
    """Seconds that the cores have not been idle."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def wait_for_quiet(home: Path, cores: float, patience: float) -> float:
    """Wait until others use less than so many cores, or for so long; return what they used last."""
    deadline = time.monotonic() + patience
    while True:
        others = Others(home)
        time.sleep(LOOK_SECONDS)
        if (used := others.cores()) < cores or time.monotonic() > deadline:
            return used
