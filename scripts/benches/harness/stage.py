"""What the daemon is measured on: a Redis, a PostgreSQL and a model server of the benchmark's own, in a temporary home.

Processes are started in a session of their own, so that Ctrl-C reaches the benchmark alone, and ended by pid.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import chain, cycle
from pathlib import Path
from typing import Any, Final, Self

import orjson
import redis

from context_builder.demo import load_demo
from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis_launch import REWRITING
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from context_builder.settings.settings import PREFIX, definitions
from scripts.benches.harness.report import BenchError
from tests.services.redis_server import RedisServer

CHECKOUT: Final = Path(__file__).resolve().parents[3]
MEGABYTE: Final = 2**20

PATIENCE: Final = 30.0
"""Seconds after which something that should have happened counts as failed."""

LATENCY: Final = {"keywords": 0.150, "domains": 0.400, "summary": 1.500}
"""Seconds in which the model server answers."""

TAIL_BYTES: Final = 4_096
"""Enough for everything that follows the lists in a state."""

_COUNTER: Final = re.compile(rb'"(pending_messages|highest_message_number|received_messages)":(\d+)')

State = dict[str, Any]


def wait_until(is_so: Callable[[], bool], what: str, patience: float = PATIENCE, poll: float = 0.05) -> float:
    """Return the monotonic moment at which it is so; raises :class:`BenchError` after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > deadline:
            raise BenchError(f"waited {patience:g} s until {what}")
        time.sleep(poll)
    return time.monotonic()


def demo_talk() -> Iterator[str]:
    """The demo's messages without the orchestrator's, over and over."""
    return cycle(said.text for said in load_demo() if said.speaker != CONSILIENCE)


class Child:
    """A Python module run as a process; the moment at which each of its log events (JSON lines) arrived is kept.

    ``started`` is the monotonic moment of its start.
    """

    def __init__(self, module: str, *arguments: str, env: Mapping[str, str], folder: Path) -> None:
        self._name = module
        self._happened: dict[str, float] = {}
        self._said: deque[str] = deque(maxlen=20)
        self._changed = threading.Condition()
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=env,
            cwd=folder,
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

    def wait_for(self, event: str, timeout: float = PATIENCE) -> float:
        """The monotonic moment at which the first log event of that name arrived."""
        with self._changed:
            came = self._changed.wait_for(lambda: event in self._happened or not self._reader.is_alive(), timeout)
            if event in self._happened:
                return self._happened[event]
        raise BenchError(f"{self._name} logged no {event} {'before it ended' if came else f'within {timeout:g} s'}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        """SIGTERM, then SIGKILL for one that takes too long; what it said last is added to a failure."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if isinstance(raised[1], BenchError):
            raised[1].add_note("\n".join([f"{self._name} said last:", *self._said]))

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


class Observer:
    """Speaks in one session as a listener does, and looks at it as a reader does; ``number`` is the last message's.

    It waits for Redis to tell that the state was written, so that waiting loads nobody, and then reads the counters at
    the end of the state. What this costs is measured by :meth:`own_cost`. ``text`` is what is said, if not the demo's.
    """

    def __init__(self, redis_url: str, session_id: str) -> None:
        self.keys = Keys(session_id)
        self.redis = redis.Redis.from_url(redis_url)
        self.number = 0
        self.text: str | None = None
        self.session_id = session_id
        self._said = demo_talk()
        self.redis.config_set("notify-keyspace-events", "K$")
        self._watching = redis.Redis.from_url(redis_url)
        self._written = self._watching.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self._written.subscribe(f"__keyspace@0__:{self.keys.state}")
        self._written.get_message(ignore_subscribe_messages=True, timeout=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._written.close()
        self._watching.close()
        self.redis.close()

    def push(self, messages: int = 1) -> float:
        """Say so much as fast as possible, a hundred things a round trip; the monotonic moment just before."""
        began = time.monotonic()
        for start in range(0, messages, 100):
            self.redis.lpush(self.keys.input, *(self._delivery() for _ in range(min(100, messages - start))))
        return began

    def _delivery(self) -> bytes:
        self.number += 1
        return orjson.dumps(
            {
                "session_id": self.session_id,
                "speaker": f"Speaker_{self.number % 3}",
                "text": next(self._said) if self.text is None else self.text,
                "timestamp": datetime.now().isoformat(),
                "confidence": 0.95,
                "message_number": self.number,
                "_score": float(self.number),
            }
        )

    def see_counter(self, name: str, value: int, timeout: float = PATIENCE) -> float:
        """The monotonic moment at which this counter of the state is so much."""

        def is_so() -> bool:
            tail: Any = self.redis.getrange(self.keys.state, -TAIL_BYTES, -1)
            counters = {found.decode(): int(count) for found, count in _COUNTER.findall(tail)}
            if tail and "highest_message_number" not in counters:
                raise BenchError(f"the state's last {TAIL_BYTES} bytes have no counters")
            return counters.get(name) == value

        return self._wait(f"{name} is {value}", is_so, timeout)

    def see_newest(self) -> float:
        """The moment at which the last message is visible."""
        return self.see_counter("highest_message_number", self.number)

    def see_state(self, what: str, is_so: Callable[[State], bool], *, timeout: float = PATIENCE) -> float:
        """The monotonic moment at which the whole state is as wanted."""
        return self._wait(what, lambda: is_so(self.state()), timeout)

    def state(self) -> State:
        return self._json(self.keys.state)

    def conversation_state(self) -> State:
        return self._json(self.keys.conversation)

    def _json(self, key: str) -> State:
        encoded: Any = self.redis.get(key)
        return dict(orjson.loads(encoded)) if encoded else {}

    def _wait(self, what: str, is_so: Callable[[], bool], timeout: float) -> float:
        deadline = time.monotonic() + timeout
        while not is_so():
            if time.monotonic() > deadline:
                raise BenchError(f"{self.session_id}: waited {timeout:g} s until {what}")
            self._written.get_message(timeout=0.5)
        return time.monotonic()

    def own_cost(self, samples: int) -> list[float]:
        """Seconds from writing a small state oneself to seeing it: the part of every figure that is measuring."""
        taken = []
        for number in range(1, samples + 1):
            began = time.monotonic()
            self.redis.set(self.keys.state, b'{"highest_message_number":%d}' % number)
            taken.append(self.see_counter("highest_message_number", number) - began)
        self.redis.delete(self.keys.state)
        return taken


def paced(messages: int, rate: float) -> Iterable[int]:
    """So many turns, at ``rate`` a second on average, with gaps that vary by half."""
    due = time.monotonic()
    for turn in range(messages):
        time.sleep(max(0.0, due - time.monotonic()))
        yield turn
        due = max(due, time.monotonic()) + (0.5 + (turn * 0.618) % 1) / rate


class Stage:
    """Everything but the daemons is started once; :meth:`daemon` starts one for one session."""

    def __init__(self, home: Path, redis_url: str, model_url: str) -> None:
        self.home = home
        self.redis_url = redis_url
        self._model_url = model_url
        self._sessions = 0

    def new_session(self) -> str:
        self._sessions += 1
        return f"bench-{self._sessions}"

    @contextmanager
    def daemon(
        self, session_id: str, *, model: bool = False, program: str = "context_builder", **settings: object
    ) -> Iterator[Child]:
        """The daemon of a session, ready; ``program`` is the module that it is."""
        with self.child(program, "run", session_id, model=model, **settings) as daemon:
            daemon.wait_for("session.ready")
            yield daemon

    def child(self, module: str, *arguments: str, model: bool = False, **settings: object) -> Child:
        """A process in whose environment nothing but the benchmark's own settings counts."""
        model_settings = {"openai_api_key": "bench", "openai_base_url": self._model_url} if model else {}
        wanted = {"redis_url": self.redis_url, "home": self.home, "log_format": "json"}
        wanted |= {"embedded_embeddings": "false", **model_settings, **settings}
        env = _environment_without_settings() | {PREFIX + name.upper(): str(value) for name, value in wanted.items()}
        return Child(module, *arguments, env=env, folder=self.home)

    def observer(self, session_id: str) -> Observer:
        return Observer(self.redis_url, session_id)


@contextmanager
def open_stage() -> Iterator[Stage]:
    """The stage, and nothing of it left in the end."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="context-builder-bench-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        home.chmod(0o755)  # run by root, PostgreSQL is another user's process and has to get in
        (home / "redis").mkdir()
        options = chain.from_iterable((f"--{name}", value) for name, value in REWRITING.items())  # as embedded ones
        redis_server = RedisServer(home / "redis", *options)
        postgres = PostgresEngine(home, free_port())
        stack.callback(redis_server.kill)
        redis_server.start()
        stack.callback(postgres.stop)
        postgres.ensure()
        yield Stage(home, redis_server.url, stack.enter_context(_model_server()))


@contextmanager
def _model_server() -> Iterator[str]:
    port = free_port()
    latencies = ",".join(f"{task}={1000 * seconds:g}" for task, seconds in LATENCY.items())
    arguments = ("--port", str(port), "--latency-ms", latencies)
    with Child("tests.services.model_server", *arguments, env=_environment_without_settings(), folder=CHECKOUT):

        def listens() -> bool:
            try:
                socket.create_connection((LOOPBACK, port), timeout=1).close()
            except OSError:
                return False
            return True

        wait_until(listens, f"the model server listens on port {port}")
        yield f"http://{LOOPBACK}:{port}/v1"


def _environment_without_settings() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in definitions() and not name.startswith(PREFIX)
    }
    return kept | {"PYTHONPATH": str(CHECKOUT)}
