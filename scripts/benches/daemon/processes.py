"""Processes of a bench: started in a session of their own, so that Ctrl-C reaches only the bench; ended by pid."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

CHECKOUT = Path(__file__).resolve().parents[3]
PATIENCE = 30.0
"""Seconds after which something that should have happened counts as failed."""


class BenchError(Exception):
    """The bench cannot go on: what was waited for, and what the process said last."""


@dataclass(frozen=True)
class Surroundings:
    """The environment and the folder that a process runs in."""

    env: Mapping[str, str]
    folder: Path


class Child:
    """A Python module run as a process, whose standard error is read as it comes.

    ``started`` is the monotonic moment of its start. Log events (JSON lines) are kept with the moment they arrived.
    """

    def __init__(self, module: str, *arguments: str, within: Surroundings) -> None:
        self._name = module
        self._happened: dict[str, float] = {}
        self._said: deque[str] = deque(maxlen=20)
        self._changed = threading.Condition()
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=within.env,
            cwd=within.folder,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, name=f"stderr of {module}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    @property
    def last_words(self) -> str:
        """The end of its standard error."""
        with self._changed:
            return "\n".join(self._said)

    def wait_for(self, event: str, timeout: float = PATIENCE) -> float:
        """The monotonic moment at which the first log event of that name arrived."""
        with self._changed:
            came = self._changed.wait_for(lambda: event in self._happened or not self._reader.is_alive(), timeout)
            if event in self._happened:
                return self._happened[event]
        why = f"said nothing of it within {timeout:g} s" if not came else "ended"
        raise BenchError(f"{self._name} was to log {event}, but {why}:\n{self.last_words}")

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for one that takes too long."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for raw in lines:
                now = time.monotonic()
                with self._changed:
                    self._said.append(raw.decode(errors="replace").rstrip())
                    self._happened.setdefault(_event(raw), now)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


def _event(line: bytes) -> str:
    try:
        logged: Any = json.loads(line)
    except ValueError:
        return ""
    return str(logged.get("event", "")) if isinstance(logged, dict) else ""


def output_of(module: str, arguments: Sequence[str], within: Surroundings) -> bytes:
    """What a module prints, run to its end."""
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(
            command, env=within.env, cwd=within.folder, capture_output=True, timeout=2 * PATIENCE, check=True
        )
    except subprocess.CalledProcessError as error:
        raise BenchError(f"{module} failed:\n{error.stderr.decode(errors='replace')}") from None
    except subprocess.TimeoutExpired:
        raise BenchError(f"{module} did not end within {2 * PATIENCE:g} s") from None
    return done.stdout
