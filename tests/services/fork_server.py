"""Commands forked from a process that has imported everything: as real and as mortal as any, but begun at once.

The parent, ``python -m tests.services.fork_server``, takes one JSON line a command (``arguments``, ``environ``,
``folder``, ``output``, ``status``), answers with its process id, and writes its exit status to the file ``status``.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, NoReturn

from typer.main import get_command

import context_builder
from tests.services.waiting import PATIENCE

ROOT = Path(context_builder.__file__).parents[1]

IMPORTED = (
    *("asyncpg", "docket", "openai", "uvloop", "context_builder.analysis.openai", "context_builder.archive.postgres"),
    *("context_builder.fleet.worker", "context_builder.wiring.app", "context_builder.wiring.server"),
    *("context_builder.server.app", "context_builder.server.grpc.serving", "context_builder.server.page.app"),
)
"""What the commands import within database."""


class ForkedProcess:
    """One command, used as a :class:`subprocess.Popen`."""

    def __init__(self, pid: int, status: Path) -> None:
        self.pid = pid
        self._status = status

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        try:
            return int(self._status.read_text())
        except (FileNotFoundError, ValueError):  # it is about to be written
            return None

    def wait(self, timeout: float = PATIENCE) -> int:
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.005)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The parent of all commands of a run."""

    def __init__(self) -> None:
        self._asking = Lock()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.services.fork_server"], stdin=pipe, stdout=pipe, cwd=ROOT, text=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(
        self, arguments: Sequence[str], environ: Mapping[str, str], folder: Path, output: Path, status: Path
    ) -> ForkedProcess:
        """Begin ``context-builder ARGUMENTS`` with these variables and no others."""
        paths = {"folder": str(folder), "output": str(output), "status": str(status)}
        asked = {"arguments": [*arguments], "environ": dict(environ), **paths}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        sys.audit("os.fork")  # a test that may start no process may not have one started, either
        with self._asking:
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            return ForkedProcess(int(self._process.stdout.readline()), status)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@cache
def fork_server() -> ForkServer:
    """The one parent of all commands of this process of pytest."""
    server = ForkServer()
    atexit.register(server.close)
    return server


def main() -> None:
    """Fork for every line until the input ends."""
    from context_builder.cli import app
    from context_builder.tokens.counter import TokenCounter

    get_command(app)
    for name in IMPORTED:
        import_module(name)
    TokenCounter("").load()
    gc.freeze()  # a collection in a command would copy every page it shares with this process
    running: dict[int, str] = {}

    def reap(*_: object) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                Path(running.pop(ended[0])).write_text(str(os.waitstatus_to_exitcode(ended[1])))

    signal.signal(signal.SIGCHLD, reap)
    for line in sys.stdin:
        asked = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # until it is known
        pid = os.fork()
        if pid == 0:
            _become(asked)
        running[pid] = asked["status"]
        print(pid, flush=True)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _become(asked: dict[str, Any]) -> NoReturn:
    """Be the command from here on."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    output = os.open(asked["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.argv = ["context-builder", *asked["arguments"]]
    status = 1
    try:
        runpy.run_module("context_builder", run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 whatever it is, it is shown as the interpreter shows it
        traceback.print_exc()
    finally:  # at once, because what the parent has begun, such as threads, is not there to be ended
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
