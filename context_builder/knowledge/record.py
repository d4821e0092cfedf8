"""The record keeps what was asked, what was served and why, and what was thought of it, apart by tenant."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import orjson

from context_builder.clock import Clock, SystemClock, in_utc
from context_builder.database.database import Database, readable_rows, reading_row
from context_builder.database.migrations import RETENTION_DAYS
from context_builder.errors import DatabaseError, DatabaseUnavailable, IdempotencyClash
from context_builder.knowledge.governance import AccessDecision
from context_builder.knowledge.outcomes import RatedPackage
from context_builder.knowledge.revision import (
    JsonObject,
    PackageEntry,
    PackageRevision,
    RecentPackage,
    RecordedCaller,
    RecordedPackage,
)
from context_builder.knowledge.store import check_tenant
from context_builder.memory.rows import as_key, storable

KEY_TIME: Final = 86_400.0
"""Seconds for which an Idempotency-Key is kept."""

PACKAGES: Final = "context_packages"
"""The table of what was served."""

_NUL: Final = rb"\u0000"


class PackageRecord:
    """Keeps the record of context packages. Every call raises :class:`~context_builder.errors.DatabaseError`.

    Writers of one tenant run one after the other, for some milliseconds each.
    """

    def __init__(self, database: Database, *, retention_days: int = RETENTION_DAYS, clock: Clock | None = None) -> None:
        self._database = database
        self._retention_days = retention_days
        self._clock = clock or SystemClock()
        self._flights = SingleFlights(self._lease, self._release, self.latest)

    async def begin(
        self,
        tenant_id: str,
        request_id: str,
        *,
        caller: RecordedCaller,
        request: JsonObject,
        trace_id: str,
        traceparent: str,
        task_id: str,
        package_id: str,
    ) -> None:
        """Record a request and the event that it was made; both are committed when this returns."""
        await self._call(
            "context_package_begin",
            tenant_id,
            id=request_id,
            package=package_id,
            caller=storable(caller.sub),
            roles=storable(sorted(caller.roles)),
            request=storable(request),
            task=task_id,
            trace=trace_id,
            traceparent=traceparent,
            at=self._now(),
        )

    async def finish(self, tenant_id: str, revision: PackageRevision) -> int:
        """Record a build's package, decision, audit and event together, and return the revision's number.

        Texts of sources that were erased while it was being built are left out. Raises
        :class:`~context_builder.errors.DataRejected` when :meth:`begin` has noted no such request.
        """
        return int(await self._one("context_package_finish", tenant_id, built=_described(revision)))

    async def deny(
        self,
        tenant_id: str,
        package_id: str,
        revision: int,
        decisions: Sequence[AccessDecision],
        versions: Mapping[str, int | None],
    ) -> None:
        """Append denials of sources, whose versions are given by ref, to the audit of a revision that :meth:`finish`
        recorded; those that it recorded are left out."""
        await self._call(
            "context_package_deny",
            tenant_id,
            package=package_id,
            number=revision,
            denied=storable([{**asdict(one), "version": versions.get(one.ref)} for one in decisions]),
            at=self._now(),
        )

    async def fail(self, tenant_id: str, request_id: str, reason: str) -> None:
        """Mark a request that is being built as failed; the reason quotes nothing of any source."""
        await self._call("context_package_fail", tenant_id, asked=request_id, why=storable(reason), at=self._now())

    async def latest(self, tenant_id: str, package_id: str) -> RecordedPackage | None:
        """Return a package's request and newest revision; None for one that is unknown or too old."""
        with reading_row(PACKAGES, package_id):
            rows = await self._call(
                "context_package_latest", tenant_id, package=storable(package_id), oldest=self._oldest()
            )
            return _package_of(rows[0]) if rows else None

    async def listing(
        self,
        tenant_id: str,
        by: Literal["task", "trace", "ref"],
        value: str,
        *,
        limit: int = 50,
        before: str | None = None,
    ) -> list[PackageEntry]:
        """Return the packages of a task or a trace, or with a source, newest first, after the one ``before``."""
        rows = await self._call(
            "context_package_listing",
            tenant_id,
            kind=by,
            name=storable(value),
            most=limit,
            before=storable(before),
            oldest=self._oldest(),
        )
        return [PackageEntry(row["package_id"], _time(row["created_at"])) for row in rows]

    async def recent(
        self, tenant_id: str, asked_by: str | None, limit: int, among: Sequence[str] | None = None
    ) -> list[RecentPackage]:
        """Return the newest packages that a caller asked for, or with None anybody; with ``among``, of these ids."""
        rows = await self._call(
            "context_package_recent",
            tenant_id,
            asked_by=storable(asked_by),
            most=limit,
            oldest=self._oldest(),
            among=None if among is None else [storable(one) for one in among],
        )
        return [RecentPackage(**{**row, "created_at": _time(row["created_at"])}) for row in rows]

    async def audit(self, tenant_id: str, package_id: str) -> dict[str, Any] | None:
        """Return the request and, in ``revisions``, each with its body, decision, candidates and graph; None as above.

        Names are those of the columns. In a body, a source that was erased since has an empty title and content,
        ``erased`` and ``contentDigest``.
        """
        with reading_row(PACKAGES, package_id):
            rows = await self._call(
                "context_package_audit", tenant_id, package=storable(package_id), oldest=self._oldest()
            )
            return dict(rows[0]) if rows else None

    async def claim(self, tenant_id: str, caller_sub: str, key: str, body_digest: str, package_id: str) -> str:
        """Take an Idempotency-Key for the package and return the package that holds it: this one, or an earlier one.

        Raises :class:`~context_builder.errors.IdempotencyClash` when it was sent with another body.
        """
        holds = await self._one(
            "context_package_claim",
            tenant_id,
            caller_sub=as_key(caller_sub),
            idempotency_key=storable(key),
            digest=body_digest,
            package=package_id,
            at=self._now(),
            seconds=KEY_TIME,
        )
        if holds is None:
            raise IdempotencyClash("this Idempotency-Key was sent before with another body")
        return str(holds)

    @asynccontextmanager
    async def rebuilding(self, tenant_id: str, package_id: str, *, after: int) -> AsyncIterator[RecordedPackage | None]:
        """Let one at a time, on all servers, rebuild a package of which the caller has seen revision ``after``.

        Yields None to the one who is to build, and to finish within the block; the others wait, and get the newer
        revision. When the one fails or dies, the next is let in.
        """
        async with self._flights.entered(tenant_id, package_id, after) as newer:
            yield newer

    async def outcomes(self, tenant_id: str, since: datetime, most: int) -> list[RatedPackage]:
        """Return the packages that feedback since then tells an outcome or a note of, the newest feedback first."""
        rows = await self._call("context_package_outcomes", tenant_id, since=in_utc(since), most=most)
        return [*readable_rows(PACKAGES, "package_id", RatedPackage.model_validate, rows)]

    async def feedback(
        self,
        tenant_id: str,
        package_id: str,
        caller_sub: str,
        outcome: float | None,
        helped: Mapping[str, float | None],
        note: str,
    ) -> bool:
        """Record a caller's feedback in place of an earlier one; return whether there is such a package.

        ``outcome`` and the values of ``helped``, by ref, are from 0 to 1. Refs that are not in the package are ignored;
        those in it that are not named did not help, but when nothing is named, nothing is said of any; nor of those
        with None.
        """
        return bool(
            await self._one(
                "context_package_rate",
                tenant_id,
                package=storable(package_id),
                caller_sub=as_key(caller_sub),
                how_good=storable(outcome),
                what_helped={
                    storable(ref): share for ref, share in helped.items() if share is None or math.isfinite(share)
                },
                remark=storable(note),
                at=self._now(),
                oldest=self._oldest(),
            )
        )

    async def erase(self, tenant_id: str, ref: str) -> None:
        """Erase what the record shows of a source; of ``session:…``, of all points and messages of the session, too.

        To erase an artifact in the knowledge store, or to forget a session in the memory, does this by itself.
        """
        await self._call("context_package_erase", tenant_id, source=storable(ref))

    async def maintain(self, tenant_id: str) -> int:
        """Close days that are over, make the next ones and drop those past their time, of all tenants.

        Returns how many partitions were dropped. To be called now and then, by whichever server.
        """
        await self._call("context_package_anchors", tenant_id, at=self._now())
        oldest = self._oldest().date()
        return int(await self._one("context_package_maintain", tenant_id, now=self._now(), oldest=oldest))

    async def close(self) -> None:
        await self._database.close()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now().wall, UTC)

    def _oldest(self) -> datetime:
        return self._now() - timedelta(days=self._retention_days)

    async def _lease(
        self, tenant_id: str, package_id: str, after: int, holder: str, seconds: float
    ) -> tuple[int, bool]:
        answer = await self._one(
            "context_package_rebuild", tenant_id, package=package_id, seen=after, by_holder=holder, seconds=seconds
        )
        return int(answer["revision"]), bool(answer["held"])

    async def _release(self, tenant_id: str, package_id: str, holder: str) -> None:
        await self._call("context_package_release", tenant_id, lease=f"rebuild {package_id}", by_holder=holder)

    async def _call(self, function: str, tenant_id: str, **arguments: Any) -> list[Any]:
        check_tenant(tenant_id)
        return await self._database.call(function, tenant_id, arguments)

    async def _one(self, function: str, tenant_id: str, **arguments: Any) -> Any:
        return (await self._call(function, tenant_id, **arguments))[0]


def _described(revision: PackageRevision) -> orjson.Fragment:
    """Return the revision as JSON; much faster where PostgreSQL's holds all of it."""
    try:
        text = orjson.dumps(revision)
    except TypeError:  # half of a surrogate pair, or a mapping that is not a dict
        text = _NUL
    if _NUL in text:
        body = revision.body
        plain = orjson.loads(orjson.dumps(body)) if isinstance(body, orjson.Fragment) else body
        text = orjson.dumps(storable(asdict(replace(revision, body=plain))))
    return orjson.Fragment(text)


def _package_of(row: Mapping[str, Any]) -> RecordedPackage:
    if not (isinstance(row["body"], dict) and isinstance(row["request"], dict)):
        raise TypeError
    fields = {name: value for name, value in row.items() if name not in ("caller", "roles", "created_at")}
    caller = RecordedCaller(row["caller"], tuple(row["roles"]))
    return RecordedPackage(caller=caller, created_at=_time(row["created_at"]), **fields)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


LEASE: Final = 10.0
"""Seconds after which another server may build, should the one who does be gone."""

FIRST_WAIT: Final = 0.01
LONGEST_WAIT: Final = 0.1
"""Seconds between looks whether another server is done."""

PATIENCE: Final = 30.0
"""Seconds that a caller waits for others, before it is told that the package is unavailable."""


TakeLease = Callable[[str, str, int, str, float], Awaitable[tuple[int, bool]]]
"""Takes or renews the lease on a tenant's package, after a revision, for a holder, for some seconds; answers the newest
revision, and whether the lease is the holder's."""


@dataclass(slots=True)
class _Flight:
    """Callers in this process that want the same package; one at a time asks the database."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    passengers: int = 0
    newest: RecordedPackage | None = None


class SingleFlights:
    """Lets one at a time into a package's rebuild."""

    def __init__(
        self,
        lease: TakeLease,
        release: Callable[[str, str, str], Awaitable[None]],
        latest: Callable[[str, str], Awaitable[RecordedPackage | None]],
    ) -> None:
        self._lease = lease
        self._release = release
        self._latest = latest
        self._flights: dict[tuple[str, str], _Flight] = {}

    @asynccontextmanager
    async def entered(self, tenant_id: str, package_id: str, after: int) -> AsyncIterator[RecordedPackage | None]:
        """Yield None, alone, or a revision newer than ``after``."""
        flight = self._flights.setdefault((tenant_id, package_id), _Flight())
        flight.passengers += 1
        try:
            with _patience():
                async with asyncio.timeout(PATIENCE):
                    await flight.turn.acquire()
            try:
                holder = uuid.uuid4().hex
                newer = await self._newer(flight, tenant_id, package_id, after, holder)
                if newer is None:
                    async with self._held(tenant_id, package_id, after, holder):
                        yield None
                    return
            finally:
                flight.turn.release()
        finally:
            flight.passengers -= 1
            if not flight.passengers:
                del self._flights[tenant_id, package_id]
        yield newer

    async def _newer(
        self, flight: _Flight, tenant_id: str, package_id: str, after: int, holder: str
    ) -> RecordedPackage | None:
        """Return a newer revision, or None as soon as the lease is the holder's."""
        if flight.newest is not None and flight.newest.revision > after:
            return flight.newest
        wait = FIRST_WAIT
        with _patience():
            async with asyncio.timeout(PATIENCE):
                while True:
                    revision, held = await self._lease(tenant_id, package_id, after, holder, LEASE)
                    if held:
                        return None
                    if revision > after:
                        flight.newest = await self._latest(tenant_id, package_id)
                        if flight.newest is not None:
                            return flight.newest
                    await asyncio.sleep(wait)
                    wait = min(2 * wait, LONGEST_WAIT)

    @asynccontextmanager
    async def _held(self, tenant_id: str, package_id: str, after: int, holder: str) -> AsyncIterator[None]:
        """Renew the lease in the block, and give it back."""
        renewal = asyncio.create_task(
            self._renew(tenant_id, package_id, after, holder), name=f"rebuild lease of {package_id}"
        )
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.wait([renewal])
            with suppress(DatabaseError):  # which runs out by itself
                await self._release(tenant_id, package_id, holder)

    async def _renew(self, tenant_id: str, package_id: str, after: int, holder: str) -> None:
        while True:
            await asyncio.sleep(LEASE / 3)
            with suppress(DatabaseError):
                await self._lease(tenant_id, package_id, after, holder, LEASE)


@contextmanager
def _patience() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise DatabaseUnavailable("others have been rebuilding this package for too long") from None
