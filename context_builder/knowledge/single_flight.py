"""Single flight lets one caller rebuild a package while all others, on any number of servers, wait for the result."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

from context_builder.errors import DatabaseError, DatabaseUnavailable
from context_builder.knowledge.revision import RecordedPackage

LEASE: Final = 10.0
"""Seconds after which another server may build, should the one who does be gone."""

FIRST_WAIT: Final = 0.01
LONGEST_WAIT: Final = 0.1
"""Seconds between looks whether another server is done."""

PATIENCE: Final = 30.0
"""Seconds that a caller waits for others, before it is told that the package is unavailable."""


class TakeLease(Protocol):
    """Takes or renews the lease; answers the newest revision, and whether the lease is the holder's."""

    async def __call__(
        self, tenant_id: str, package_id: str, after: int, holder: str, seconds: float
    ) -> tuple[int, bool]: ...


@dataclass(slots=True)
class _Flight:
    """Holds this process's callers that want the same package; one at a time asks the database."""

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
