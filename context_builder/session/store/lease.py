"""A lease names the process that runs a session, so that one that provably died can be told."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import psutil

_START_TICKS: Final = 19
"""Index of field 22, the start in ticks, among the fields after the process's name, which is the second."""


def this_holder(since: float) -> dict[str, Any]:
    """Return this process, as written into the lease; ``since`` is epoch seconds."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "since": since,
        **_machine(),
    }


def has_died(holder: Mapping[str, Any]) -> bool:
    """Return whether the holder ran on this very machine, boot and process namespace, and is gone.

    False when that cannot be known; the lease then runs out by itself.
    """
    machine = _machine()
    if any(not value or holder.get(name) != value for name, value in machine.items()):
        return False
    try:
        pid, started = int(holder["pid"]), float(holder["started"])
        return _started(pid) != started or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return not _is_hidden(pid)
    except (psutil.Error, OSError, KeyError, TypeError, ValueError, OverflowError):
        return False


def is_forgotten(holder: Mapping[str, Any]) -> bool:
    """Return whether this is not a holder but the mark of a forgotten session."""
    return bool(holder.get("forgotten"))


def describe(holder: Mapping[str, Any]) -> str:
    """Return the holder's name for people, such as ``process 4711 on lab-3``."""
    if is_forgotten(holder):
        return "nobody: the session was forgotten"
    return f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"


def _started(pid: int) -> float:
    """Return when the process began, to tell it from a later one with its id.

    On Linux in ticks since the boot (``proc_pid_stat(5)``), because epoch seconds change when the clock is set;
    elsewhere in epoch seconds.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return psutil.Process(pid).create_time()
    after_name = stat.rpartition(b")")[2]  # a name may have blanks and parentheses in it
    return int(after_name.split()[_START_TICKS])


def _is_hidden(pid: int) -> bool:
    """Return whether the process exists unseen: /proc mounted with ``hidepid`` hides those of other users."""
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


@cache
def _machine() -> dict[str, str]:
    """Return what must be equal for process ids to mean the same: the boot, and the process namespace."""
    try:
        return {
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "pid_namespace": os.readlink("/proc/self/ns/pid"),  # noqa: PTH115  # not a path, a name
        }
    except OSError:
        return {"boot": str(psutil.boot_time()), "pid_namespace": socket.gethostname()}
