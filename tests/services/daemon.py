"""The real daemon as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Self

import context_builder
from tests.services.fork_server import ForkedProcess, fork_server
from tests.services.waiting import PATIENCE

ROOT = Path(context_builder.__file__).parents[1]


class Daemon:
    """``python -m context_builder ARGUMENTS`` in ``folder``, with the settings given and no others.

    As a context manager it is killed in the end, should it still run; where a test fails, what it printed is shown. It
    is forked from a process that has imported everything, unless its standard output or its ``PYTHONPATH`` is to be
    another one.
    """

    is_heard = True
    process: subprocess.Popen[bytes] | ForkedProcess

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        stdout: int | None = None,
        **settings: object,
    ) -> None:
        self.folder = folder
        self._output = self._opened()
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        chosen = {name.upper(): str(value) for name, value in settings.items()}
        home = {"CONTEXT_BUILDER_HOME": str(folder / "home"), "EMBEDDED_EMBEDDINGS": "false"}
        environ = {**inherited, "PYTHONPATH": str(ROOT), **home, **chosen}
        if stdout is None and self.is_heard and "PYTHONPATH" not in chosen:
            output, status = Path(self._output.name), Path(f"{self._output.name}.status")
            self.process = fork_server().fork(arguments, environ, folder, output, status)
            return
        self.process = subprocess.Popen(
            [sys.executable, "-m", "context_builder", *arguments],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=self._output if stdout is None else stdout,
            stderr=subprocess.STDOUT,
        )

    def _opened(self) -> IO[bytes]:
        """Where its output goes."""
        return tempfile.NamedTemporaryFile()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: object, *_: Any) -> None:
        if failed is not None:
            print(self.output[-5000:])
        self.kill()
        self._output.close()
        Path(f"{self._output.name}.status").unlink(missing_ok=True)

    @property
    def output(self) -> str:
        """Everything it printed so far."""
        return os.pread(self._output.fileno(), 1_000_000, 0).decode()

    @property
    def is_ready(self) -> bool:
        """Whether it says so; fails when it has ended instead."""
        ready = "session.ready" in self.output
        assert ready or self.process.poll() is None, self.output
        return ready

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit status, once it ends by itself."""
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        self.process.kill()
        self.process.wait(PATIENCE)


class UnheardDaemon(Daemon):
    """A daemon whose output goes into a pipe that nobody reads."""

    is_heard = False

    def _opened(self) -> IO[bytes]:
        reading, writing = os.pipe()
        os.close(reading)
        return os.fdopen(writing, "wb")
