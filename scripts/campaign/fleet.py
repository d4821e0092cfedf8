"""A fleet under faults: workers that run sessions of several Redis servers, which each reaches over its own links."""

from __future__ import annotations

import asyncio
import math
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from redis.exceptions import RedisError

from context_builder.fleet.sleepers import POSTPONED
from scripts.campaign.account import Account, hostile_name
from scripts.campaign.audit import Places
from scripts.campaign.daemon import ROOT, SETTINGS, Daemon, command
from scripts.campaign.deck import Deck
from scripts.campaign.lane import Stuck
from scripts.campaign.ownership import OwnershipWatch
from scripts.campaign.redis_host import RedisHost
from scripts.campaign.tally import Tally
from scripts.campaign.world import World
from tests.services.link import Link

PATIENCE = 60.0
"""Seconds within which everything must have recovered: a busy machine starts workers slowly."""

SURELY = 10.0
"""Seconds after which the lease of a worker that was killed has run out, and what still runs is seen to run."""

PUSHES_TOLD = ("--notify-keyspace-events", "El")
SLEEP = {"SESSION_SLEEP": "6"}
"""Sessions sleep between two bursts of talk."""

MOVING = 3.0
"""Seconds after which all sessions that a fault set in motion have left their owners."""

AUDITED = 8
"""Sessions that are looked at after a fault."""


@dataclass(frozen=True)
class FleetPlan:
    """How much of everything; ``deadline`` on the monotonic clock ends faults and talk early."""

    seed: str
    kills: float
    messages: int
    rate: float
    deadline: float
    workers: int = 3
    sessions: int = 60
    servers: int = 2
    mutation: str | None = None
    patience: float = PATIENCE


class FleetSession(Account):
    """One session of the fleet."""

    patience = PATIENCE

    async def published_again(self) -> None:
        deadline = time.monotonic() + self.patience
        while (await self.places()).is_being_published:
            if time.monotonic() > deadline:
                raise Stuck(f"{self.session_id} publishes what is no longer in its buffer")
            await asyncio.sleep(0.05)


class FleetWorkerProcess:
    """One worker, whatever process it is at present; ``links`` lead it to each Redis server."""

    def __init__(self, name: str, links: Sequence[Link], daemon: Daemon) -> None:
        self.name = name
        self.links = links
        self.daemon = daemon


class Fleet:
    """Workers, sessions and servers; what a fault reaches."""

    def __init__(self, world: World, hosts: Sequence[RedisHost], tally: Tally, plan: FleetPlan) -> None:
        self.world = world
        self.hosts = hosts
        self.tally = tally
        self.rng = random.Random(f"{plan.seed}/fleet/faults")
        self._plan = plan
        self.sessions = [self._session(number) for number in range(plan.sessions)]
        self.workers: list[FleetWorkerProcess] = []
        self.watch = OwnershipWatch([(host, [one.session_id for one in self.on(host)]) for host in hosts], tally)
        self.bystanders: set[int] = set()

    def _session(self, number: int) -> FleetSession:
        talk = random.Random(f"{self._seed(number)}/talk")
        host = self.hosts[number % len(self.hosts)]
        session = FleetSession(self.world, host, self.tally, hostile_name("fleet", number), talk, crowded=False)
        session.patience = self._plan.patience
        return session

    def _seed(self, number: int) -> str:
        return f"{self.tally.seed}/{number}"

    def on(self, host: RedisHost) -> list[FleetSession]:
        """The sessions of a server."""
        return [one for one in self.sessions if one.host is host]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All workers, whose processes are gone afterwards."""
        async with AsyncExitStack() as stack:
            for number in range(self._plan.workers):
                links = [await stack.enter_async_context(Link(host.port).opened()) for host in self.hosts]
                name = f"worker-{number + 1}"
                daemon = Daemon(name, command(self._plan.mutation, "fleet"), self._environ(links), self.world.folder)
                stack.push_async_callback(daemon.kill)
                self.workers.append(FleetWorkerProcess(name, links, daemon))
            watching = asyncio.create_task(self.watch.run(), name="ownership")
            try:
                self.start_all()
                yield
            finally:
                watching.cancel()

    def _environ(self, links: Sequence[Link]) -> dict[str, str]:
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "EMBEDDED_EMBEDDINGS": "false", **SETTINGS, **SLEEP}
        environ |= self.world.environ(links[0])
        del environ["REDIS_URL"]
        return environ | {"REDIS_URLS": " ".join(f"redis://127.0.0.1:{link.port}/0" for link in links)}

    def start_all(self) -> None:
        """Start the workers that do not run."""
        for worker in self.workers:
            if worker.daemon.status is not None:
                worker.daemon.start()

    async def kill(self, worker: FleetWorkerProcess) -> None:
        """SIGKILL."""
        if worker.daemon.status is None:
            await worker.daemon.kill()
            self.tally.kills += 1

    async def pause(self, longest: float) -> None:
        await asyncio.sleep(self.rng.uniform(0, longest))

    def run_by(self, worker: FleetWorkerProcess) -> set[str]:
        """The sessions that a worker's process runs."""
        pid = worker.daemon.pid
        return {name for name, seen in self.watch.owned.items() if seen.pid == pid}

    @property
    def pids(self) -> set[int]:
        """Processes that run, but for those that stand still."""
        return {one.daemon.pid for one in self.workers if one.daemon.status is None} - self.bystanders

    async def elsewhere(self, names: set[str], pid: int, began: float) -> None:
        """Wait until each of these sessions is run by another process, and note how many seconds that took it; one that
        had gone to sleep just before is not.
        """
        left = {one.session_id: one for one in self.sessions if one.session_id in names}

        async def moved() -> bool:
            for name, session in [*left.items()]:
                seen = self.watch.owned[name]
                if seen.pid != pid and seen.pid in self.pids and seen.commits:
                    self.tally.after_kill.append(time.monotonic() - began)
                    del left[name]
                elif seen.pid is None and time.monotonic() - began > SURELY and await self._is_well(session):
                    del left[name]
            return not left

        await self.wait(moved, lambda: f"{sorted(left)} are run elsewhere", poll=0.02)

    async def recovered(self) -> None:
        """Wait until every session is run by a process that commits, or sleeps with nothing to do."""
        unwell: list[str] = []

        async def well() -> bool:
            unwell[:] = [one.session_id for one in self.sessions if not await self._is_well(one)]
            return not unwell

        await self.wait(well, lambda: f"{unwell[:10]} go on", poll=0.1)

    async def ready(self, worker: FleetWorkerProcess) -> None:
        """Wait until a worker takes sessions."""

        async def is_ready() -> bool:
            return worker.daemon.has_said("fleet.ready")

        await self.wait(is_ready, lambda: f"{worker.name} is ready", poll=0.05)

    async def at_rest(self) -> None:
        """Wait until no session is about to move."""
        self.start_all()
        await self.recovered()
        await asyncio.sleep(MOVING)
        await self.recovered()

    async def _is_well(self, session: FleetSession) -> bool:
        seen = self.watch.owned[session.session_id]
        if seen.pid is not None:
            return seen.pid in self.pids and seen.commits
        if await session.host.redis.exists(session.keys.input, session.keys.pending):
            return False
        waits = await session.host.redis.exists(session.keys.outbox)
        return not waits or await session.host.redis.zscore(POSTPONED, session.session_id) is not None

    async def wait(self, predicate: Callable[[], Awaitable[bool]], what: Callable[[], str], *, poll: float) -> None:
        """Until ``predicate`` holds. Raises :class:`Stuck`."""
        deadline = time.monotonic() + self._plan.patience
        while True:
            with suppress(RedisError, OSError):  # a server was killed, and is being started
                if await predicate():
                    return
            if time.monotonic() > deadline:
                words = "\n".join(one.daemon.last_words()[-600:] for one in self.workers)
                raise Stuck(f"waited {self._plan.patience:g} s in vain until {what()}; the workers said last:\n{words}")
            await asyncio.sleep(poll)

    async def audit(self, context: str) -> None:
        for session in self.rng.sample(self.sessions, min(AUDITED, len(self.sessions))):
            await session.audit(context)

    async def account(self) -> None:
        """Everything summarized, archived and remembered exactly once, also after all of it was sent again."""
        await self._settle("the faults")
        for session in self.sessions:
            await session.listener.repeat(session.listener.sent.deliveries)
        for worker in self.workers:
            await self.kill(worker)
        self.start_all()
        for session, places in await self._settle("sending everything again"):
            await session.close(places)

    async def _settle(self, context: str) -> list[tuple[FleetSession, Places]]:
        for session in self.sessions:
            await self._worked_off(session)
        return [(session, await session.audit(context)) for session in self.sessions]

    async def _worked_off(self, session: FleetSession) -> None:
        before, deadline = -1, time.monotonic() + self._plan.patience
        while left := await session.left():
            if left != before:
                before, deadline = left, time.monotonic() + self._plan.patience
            if time.monotonic() > deadline:
                seen = self.watch.owned[session.session_id]
                raise Stuck(f"{session.session_id}, run by {seen.pid}, has {left} left to summarize or deliver")
            await asyncio.sleep(0.25)

    async def stop(self) -> None:
        """SIGTERM; every worker must leave in good order."""
        for worker in self.workers:
            await self.ready(worker)
            worker.daemon.signal(signal.SIGTERM)
        for worker in self.workers:
            if await worker.daemon.ended(self._plan.patience) != 0:
                said = f"it said last:\n{worker.daemon.last_words()}"
                self.tally.note(f"{worker.name}: exit status {worker.daemon.status} after SIGTERM; {said}")


Befall = Callable[[Fleet], Awaitable[None]]


async def run_fleet(
    world: World, tally: Tally, plan: FleetPlan, faults: Deck[str], befall: Callable[[str], Befall]
) -> None:
    """Talk in all sessions under faults, let everything recover, then account for every message."""
    async with AsyncExitStack() as stack:
        hosts = [
            await stack.enter_async_context(RedisHost.opened(world.folder / f"server-{number}", *PUSHES_TOLD))
            for number in range(plan.servers)
        ]
        fleet = Fleet(world, hosts, tally, plan)
        await stack.enter_async_context(fleet.running())
        try:
            async with _talking(fleet, plan):
                await fleet.recovered()
                while tally.kills < plan.kills and not _is_over(tally, plan):
                    fault = faults.deal()
                    await befall(fault)(fleet)
                    tally.faults[fault] += 1
                    fleet.start_all()
                    if fleet.rng.random() < 0.6:
                        await fleet.recovered()
                    if plan.mutation or fleet.rng.random() < 0.2:
                        await fleet.audit(fault)
            if tally.interrupted or (plan.mutation and tally.has_findings):
                return
            await fleet.account()
            await fleet.stop()
        except Stuck as stuck:
            tally.note(str(stuck))


def _is_over(tally: Tally, plan: FleetPlan) -> bool:
    is_found_out = plan.mutation is not None and tally.has_findings
    return tally.interrupted or is_found_out or time.monotonic() > plan.deadline


@asynccontextmanager
async def _talking(fleet: Fleet, plan: FleetPlan) -> AsyncIterator[None]:
    """People talk in all sessions; returns when they have said all."""
    each = math.ceil(plan.messages / plan.sessions)

    def said_enough(messages: int) -> bool:
        return messages >= each or _is_over(fleet.tally, plan)

    def talks() -> Iterator[asyncio.Task[None]]:
        for session in fleet.sessions:
            session.open_listener()
            talk = session.listener.run(said_enough, plan.rate)
            yield asyncio.create_task(talk, name=f"listener {session.session_id}")

    listeners = [*talks()]
    try:
        yield
        await asyncio.gather(*listeners)
    finally:
        for listener in listeners:
            listener.cancel()
