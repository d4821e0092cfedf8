"""What befalls a fleet: workers that die, freeze, are cut off or replaced, and servers that do the same."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import psutil

from context_builder.session.keys import SESSIONS, Keys
from scripts.campaign.account import FallBack
from scripts.campaign.daemon import LEASE
from scripts.campaign.deck import Deck
from scripts.campaign.fall_backs import LATEST
from scripts.campaign.fleet import Befall, Fleet, FleetSession, FleetWorkerProcess
from scripts.campaign.ownership import LOOK
from scripts.campaign.world import REFUSED


def deck(seed: str, only: Sequence[str] = ()) -> Deck[str]:
    """The faults as often as they are to come, unless it is to be these ``only``."""
    faults = only or [name for name, (often, _) in FLEET_FAULTS.items() for _ in range(often)]
    return Deck(faults, f"{seed}/fleet")


def befall(fault: str) -> Befall:
    return FLEET_FAULTS[fault][1]


def _one(fleet: Fleet) -> FleetWorkerProcess:
    """One that runs, if any does."""
    up = [worker for worker in fleet.workers if worker.daemon.status is None]
    return fleet.rng.choice(up or fleet.workers)


async def worker_killed(fleet: Fleet) -> None:
    """Its sessions go on elsewhere; how soon is noted. Another worker takes its place."""
    await fleet.pause(0.8)
    worker = _one(fleet)
    names, pid, began = fleet.run_by(worker), worker.daemon.pid, time.monotonic()
    await fleet.kill(worker)
    if fleet.rng.random() < 0.5:
        fleet.start_all()
    await fleet.elsewhere(names, pid, began)


async def two_workers_killed(fleet: Fleet) -> None:
    await fleet.pause(0.8)
    for worker in fleet.rng.sample(fleet.workers, min(2, len(fleet.workers))):
        await fleet.kill(worker)
        await fleet.pause(0.3)


async def all_workers_killed(fleet: Fleet) -> None:
    for worker in fleet.workers:
        await fleet.kill(worker)
    await fleet.pause(2)


async def worker_killed_while_starting(fleet: Fleet) -> None:
    worker = _one(fleet)
    await fleet.kill(worker)
    worker.daemon.start()
    await asyncio.sleep(fleet.rng.uniform(0.8, 2.5))
    await fleet.kill(worker)


async def worker_killed_while_leaving(fleet: Fleet) -> None:
    worker = _one(fleet)
    worker.daemon.signal(signal.SIGTERM)
    await fleet.pause(0.4)
    await fleet.kill(worker)


async def worker_frozen(fleet: Fleet) -> None:
    """Others take its sessions; then it wakes up, and must leave them alone."""
    worker = _one(fleet)
    names, pid, began = fleet.run_by(worker), worker.daemon.pid, time.monotonic()
    fleet.bystanders.add(pid)
    worker.daemon.signal(signal.SIGSTOP)
    try:
        await fleet.elsewhere(names, pid, began)
        await fleet.pause(1)
    finally:
        worker.daemon.signal(signal.SIGCONT)
        fleet.bystanders.discard(pid)


async def worker_frozen_for_a_moment(fleet: Fleet) -> None:
    """Its leases have run out, or nearly."""
    worker = _one(fleet)
    worker.daemon.signal(signal.SIGSTOP)
    await asyncio.sleep(fleet.rng.uniform(LEASE - 1.5, LEASE + 1))
    worker.daemon.signal(signal.SIGCONT)


async def worker_cut_off_from_one_server(fleet: Fleet) -> None:
    worker = _one(fleet)
    link = fleet.rng.choice(worker.links)
    async with link.stalled() if fleet.rng.random() < 0.5 else link.refusing():
        await asyncio.sleep(fleet.rng.uniform(0.5, LEASE + 3))


async def worker_cut_off_from_all(fleet: Fleet) -> None:
    worker = _one(fleet)
    async with AsyncExitStack() as stack:
        for link in worker.links:
            await stack.enter_async_context(link.stalled())
        await asyncio.sleep(fleet.rng.uniform(0.5, LEASE + 3))
        if fleet.rng.random() < 0.3:
            await fleet.kill(worker)


async def answers_lost(fleet: Fleet) -> None:
    link = fleet.rng.choice(_one(fleet).links)
    async with link.deaf():
        await fleet.pause(0.5)


async def connections_cut(fleet: Fleet) -> None:
    for _ in range(fleet.rng.randint(1, 10)):
        link = fleet.rng.choice(_one(fleet).links)
        link.cut() if fleet.rng.random() < 0.5 else link.cut_inside()
        await fleet.pause(0.1)


async def rolling_restart(fleet: Fleet) -> None:
    """Every worker is replaced, one after the other."""
    for worker in fleet.workers:
        fleet.start_all()
        await fleet.ready(worker)  # before, it has nothing to hand over, and ends at once
        worker.daemon.signal(signal.SIGTERM)
        if await worker.daemon.ended(30.0) != 0:
            said = f"it said last:\n{worker.daemon.last_words()}"
            fleet.tally.note(f"{worker.name}: exit status {worker.daemon.status} after SIGTERM; {said}")
            await fleet.kill(worker)
        worker.daemon.start()
        await fleet.pause(3)


async def server_killed(fleet: Fleet) -> None:
    """It comes back with all that it acknowledged."""
    host = fleet.rng.choice(fleet.hosts)
    host.kill()
    await fleet.pause(3)
    if fleet.rng.random() < 0.3:
        await fleet.kill(_one(fleet))
    await host.start_again()
    back = time.monotonic()
    fleet.start_all()
    await fleet.recovered()
    fleet.tally.after_redis.append(time.monotonic() - back)


async def server_falls_back(fleet: Fleet) -> None:
    """A session whose owner is the same before and after goes on with all of it; one that moved has what Redis has."""
    await fleet.at_rest()  # of a session on its way from one owner to the next, nobody remembers the last commits
    host = fleet.rng.choice(fleet.hosts)
    sessions = fleet.on(host)
    owners = {one: _committing(fleet, one) for one in sessions}
    moment = host.moment()
    await fleet.pause(1.2)
    killed = fleet.rng.choice([None, None, *fleet.workers])
    async with AsyncExitStack() as stack:
        for session in sessions:
            await stack.enter_async_context(session.listener.silent())
        stalled = time.monotonic()
        for worker in fleet.workers:
            await stack.enter_async_context(worker.links[fleet.hosts.index(host)].stalled())
        before = await asyncio.gather(*(session.places() for session in sessions))
        await asyncio.sleep(4 * LOOK)  # so that the watch has seen who owns them now
        same = {one for one in sessions if owners[one] and owners[one] == _committing(fleet, one)}
        late = time.monotonic() - moment.at > LATEST
        with fleet.watch.looking_away(host, [one.session_id for one in sessions]):
            await host.fall_back(host.moment() if late else moment)
        if killed is not None and killed.daemon.status is None:
            await fleet.kill(killed)
            same -= {one for one in same if fleet.watch.owned[one.session_id].pid == killed.daemon.pid}
        after = await asyncio.gather(*(session.places() for session in sessions))
    back = time.monotonic()
    fleet.start_all()
    falls: dict[FleetSession, FallBack] = {}
    for session, then, now in zip(sessions, before, after, strict=True):
        falls[session] = fall = session.fell_back(then, now)
        if session in same:
            await session.listener.repeat(session.listener.sent.take_back(fall.unread))
        else:
            await session.someone_else_goes_on(fall)
    missing: dict[str, set[str]] = {}
    restoring = {session: then for session, then in zip(sessions, before, strict=True) if session in same}

    async def is_restored() -> bool:  # until then another fault may take for good what Redis has lost
        for session, then in [*restoring.items()]:
            if back - stalled > LEASE / 2 and _committing(fleet, session) not in {"", owners[session]}:
                missing.pop(
                    session.session_id, None
                )  # so slow a machine let the lease run out, and another one took it
                del restoring[session]
                await session.someone_else_goes_on(falls[session])
                continue
            now = await session.places()
            missing[session.session_id] = {*then.taken_in} - {*now.taken_in, *now.waiting}
            if not missing[session.session_id]:
                del restoring[session], missing[session.session_id]
        return not restoring

    await fleet.wait(is_restored, lambda: f"they have again what they had: {missing}", poll=0.1)
    await fleet.recovered()
    fleet.tally.after_redis.append(time.monotonic() - back)


def _committing(fleet: Fleet, session: FleetSession) -> str:
    """The nonce of the owner that made the last commit; empty where there is none."""
    seen = fleet.watch.owned[session.session_id]
    return seen.nonce if seen.commits else ""


async def model_fails(fleet: Fleet) -> None:
    async with fleet.world.model_fault(REFUSED):
        await fleet.pause(2)
        await fleet.kill(_one(fleet))
        await fleet.pause(1)


async def archive_away(fleet: Fleet) -> None:
    away = fleet.world.archive.refusing() if fleet.rng.random() < 0.5 else fleet.world.archive.stalled()
    async with away:
        await fleet.pause(3)
        await fleet.kill(_one(fleet))
        await fleet.pause(1)


async def server_full(fleet: Fleet) -> None:
    """It refuses what needs memory; listeners send again."""
    host = fleet.rng.choice(fleet.hosts)
    await host.redis.config_set("maxmemory", "1mb")
    await fleet.pause(6)
    if fleet.rng.random() < 0.5:
        await fleet.kill(_one(fleet))
    await host.redis.config_set("maxmemory", "0")
    fleet.start_all()
    await fleet.recovered()


async def bad_neighbours(fleet: Fleet) -> None:
    """Keys of another type, ids that no session can have, and a delivery of many megabytes are others' alone."""
    redis: Any = fleet.rng.choice(fleet.hosts).redis
    neighbour = Keys("neighbour")
    await redis.lpush(neighbour.input, b"x" * 20_000_000)
    await redis.zadd(SESSIONS, {b"no session": 1, b"\xff\xfe": 1})
    for key in ("context_builder:broken:input", "context_builder:broken:checkpoint", "context_builder:no id:input"):
        await redis.set(key, "a mistake")
    await redis.lpush("context_builder:no session:input", "{}")
    await fleet.pause(3)
    await redis.delete(neighbour.pending)
    await redis.set(neighbour.pending, "a mistake")
    await fleet.pause(2)
    await redis.delete(neighbour.pending, "context_builder:broken:input", "context_builder:broken:checkpoint")


async def analysis_killed(fleet: Fleet) -> None:
    """Or it stands still, which is noticed later."""
    for process in psutil.Process(_one(fleet).daemon.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "spawn_main" in " ".join(process.cmdline()):
                process.send_signal(signal.SIGKILL if fleet.rng.random() < 0.7 else signal.SIGSTOP)
    await fleet.pause(3)


FLEET_FAULTS: Final[Mapping[str, tuple[int, Befall]]] = {
    "worker killed": (40, worker_killed),
    "two workers killed": (6, two_workers_killed),
    "all workers killed": (3, all_workers_killed),
    "worker killed while starting": (4, worker_killed_while_starting),
    "worker killed while leaving": (6, worker_killed_while_leaving),
    "worker frozen": (4, worker_frozen),
    "worker frozen for a moment": (3, worker_frozen_for_a_moment),
    "worker cut off from one server": (5, worker_cut_off_from_one_server),
    "worker cut off from all": (3, worker_cut_off_from_all),
    "answers lost": (3, answers_lost),
    "connections cut": (3, connections_cut),
    "rolling restart": (3, rolling_restart),
    "server killed": (3, server_killed),
    "server falls back": (3, server_falls_back),
    "model fails": (2, model_fails),
    "archive away": (2, archive_away),
    "server full": (3, server_full),
    "bad neighbours": (3, bad_neighbours),
    "analysis process killed": (3, analysis_killed),
}
"""Each fault, how often it comes in comparison, and what happens."""
