"""Events of context packages go from the outbox of their transaction to a Redis stream: at least once, in order."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import quote

import structlog
from redis.asyncio import Redis

from context_builder.database.database import Database
from context_builder.errors import ContextBuilderError
from context_builder.knowledge.record import PackageRecord
from context_builder.storage.redis_availability import translated

log = structlog.get_logger(__name__)

EVENT_STREAM: Final = "context_builder:events"
"""It has no TTL: consumers may come late, and its length is bounded."""

EVENTS_MAX: Final = 100_000
"""Events that the stream keeps, about."""

POLL: Final = 0.2
"""Seconds between looks into the outbox."""

LEASE: Final = 5.0
"""Seconds after which another server relays a tenant's events, should the one who does be gone."""

BATCH: Final = 500
"""Events that are relayed at a time."""

LONGEST_WAIT: Final = 1.0
"""Seconds between attempts while the database or Redis is away."""

MAINTENANCE: Final = 600.0
"""Seconds between closing days that are over and dropping those past their time."""


def cloud_event(tenant_id: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an outbox row as a CloudEvent 1.0: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md."""
    return {
        "specversion": "1.0",
        "id": row["id"],
        "source": f"/tenants/{quote(tenant_id, safe='')}",
        "type": f"context_builder.{row['type']}",
        "subject": row["subject"],
        "time": datetime.fromisoformat(row["at"]).isoformat(),
        "datacontenttype": "application/json",
        "traceparent": row["traceparent"] or _trace_of(row["id"]),
        "data": row["data"],
    }


def _trace_of(event_id: str) -> str:
    """Return the trace that begins with an event which no call led to: the same whenever it is relayed."""
    digest = sha256(event_id.encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"


class EventRelay:
    """Relays events of all tenants, beside other servers that do the same: one at a time relays a tenant's.

    While the database or Redis is away, it waits; nothing is lost but what Redis itself loses. ``tenant_id`` is
    this server's own.
    """

    def __init__(
        self,
        database: Database,
        redis: Redis,
        record: PackageRecord,
        *,
        tenant_id: str,
        events_max: int = EVENTS_MAX,
    ) -> None:
        self._database = database
        self._redis = redis
        self._record = record
        self._tenant_id = tenant_id
        self._events_max = events_max
        self._holder = uuid.uuid4().hex
        self._stopping = asyncio.Event()
        self._told: set[str] = set()

    async def startup(self) -> None:
        """Make the record's next days, so that no build has to; it goes on without them if the database is away."""
        await self._attempt("record.maintenance", self._record.maintain(self._tenant_id))

    async def run(self) -> None:
        """Relay until :meth:`shutdown`."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._relay(), name="event relay")
            group.create_task(self._maintain(), name="record maintenance")

    async def relay_once(self) -> None:
        """Relay what is waiting, as a process does that ends; what cannot be relayed now waits for a server."""
        await self._attempt("events.waiting", self._relay_all())

    async def shutdown(self) -> None:
        """End :meth:`run` after the batch that is under way."""
        self._stopping.set()

    async def _relay(self) -> None:
        wait = POLL
        while not self._stopping.is_set():
            wait = POLL if await self._attempt("events.waiting", self._relay_all()) else min(2 * wait, LONGEST_WAIT)
            await self._pause(wait)

    async def _maintain(self) -> None:
        while not self._stopping.is_set():
            await self._pause(MAINTENANCE)
            if not self._stopping.is_set():
                await self._attempt("record.maintenance", self._record.maintain(self._tenant_id))

    async def _relay_all(self) -> None:
        for tenant_id in await self._database.call("context_package_events_waiting", self._tenant_id, {}):
            while not self._stopping.is_set() and await self._relay_batch(tenant_id) == BATCH:
                pass

    async def _relay_batch(self, tenant_id: str) -> int:
        """Relay a tenant's oldest events, and return how many; none while another server does."""
        taken = {"by_holder": self._holder, "seconds": LEASE, "most": BATCH}
        until = asyncio.get_running_loop().time() + LEASE / 2
        rows = await self._database.call("context_package_events_take", tenant_id, taken)
        if not rows:
            return 0
        # Given up well before another server takes over: of two, one would write behind the other's later events.
        async with translated(max(until - asyncio.get_running_loop().time(), 0)):
            pipeline = self._redis.pipeline(transaction=False)
            for row in rows:
                event = json.dumps(cloud_event(tenant_id, row), ensure_ascii=False)
                pipeline.xadd(EVENT_STREAM, {"event": event}, maxlen=self._events_max, approximate=True)
            await pipeline.execute()
        done = {"by_holder": self._holder, "last": rows[-1]["number"]}
        await self._database.call("context_package_events_done", tenant_id, done)
        return len(rows)

    async def _attempt(self, what: str, work: Awaitable[object]) -> bool:
        """Return whether the work was done; a failure is logged once until it was."""
        try:
            await work
        except ContextBuilderError as error:
            if what not in self._told:
                self._told.add(what)
                log.warning(what, error=str(error))
            return False
        self._told.discard(what)
        return True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
