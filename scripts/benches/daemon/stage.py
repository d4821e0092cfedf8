"""What the daemon is measured on: a Redis, a PostgreSQL and a model server of the bench's own, in a temporary home."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.engines.postgres import PostgresEngine
from context_builder.engines.redis_launch import REWRITING
from context_builder.settings.settings import PREFIX, definitions
from scripts.benches.daemon.observer import Observer
from scripts.benches.daemon.processes import CHECKOUT, PATIENCE, BenchError, Child, Surroundings
from tests.services.redis_server import RedisServer

LATENCY = {"keywords": 0.150, "domains": 0.400, "summary": 1.500}
"""Seconds in which the model server answers."""


@dataclass(frozen=True)
class Scale:
    """How much is measured; the defaults are the full bench.

    ``summary_window`` stands in for the 120 s of ``RAW_BUFFER_TIME_WINDOW``.
    """

    young_sessions: int = 8
    young_messages: int = 20
    old_session: int = 10_000
    old_messages: int = 300
    rate: float = 30.0
    conversations: int = 40
    bursts: int = 5
    backlog: int = 10_000
    backlogs: int = 3
    starts: int = 5
    silence: float = 10.0
    summary_window: float = 5.0
    sessions: int = 200


QUICK = Scale(
    young_sessions=1,
    old_session=2_500,
    old_messages=60,
    rate=50.0,
    conversations=6,
    bursts=1,
    backlogs=1,
    starts=1,
    silence=5.0,
    summary_window=3.0,
    sessions=50,
)


class Stage:
    """Everything but the daemons is started once; :meth:`daemon` starts one for one session."""

    def __init__(self, home: Path, redis_url: str, model_url: str) -> None:
        self.home = home
        self._model_url = model_url
        self._sessions = 0
        self.redis_url = redis_url

    def new_session(self) -> str:
        self._sessions += 1
        return f"bench-{self._sessions}"

    @contextmanager
    def daemon(
        self, session_id: str, *, model: bool = False, program: str = "context_builder", **settings: object
    ) -> Iterator[Child]:
        """The daemon of a session, ready; ``program`` is the module that it is."""
        with self.starting_daemon(session_id, model=model, program=program, **settings) as daemon:
            daemon.wait_for("session.ready")
            try:
                yield daemon
            except BenchError as error:
                raise BenchError(f"{error}; the daemon said last:\n{daemon.last_words}") from None

    def starting_daemon(
        self, session_id: str, *, model: bool = False, program: str = "context_builder", **settings: object
    ) -> Child:
        """The daemon of a session as soon as its process is there."""
        return Child(program, "run", session_id, within=self.surroundings(model=model, **settings))

    @contextmanager
    def observer(self, session_id: str) -> Iterator[Observer]:
        with Observer(self.redis_url, session_id) as observer:
            yield observer

    @contextmanager
    def model_server(self, latency: Mapping[str, float]) -> Iterator[str]:
        """The URL of another model server, which answers each task after so many seconds."""
        with _model_server(latency) as url:
            yield url

    def surroundings(self, *, model: bool = False, **settings: object) -> Surroundings:
        """Those in which nothing but the bench's own settings counts."""
        model_settings = {"openai_api_key": "bench", "openai_base_url": self._model_url} if model else {}
        wanted = {"redis_url": self.redis_url, "home": self.home, "log_format": "json"}
        wanted |= {"embedded_embeddings": "false", **model_settings, **settings}
        env = _environment_without_settings() | {PREFIX + name.upper(): str(value) for name, value in wanted.items()}
        return Surroundings(env, self.home)


@contextmanager
def open_stage() -> Iterator[Stage]:
    """The stage, and nothing of it left in the end."""
    with ExitStack() as stack:
        home = Path(tempfile.mkdtemp(prefix="context-builder-bench-"))
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        home.chmod(0o755)  # run by root, PostgreSQL is another user's process and has to get in
        (home / "redis").mkdir()
        options = chain.from_iterable((f"--{name}", value) for name, value in REWRITING.items())  # as embedded ones
        redis = RedisServer(home / "redis", *options)
        postgres = PostgresEngine(home, free_port())
        stack.callback(redis.kill)
        redis.start()
        stack.callback(postgres.stop)
        postgres.ensure()
        yield Stage(home, redis.url, stack.enter_context(_model_server(LATENCY)))


@contextmanager
def _model_server(latency: Mapping[str, float]) -> Iterator[str]:
    port = free_port()
    latencies = ",".join(f"{task}={1000 * seconds:g}" for task, seconds in latency.items())
    arguments = ("--port", str(port), "--latency-ms", latencies)
    with Child(
        "tests.services.model_server", *arguments, within=Surroundings(_environment_without_settings(), CHECKOUT)
    ):
        _wait_until_listening(port)
        yield f"http://{LOOPBACK}:{port}/v1"


def _environment_without_settings() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in definitions() and not name.startswith(PREFIX)
    }
    return kept | {"PYTHONPATH": str(CHECKOUT)}


def _wait_until_listening(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise BenchError(f"the model server does not listen on port {port}") from None
            time.sleep(0.02)
        else:
            return
