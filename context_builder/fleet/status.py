"""What a fleet looks like: its workers, what each runs, and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis

from context_builder.fleet.sleepers import SLEEPERS
from context_builder.fleet.worker import open_docket, worker_name
from context_builder.session.store.registry import RegisteredSession, SessionRegistry
from context_builder.storage.redis_availability import translated


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Describes a worker; ``waiting`` messages are in the inputs of its sessions, ``seen`` is seconds ago."""

    worker: str
    sessions: int
    waiting: int
    seen: float


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """Describes a session: which process runs it, None if none does, and how many messages are in its input."""

    session_id: str
    owner: str | None
    waiting: int


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """Describes a fleet, and its ``sessions`` by name.

    ``elsewhere`` sessions are run by processes that are no worker, as from a terminal; ``sleeping`` ones run nowhere
    until their next message; ``unowned`` ones have messages waiting, and nobody runs them yet.
    """

    workers: tuple[WorkerStatus, ...]
    elsewhere: int
    sleeping: int
    unowned: int
    sessions: tuple[SessionStatus, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def fleet_status(url: str, redis: Redis) -> FleetStatus:
    """Return what the fleet on the Redis looks like now; ``url`` leads docket to the same.

    Raises :class:`~context_builder.errors.StoreUnavailable`.
    """
    async with translated(), open_docket(url) as docket:
        seen = {one.name: (datetime.now(UTC) - one.last_seen).total_seconds() for one in await docket.workers()}
        sleeping = int(await redis.zcard(SLEEPERS))
    return status_of(seen, sleeping, await SessionRegistry(redis).sessions())


def status_of(seen: dict[str, float], sleeping: int, sessions: Sequence[RegisteredSession]) -> FleetStatus:
    """Return the status of workers ``seen`` so many seconds ago and of all sessions."""
    named = [SessionStatus(one.session_id, _owner_of(one), one.waiting) for one in sessions]
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
        WorkerStatus(name, len(run), sum(one.waiting for one in run), round(seen[name], 1))
        for name, run in sorted(run_by.items())
    )
    by_name = sorted(named, key=lambda one: one.session_id)
    return FleetStatus(tuple(workers), elsewhere, sleeping, unowned, tuple(by_name))


def _owner_of(session: RegisteredSession) -> str | None:
    owner = session.owner
    return None if owner is None else worker_name(str(owner.get("host")), str(owner.get("pid")))
