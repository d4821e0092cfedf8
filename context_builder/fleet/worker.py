"""A worker of a fleet runs docket tasks, one a session.

Docket delivers a task again when its worker died, limits how many run, and keeps one task a session, whoever discovers
it. Who may write is not docket's to say: a session's lease fences its commits, so a task that is delivered twice costs
a worker that waits, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import orjson
import structlog
from docket import Docket, Retry, Worker
from docket.dependencies import CompletionHandler, TaskOutcome
from docket.execution import Execution
from redis.asyncio import BlockingConnectionPool, ConnectionPool, Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.fleet.config import FleetConfig
from context_builder.fleet.discovery import Discovery
from context_builder.fleet.process import WorkloadMeter
from context_builder.fleet.runner import RunResult, SessionRunner
from context_builder.fleet.sleepers import Sleepers
from context_builder.session.arrivals import Arrivals
from context_builder.session.config import SessionConfig
from context_builder.session.failures import reason_of
from context_builder.session.session import Session
from context_builder.storage.redis import GREETING
from context_builder.storage.redis_availability import translated

NAME: Final = "context_builder_fleet"
"""Name of the docket, and prefix of its keys; no key of a session has it."""

TASK: Final = "run_session"

REDELIVERY: Final = timedelta(seconds=2)
"""A worker that renews nothing for so long is dead or frozen. Docket looks every quarter of that."""

LEASE: Final = 3.0
"""Seconds that a session's lease lives in a fleet: it has run out, or nearly, when docket delivers its task again."""

LEAVE: Final = 5.0
"""Seconds that docket may take to end once the worker is to stop; if it takes longer, it waits for a frozen Redis."""

POLL: Final = timedelta(milliseconds=100)
HEARTBEAT: Final = timedelta(seconds=1)
MISSED_HEARTBEATS: Final = 3
CONNECTIONS: Final = 32
"""Connections that docket may open for commands, and as many for subscriptions. Each task uses one for moments, but a
thousand that begin together would open a thousand: more than Redis (``maxclients``) or the process (open files) has."""

BATCH: Final = 100
"""Sessions that a worker takes at once, so that several share what comes at once."""

AWAY_AFTER: Final = 2
"""Failed heartbeats after which a server is logged as away: a single one may have met a connection that died before."""

WORKLOAD: Final = "context_builder_fleet:workload:"
"""Prefix of strings: each worker's load in JSON. Live :data:`WORKLOAD_MS`."""

WORKLOAD_MS: Final = 5000

AWAY: Final = timedelta(seconds=0.5)
"""Wait before a session is run again that was begun while Redis was away."""

RETRY: Final = timedelta(seconds=10)
"""Wait before a session is run again that could not be run."""

SOMEBODYS: Final = timedelta(seconds=LEASE)
"""Wait before a session is waited for that somebody else has: workers that are slow to start would take it from each
other for ever."""

LEFT_ALONE: Final = 5.0
"""Seconds that sessions wait for a worker, all of which are overloaded, until those take some all the same."""

TAKEN_ALL_THE_SAME: Final = 10
"""Sessions that an overloaded worker then takes between two looks."""

log = structlog.get_logger(__name__)


def worker_name(host: str, pid: int | str) -> str:
    """Return the name of the worker that is process ``pid`` on ``host``."""
    return f"{host}#{pid}"


def open_docket(url: str) -> Docket:
    """Return the fleet's docket on the Redis at ``url``, to be entered. It opens few connections, and waits for one."""
    docket = Docket(NAME, url, heartbeat_interval=HEARTBEAT, missed_heartbeats=MISSED_HEARTBEATS)
    connection: Any = docket._redis
    made = connection._connection_pool_from_url

    async def bounded(**options: Any) -> ConnectionPool:
        pool: ConnectionPool = await made(**{**options, "protocol": GREETING["protocol"]})
        pool.connection_kwargs |= GREETING
        if type(pool) is not ConnectionPool:
            return pool  # Sentinel's
        kwargs = {"connection_class": pool.connection_class, **pool.connection_kwargs}
        return BlockingConnectionPool(max_connections=min(CONNECTIONS, pool.max_connections), **kwargs)

    connection._connection_pool_from_url = bounded
    return docket


class FleetWorker:
    """Discovers the sessions of a Redis server, and runs those that docket gives it.

    ``session_of`` makes a session of its id, whose lease should live :data:`LEASE` seconds. ``url`` leads docket to the
    same Redis as ``redis``, whose name is ``server``; ``arrivals`` hear what is pushed there. While ``meter`` finds the
    process overloaded, it takes no more, but those that every worker leaves alone.
    """

    def __init__(
        self,
        server: str,
        url: str,
        redis: Redis,
        session_of: Callable[[str], Session],
        config: FleetConfig,
        rules: SessionConfig,
        meter: WorkloadMeter,
        arrivals: Arrivals,
    ) -> None:
        self.name = worker_name(socket.gethostname(), os.getpid())
        self.server = server
        self._redis = redis
        self._config = config
        self._meter = meter
        self._docket = open_docket(url)
        self._sleepers = Sleepers(redis, self.name, rules.conversation_state_ttl)
        self._waiting = 0
        self._waits_since: float | None = None
        self._runner = SessionRunner(redis, session_of, self._sleepers, config.sleep, lambda: self._waiting)
        here, keep_last = self._runner.__contains__, rules.summary_keep_last
        self._discovery = Discovery(redis, config.scan, self._start, here, arrivals, keep_last=keep_last)
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_served(self) -> bool:
        """Return whether Redis takes the commits of all sessions that run here."""
        return self._runner.is_served

    async def run(self, stop: asyncio.Event) -> None:
        """Run sessions until ``stop`` is set; then hand each over at a commit. Redis is waited for while it is away."""
        _tame_logging()
        async with translated():
            await self._docket.__aenter__()
        try:
            self._docket.register(_session_task(self._runner, self._start), [TASK])
            async with asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(self._discovery.run(), name="fleet.discovery"),
                    tasks.create_task(self._sleepers.keep_fresh(self._start), name="fleet.sleepers"),
                    tasks.create_task(self._runner.put_to_sleep(), name="fleet.put_to_sleep"),
                ]
                await self._work(tasks, stop)
                for task in beside:
                    task.cancel()
        finally:
            await self._docket.__aexit__(None, None, None)

    async def _work(self, tasks: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        docket_worker = Worker(
            self._docket,
            self.name,
            self._config.concurrency,
            REDELIVERY,
            reconnection_delay=timedelta(seconds=0.5),
            minimum_check_interval=POLL,
            schedule_automatic_tasks=False,
            message_batch=BATCH,
        )
        async with docket_worker:
            serving = tasks.create_task(docket_worker.run_forever(), name="fleet.docket")
            telling = tasks.create_task(self._tell_workload(docket_worker), name="fleet.workload")
            log.info("fleet.ready", worker=self.name, server=self.server)
            try:
                await stop.wait()
            finally:
                telling.cancel()
                self._runner.drain()  # and the worker stops reading, at once
                # None of the tasks: those are cancelled only once when the worker is.
                self._ending = asyncio.create_task(self._end(serving), name="fleet.end")
        log.info("fleet.stopped", worker=self.name, server=self.server)

    async def _end(self, serving: asyncio.Task[None]) -> None:
        """End docket's loop, which waits without bound for a Redis that is frozen.

        It waits for a read, for tasks that it retries, and to say goodbye.
        """
        await asyncio.wait([serving], timeout=LEAVE)
        if not serving.done():
            log.warning("fleet.server_silent", server=self.server)
        while not serving.done():
            serving.cancel()
            await asyncio.wait([serving], timeout=1.0)

    async def _tell_workload(self, docket_worker: Worker) -> None:
        """Publish how busy this process is, and take no session while it is overloaded and others may, for ever.

        As this is done each second, here is also told that the server is away, and that it is back.
        """
        vain = 0
        while True:
            workload = self._meter.now
            most = 0 if workload.overloaded else self._config.concurrency
            try:
                async with translated():
                    await self._redis.set(WORKLOAD + self.name, orjson.dumps(workload.as_json()), px=WORKLOAD_MS)
                    is_full = len(self._runner) >= self._config.concurrency
                    self._waiting = await self._count_waiting() if is_full else 0
                    if workload.overloaded and await self._are_left_alone():
                        most = min(self._config.concurrency, len(self._runner) + TAKEN_ALL_THE_SAME)
            except StoreUnavailable as error:
                vain += 1
                if vain == AWAY_AFTER:
                    log.warning("fleet.server_away", server=self.server, error=str(error))
            except StoreError as error:
                log.warning("fleet.workload_not_told", server=self.server, error=str(error))
            else:
                if vain >= AWAY_AFTER:
                    log.info("fleet.server_back", server=self.server)
                vain = 0
            docket_worker.concurrency = most
            await asyncio.sleep(HEARTBEAT.total_seconds())

    async def _are_left_alone(self) -> bool:
        """Return whether there have been sessions for some time that no worker takes, of a worker that died, too."""
        stream, group = self._docket.stream_key, self._docket.worker_group_name
        waiting = await self._count_waiting()
        if not waiting:
            idle = int(2 * REDELIVERY.total_seconds() * 1000)
            waiting = len(await self._redis.xpending_range(stream, group, "-", "+", 1, idle=idle))
        now = time.monotonic()
        self._waits_since = (self._waits_since or now) if waiting else None
        return self._waits_since is not None and now - self._waits_since >= LEFT_ALONE

    async def _count_waiting(self) -> int:
        """Return how many sessions no worker has a place for: docket's entries that were given to none."""
        stream, group = self._docket.stream_key, self._docket.worker_group_name
        entries, given = await self._redis.xlen(stream), await self._redis.xpending(stream, group)
        return max(0, int(entries) - int(given["pending"]))

    async def _start(self, session_ids: Collection[str]) -> None:
        """Give docket the sessions; those that it has already stay as they are."""
        async with translated():
            await self._docket.add_many(
                [self._docket.call(TASK, key=f"session:{session_id}")(session_id) for session_id in session_ids]
            )


async def run_workers(workers: Sequence[FleetWorker], stop: asyncio.Event) -> None:
    """Run the workers of a process, one for each Redis server, until ``stop`` is set.

    Each waits for its own server, so that one that is away stops its sessions alone.
    """
    async with asyncio.TaskGroup() as tasks:
        for worker in workers:
            tasks.create_task(worker.run(stop), name=f"fleet.worker {worker.server}")


class _LookAgain(CompletionHandler["_LookAgain"]):
    """Starts a session again that was pushed to while it left: until its task was over, nobody else could.

    ``worker_lifecycle``, which docket finds on it, is around the loop that takes tasks. When that ends, because Redis
    was away for a moment, docket waits for the tasks that run before it begins another one; so they have to end, and
    none may begin.
    """

    def __init__(self, runner: SessionRunner, start: Callable[[Collection[str]], Any]) -> None:
        self._runner = runner
        self._start = start

    async def __aenter__(self) -> _LookAgain:
        return self

    async def on_complete(self, execution: Execution, outcome: TaskOutcome) -> bool:
        del outcome
        await execution.mark_as_completed()
        (session_id,) = execution.args
        if await self._runner.has_input(session_id):
            await self._start([session_id])
        return True


def _session_task(runner: SessionRunner, start: Callable[[Collection[str]], Any]) -> Callable[..., Any]:
    """Return the docket task that runs a session with this ``runner``."""

    class LookAgain(_LookAgain):
        @classmethod
        @asynccontextmanager
        async def worker_lifecycle(cls, docket: Docket, worker: Worker) -> AsyncIterator[None]:
            del docket, worker
            await runner.open()
            try:
                yield
            finally:
                runner.hand_over()

    async def run_session(
        session_id: str,
        retry: Retry = Retry.forever(),  # noqa: B008 (docket reads its dependencies there)
        look_again: _LookAgain = LookAgain(runner, start),  # noqa: B008
    ) -> None:
        del look_again
        wait = timedelta(0)
        try:
            result = await runner.run(session_id)
            if result is RunResult.DONE:
                return
            if result is RunResult.LOST:
                wait = SOMEBODYS
        except StoreUnavailable:  # whom another worker may reach
            wait = AWAY
        except Exception as error:  # noqa: BLE001 a session that fails leaves the others alone
            again_in = RETRY.total_seconds()
            log.error("fleet.session_failed", session_id=session_id, error=reason_of(error), again_in=again_in)
            wait = RETRY
        retry.after(wait)  # whoever is free has it next

    return run_session


class _Forwarded(logging.Handler):
    """Logs docket's warnings as our events, without their exceptions; the worker itself logs that Redis is away."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().splitlines()[0]
        if message.startswith("Redis "):
            tell = log.debug
        else:
            tell = log.error if record.levelno >= logging.ERROR else log.warning
        tell("fleet.docket", message=message)


def _tame_logging() -> None:
    """Forward docket's warnings; its retries, which are how sessions are handed over, are told by us."""
    logger = logging.getLogger("docket")
    logger.handlers, logger.propagate = [_Forwarded(logging.WARNING)], False
    logging.getLogger("docket.dependencies").setLevel(logging.CRITICAL)
