"""The status of a fleet lists its workers, their sessions, and the waiting messages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis

from context_builder.errors import StoreError
from context_builder.fleet.process import Workload
from context_builder.fleet.worker import WORKLOAD, open_docket, worker_name
from context_builder.session.keys import SLEEPERS
from context_builder.session.store.registry import RegisteredSession, SessionRegistry
from context_builder.storage.redis_availability import translated


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Describes a worker of a Redis ``server``; ``waiting`` messages are in the inputs of its sessions, ``seen`` is
    seconds ago. It is ``lag`` seconds late, uses ``cpu`` of a core, and takes no session while it is ``overloaded``.
    """

    worker: str
    sessions: int
    waiting: int
    seen: float
    server: str
    lag: float = 0.0
    cpu: float = 0.0
    overloaded: bool = False


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """Describes a session: on which Redis ``server`` it is, which process runs it, None if none does, and how many
    messages are in its input."""

    session_id: str
    owner: str | None
    waiting: int
    server: str


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """Describes a fleet, and its ``sessions`` by name.

    ``elsewhere`` sessions are run by processes that are not workers, as from a terminal; ``sleeping`` ones run nowhere
    until their next message; ``unowned`` ones have messages waiting, and nobody runs them yet. Redis servers that are
    ``away`` do not answer, so of their sessions nothing is known. ``faults`` name keys that somebody made another type,
    and ``unusable`` is what was pushed to although no session can have it as its id.
    """

    workers: tuple[WorkerStatus, ...]
    elsewhere: int
    sleeping: int
    unowned: int
    sessions: tuple[SessionStatus, ...] = ()
    away: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FleetServer:
    """Names a Redis server of the fleet; ``url`` leads docket to the same as ``redis``."""

    name: str
    url: str
    redis: Redis


async def fleet_status(servers: Sequence[FleetServer]) -> FleetStatus:
    """Return what the fleet on these Redis servers looks like now.

    Raises :class:`~context_builder.errors.StoreError` when none of them answers.
    """
    parts = await asyncio.gather(*(_status_at(server) for server in servers), return_exceptions=True)
    answered = [part for part in parts if isinstance(part, FleetStatus)]
    for part in parts:
        if isinstance(part, BaseException) and (not answered or not isinstance(part, StoreError)):
            raise part
    silent = (one.name for one, part in zip(servers, parts, strict=True) if isinstance(part, BaseException))
    return FleetStatus(
        tuple(worker for part in answered for worker in part.workers),
        elsewhere=sum(part.elsewhere for part in answered),
        sleeping=sum(part.sleeping for part in answered),
        unowned=sum(part.unowned for part in answered),
        sessions=tuple(sorted((one for part in answered for one in part.sessions), key=lambda one: one.session_id)),
        away=tuple(silent),
        faults=tuple(fault for part in answered for fault in part.faults),
        unusable=tuple(name for part in answered for name in part.unusable),
    )


async def _status_at(server: FleetServer) -> FleetStatus:
    async with translated(), open_docket(server.url) as docket:
        seen = {one.name: (datetime.now(UTC) - one.last_seen).total_seconds() for one in await docket.workers()}
        sleeping = int(await server.redis.zcard(SLEEPERS))
        told = await server.redis.mget([WORKLOAD + name for name in seen]) if seen else []
    workloads = {name: Workload.read(raw) for name, raw in zip(seen, told, strict=True)}
    registry = SessionRegistry(server.redis)
    status = status_of(server.name, seen, workloads, sleeping, await registry.sessions())
    return replace(status, unusable=tuple(await registry.unusable()))


def status_of(
    server: str,
    seen: Mapping[str, float],
    workloads: Mapping[str, Workload],
    sleeping: int,
    sessions: Sequence[RegisteredSession],
) -> FleetStatus:
    """Return the status of a server's workers, ``seen`` so many seconds ago, and of all its sessions."""
    named = [SessionStatus(one.session_id, _owner_of(one), one.waiting, server) for one in sessions]
    run_by: dict[str, list[SessionStatus]] = {name: [] for name in seen}
    elsewhere = unowned = 0
    for one in named:
        if one.owner is None:
            unowned += one.waiting > 0
        elif one.owner in run_by:
            run_by[one.owner].append(one)
        else:
            elsewhere += 1
    workers = (
        WorkerStatus(
            name,
            len(run),
            sum(one.waiting for one in run),
            round(seen[name], 1),
            server,
            **workloads.get(name, Workload()).as_json(),
        )
        for name, run in sorted(run_by.items())
    )
    by_name = sorted(named, key=lambda one: one.session_id)
    faults = tuple(one.fault for one in sessions if one.fault)
    return FleetStatus(tuple(workers), elsewhere, sleeping, unowned, tuple(by_name), faults=faults)


def _owner_of(session: RegisteredSession) -> str | None:
    owner = session.owner
    return None if owner is None else worker_name(str(owner.get("host")), str(owner.get("pid")))
