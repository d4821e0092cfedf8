"""Who holds a session's lease, and whether that process provably died."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil


def this_holder(since: float) -> dict[str, Any]:
    """This process, as written into the lease; ``since`` is epoch seconds."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "since": since,
        **_machine(),
    }


def has_died(holder: Mapping[str, Any]) -> bool:
    """Whether the holder ran on this very machine, boot and process namespace, and is gone.

    False when that cannot be known; the lease then runs out by itself.
    """
    machine = _machine()
    if any(not value or holder.get(name) != value for name, value in machine.items()):
        return False
    try:
        process = psutil.Process(int(holder["pid"]))
        return process.create_time() != holder["started"] or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False


def describe(holder: Mapping[str, Any]) -> str:
    """For people, such as ``process 4711 on lab-3``."""
    if holder.get("forgotten"):
        return "nobody: the session was forgotten"
    return f"process {holder.get('pid', '?')} on {holder.get('host', '?')}"


def _machine() -> dict[str, str]:
    """What must be equal for process ids to mean the same: the boot, and the process namespace."""
    try:
        return {
            "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            "pid_namespace": os.readlink("/proc/self/ns/pid"),  # noqa: PTH115  # not a path, a name
        }
    except OSError:
        return {"boot": str(psutil.boot_time()), "pid_namespace": socket.gethostname()}
