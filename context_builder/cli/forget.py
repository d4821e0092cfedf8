"""``forget``: delete a session everywhere."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from context_builder.cli.command import SESSION_ID, confirm, no_session, run, settings_for, settings_in_force
from context_builder.errors import (
    DatabaseRejected,
    DatabaseUnavailable,
    ForgottenInPart,
    StoreUnavailable,
)

if TYPE_CHECKING:
    from context_builder.archive.archive import Archive
    from context_builder.memory.memory import TenantMemory
    from context_builder.session.store.registry import SessionRegistry

LOOK_AGAIN: Final = 0.05
"""Seconds between two looks at the session's marks."""

STEP: Final = 2_000
"""Memories that are deleted at once; fewer where the database does not do that in time."""

SMALLEST_STEP: Final = 100
"""Memories that are deleted at once at least: a database that cannot delete so few in time is away."""

LOST_BY_REDIS: Final = 3.0
"""Seconds within which a Redis that writes to disk every second may still lose what it was told, should power fail."""

AGAIN: Final = "run forget again later"


def forget(
    session_id: SESSION_ID,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a session everywhere: in Redis, in the archive and in the long-term memory.

    Memories are deleted in steps: when the command is interrupted, run it again. If something may be left, the exit
    status is 1, and the message says what, and where.

    Example:

        context-builder forget session-123 --yes
    """
    confirm(f"Delete everything about session {session_id}, for good?", yes=yes)
    run(_forget(session_id))


async def _forget(session_id: str) -> None:
    from context_builder.cli.view.status import counted
    from context_builder.memory.memory import TenantMemory
    from context_builder.recording.file import delete, place_of
    from context_builder.session.store.lease import describe, has_died
    from context_builder.session.store.registry import SessionRegistry
    from context_builder.wiring.app import recording_of
    from context_builder.wiring.servers import open_servers
    from context_builder.wiring.stores import open_stores

    settings = await settings_for(session_id)
    everywhere = open_servers(settings_in_force())
    async with everywhere as servers, open_stores(settings) as stores:
        tenants = servers.of_tenant(settings.memory.tenant_id)
        (catalog,) = (SessionRegistry(one.redis) for one in tenants if one.name == settings.redis.server_name)
        memory = TenantMemory(stores.memory, settings.memory.tenant_id) if stores.memory else None
        delivered = Delivered(session_id, stores.archive, memory)
        await delivered.forget()  # first: if the archive or the memory is away, nothing is deleted yet
        owner = await catalog.owner(session_id)
        places = await catalog.recordings(session_id)
        before = await catalog.mark(session_id)
        left: list[str] = []
        for other in tenants:  # packages that show what was said may be cached there
            if other.name != settings.redis.server_name:
                try:
                    await SessionRegistry(other.redis).forget(session_id)
                except StoreUnavailable as error:
                    left.append(
                        f"{other.name}: {error}; packages that show what was said may be cached there: "
                        "run forget again once it is back"
                    )
        keys = await catalog.forget(session_id)
        late = ""
        if owner is not None:  # it notices with its next commit; until then it may still deliver something
            typer.echo(f"Waiting until {describe(owner)} leaves …", err=True)
            if not has_died(owner):
                late = await why_late(catalog, session_id, describe(owner), settings.session.lease)
            await delivered.forget_again()
        recording = recording_of(session_id, settings)
        was_recorded = recording is not None and delete(recording)
        if keys:
            typer.echo(f"Making sure for {LOST_BY_REDIS:g} s that Redis does not bring it back …", err=True)
            try:
                await stay_forgotten(catalog, session_id, before)
            except StoreUnavailable as error:
                left.append(f"{error}; it may bring the session back: {AGAIN}")
            if owner is not None:  # what was on its way may have come meanwhile
                await delivered.forget_again()
    if recording is not None:
        places.discard(place_of(recording))
    left += [f"what the memory holds of it stays: {delivered.refusal}"] if delivered.refusal else []
    elsewhere = sorted(place for place in places if not _was_deleted_by(None if late else owner, place))
    left += [f"it was recorded elsewhere, too: delete {', '.join(elsewhere)}"] if elsewhere else []
    left += [why for why in (late, delivered.failure) if why]
    if not (left or keys or delivered.rows or delivered.memories or was_recorded):
        raise no_session(session_id)
    if was_recorded:
        typer.echo(f"Deleted the recording {recording}.")
    typer.echo(
        f"Forgot session {session_id}: {counted(keys, 'Redis key')}, {counted(delivered.rows, 'archived summary')} and "
        f"{counted(delivered.memories, 'memory')} deleted."
    )
    if left:
        listed = " ".join(f"({number}) {why}." for number, why in enumerate(left, 1))
        raise ForgottenInPart(f"something of session {session_id} is left, or may be: {listed}")


async def why_late(catalog: SessionRegistry, session_id: str, owner: str, within: float) -> str:
    """Wait until the owner has learnt that the session was forgotten; why something may still come, else nothing."""
    from context_builder.session.store.lease import is_forgotten

    for _ in range(math.ceil(within / LOOK_AGAIN)):
        with suppress(StoreUnavailable):
            mark = await catalog.owner(session_id)
            if mark is None or not is_forgotten(mark):
                return ""
            if mark.get("in_part"):
                return f"{owner} could not take back what it was delivering: {AGAIN}"
        await asyncio.sleep(LOOK_AGAIN)
    risk = "it will not restore the session, but may still deliver what it was delivering"
    return f"{owner} did not say that it has left; {risk}: {AGAIN}"


def _was_deleted_by(owner: Mapping[str, Any] | None, place: str) -> bool:
    """Return whether the process that ran the session has deleted the recording there, or it is a file of this machine
    that is gone.
    """
    host, _, path = place.partition(":")
    if host == socket.gethostname():
        return not Path(path).exists()
    return owner is not None and owner.get("host") == host


async def stay_forgotten(catalog: SessionRegistry, session_id: str, before: bytes | None) -> None:
    """Forget the session again should Redis fall back, to where its mark is the one from ``before``."""
    looks_left = looks = math.ceil(LOST_BY_REDIS / LOOK_AGAIN)
    while looks_left:
        await asyncio.sleep(LOOK_AGAIN)
        looks_left -= 1
        if await catalog.mark(session_id) == before:
            await catalog.forget(session_id)
            looks_left = looks


class Delivered:
    """Deletes what archive and memory hold of a session; ``rows`` and ``memories`` count what was deleted.

    ``refusal`` is the memory's, which deletes nothing; ``failure`` tells what was away when it was to be done again.
    """

    def __init__(self, session_id: str, archive: Archive | None, memory: TenantMemory | None) -> None:
        self._session_id = session_id
        self._archive = archive
        self._memory = memory
        self.rows = self.memories = 0
        self.refusal: DatabaseRejected | None = None
        self.failure = ""

    async def forget(self) -> None:
        """Delete it everywhere; a memory that refuses for good does not stop the rest."""
        if self._archive is not None:
            await self._archive.check()
        if self._memory is not None:
            try:
                await self._forget_memories(self._memory)
            except DatabaseRejected as error:
                self.refusal = error
        if self._archive is not None:
            self.rows += await self._archive.forget(self._session_id)

    async def forget_again(self) -> None:
        """Delete what came meanwhile; what is away now does not stop the rest."""
        self.failure = ""
        try:
            await self.forget()
        except DatabaseUnavailable as error:
            self.failure = f"{error}; what was delivered last may be there: {AGAIN}"

    async def _forget_memories(self, memory: TenantMemory) -> None:
        """Delete all memories: where there may be very many, in steps, between which others' memories are stored."""
        if memory.supports_message_feed:
            await self._forget_in_steps(memory)
        try:
            self.memories += await memory.forget_session(self._session_id)
        except DatabaseUnavailable:
            await self._forget_in_steps(memory)
            self.memories += await memory.forget_session(self._session_id)

    async def _forget_in_steps(self, memory: TenantMemory) -> None:
        """Delete memories until one step has all that are left."""
        from context_builder.memory.memory import MemoryFilter, MemoryQuery

        step, of_session = STEP, MemoryFilter(session_id=self._session_id)
        while True:
            try:
                found = await memory.search(MemoryQuery("", step, filter=of_session, with_texts=False))
                deleted = await memory.forget([one.memory.id for one in found]) if found else 0
            except DatabaseUnavailable:
                if step < SMALLEST_STEP:
                    raise
                step //= 4
                continue
            self.memories += deleted
            if not deleted or len(found) < step:
                return
            typer.echo(f"  {self.memories:,} memories deleted", err=True)
