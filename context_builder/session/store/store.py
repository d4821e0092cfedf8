"""The session store speaks to Redis for one session: its lease, input list, checkpoint and commits."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal
from uuid import uuid4

import orjson
from redis.asyncio import Redis

from context_builder.errors import LeaseLost, SessionOwned, StoreDiverged, StoreUnavailable
from context_builder.session.config import SessionConfig
from context_builder.session.keys import FENCE, FORGOTTEN, SUMMARY_SEQS, Keys
from context_builder.session.store.commit import (
    Commit,
    Committed,
    StatePatch,
    StoredState,
    commit_arguments,
    commit_keys,
    constant_arguments,
)
from context_builder.session.store.deliveries import ANSWER_TIMEOUT, WHOLE_BYTES, ListRead, ListReader, OldestDelivery
from context_builder.session.store.lease import describe, has_died, is_forgotten
from context_builder.session.store.outboxes import Outbox, WaitingItems
from context_builder.session.store.recovery import HeldRevision, Lineage, Lists, StoredSession
from context_builder.session.store.scripts import BoundScript, script
from context_builder.session.stored import OWNER, Checkpoint, count_of
from context_builder.storage.redis_availability import translated, translation

END_REQUEST: Final = "end"
"""Value that another process writes to ``control`` to have the owner end the session."""

NEWEST: Final = 2000
"""Newest items of each list that are read when a session is continued."""

SLOWEST: Final = 1_000_000
"""Bytes a second; what sends more is given more time."""

RELEASE_TIMEOUT: Final = 0.5
"""Seconds; who stops is waited for."""

TOMBSTONE: Final = orjson.dumps({"token": 0, "forgotten": True})
TOMBSTONE_IN_PART: Final = orjson.dumps({"token": 0, "forgotten": True, "in_part": True})
TOMBSTONE_MS: Final = 60_000


class SessionStore:
    """Reads and writes one session in Redis, for the process that may own it.

    The client is shared, as ``list_reader`` may be; nothing here owns a connection. Every method raises
    :class:`StoreUnavailable` when Redis cannot be reached or is not ready.
    """

    def __init__(
        self, client: Redis, session_id: str, rules: SessionConfig, list_reader: ListReader | None = None
    ) -> None:
        self.keys = Keys(session_id)
        self.outbox = Outbox(client, session_id, "archive", rules)
        self.memory_outbox = Outbox(client, session_id, "memory", rules)
        self.waiting_items = WaitingItems(client, session_id)
        self._client = client
        self._rules = rules
        self._lease = b""
        self._nonce = uuid4().hex
        self._published: StoredState | None = None
        self._revision = 0
        self.lineage = Lineage(self._nonce.encode())
        self._oldest = OldestDelivery(client, self.keys.input)
        self._list_reader = list_reader or ListReader(client)
        self._commit_script = script(client, "commit")
        self._commit = self._bound_commit()
        self._acquire = script(client, "acquire")
        self._release = script(client, "release")
        self._load = script(client, "load")
        self._held = script(client, "held")

    @property
    def revision(self) -> int:
        """Return the number of commits so far; the next one is accepted only on top of it."""
        return self._revision

    async def acquire(self, holder: Mapping[str, Any], *, takeover: bool = False) -> None:
        """Become the owner, at once also when the present one provably died.

        Raises :class:`SessionOwned` naming the present owner.
        """
        lease_ms = int(self._rules.lease * 1000)
        # The script takes a lease that is free, or whose value is `expected`: that of an owner who was seen to be dead.
        # Should another process have taken it in between, its value differs, and its owner is looked at in turn.
        expected = b""
        while True:
            described = orjson.dumps({**holder, "nonce": self._nonce})
            args: list[bytes | int | str] = [described, lease_ms, expected, int(takeover), self._nonce]
            async with translated():
                taken, value = await self._acquire(keys=[self.keys.owner, FENCE], args=args)
            if taken:
                self._lease = value
                self._commit = self._bound_commit()
                return
            present = OWNER.read(value)  # nobody holds a lease that is none
            if expected == value or not (not present or is_forgotten(present) or has_died(present)):
                raise SessionOwned(f"session {self.keys.session_id} is run by {describe(present)}")
            expected = value

    async def release(self) -> None:
        """Give the lease back so that the next owner need not wait; where Redis is stalled, it runs out by itself."""
        async with translated(RELEASE_TIMEOUT):
            await self._release(keys=[self.keys.owner], args=[self._lease])

    async def load(self) -> StoredSession:
        """Return the session's checkpoint; commits continue from its revision."""
        stored, held, ancestors, lengths = await self._read()
        self._revision = held.revision
        with Checkpoint(self.keys.session_id, stored.fields).reading("ancestors"):
            self.lineage = self.lineage.loaded(held, ancestors)
        return replace(stored, newest=await self._newest(*lengths))

    async def read(self) -> StoredSession:
        """Return the session's checkpoint as it is, without what lists hold, and go on as before."""
        return (await self._read())[0]

    async def _read(self) -> tuple[StoredSession, HeldRevision, bytes | None, Sequence[int]]:
        keys = self.keys
        read = [keys.checkpoint, keys.recent, keys.pending, keys.outbox, keys.memory_outbox, keys.dead]
        read += SUMMARY_SEQS, FORGOTTEN
        async with translated():
            answer = await self._load(keys=read, args=[keys.session_id, keys.forgotten_field])
        checkpoint, identities, summary_seq, mark, *lengths = answer
        fields = dict(zip(checkpoint[::2], checkpoint[1::2], strict=True))
        named = {name.decode(): value for name, value in fields.items()}
        stored = Checkpoint(keys.session_id, {**named})
        by = stored.read("by", lambda writer: writer.decode().encode())
        held = HeldRevision(stored.read("revision", count_of, b"0"), by, mark or b"")
        for name in ("revision", "by"):
            named.pop(name, None)
        position, ancestors = named.pop("position", b""), named.pop("ancestors", None)
        if summary_seq is not None:
            named["summary_seq"] = summary_seq
        return StoredSession(held.revision, named, lengths[0], position, identities), held, ancestors, lengths

    async def _newest(self, pending: int, outbox: int, memory_outbox: int, dead: int) -> Lists:
        """Return the newest items of the lists; Redis is not asked for empty ones."""
        keys = self.keys
        return Lists(
            await self._newest_of(keys.pending, "right") if pending else (),
            await self._newest_of(keys.outbox, "right") if outbox else (),
            await self._newest_of(keys.memory_outbox, "right") if memory_outbox else (),
            await self._newest_of(keys.dead, "left") if dead else (),
        )

    async def _newest_of(self, key: str, end: Literal["left", "right"]) -> list[bytes]:
        return (await self._read_held(key, NEWEST, end))[::-1]

    async def held(self) -> HeldRevision:
        """Return the revision Redis holds: the lineage's latest unless data or an answer was lost, or another process
        commits.
        """
        async with translated():
            answer = await self._held(keys=[self.keys.checkpoint, FORGOTTEN], args=[self.keys.forgotten_field])
        revision, by, mark = answer
        return HeldRevision(int(revision), by, mark)

    def rebase(self, held: HeldRevision) -> None:
        """Let the next commit build on what Redis holds."""
        self.lineage = self.lineage.rebased(held)

    @property
    def lease(self) -> bytes:
        """Return the value of the lease as this process holds it."""
        return self._lease

    async def next_input(self, seconds: int) -> bytes | None:
        """Wait for the oldest delivery and return it. It stays in the list."""
        return await self._oldest.wait(seconds)

    async def read_input(self) -> ListRead:
        """Return the oldest deliveries, oldest first; they stay in the list until a commit acknowledges them.

        One that is too large for a message, and to be kept whole, is cut.
        """
        largest = max(WHOLE_BYTES, self._rules.max_message_bytes)
        read, count = self._list_reader.read, self._rules.read_batch
        return await read(self.keys.input, self.keys.checkpoint, count, "right", largest=largest)

    async def are_known(self, identities: Sequence[bytes]) -> list[bool]:
        """Return which of the identities were taken in before."""
        if not identities:
            return []
        async with translated():
            return [bool(known) for known in await _answer(self._client.smismember(self.keys.seen, [*identities]))]

    async def read_index(self, fields: Collection[str]) -> dict[str, bytes]:
        """Return these fields of the message index, as far as there are any."""
        names = [*fields]
        async with translated():
            held = await _answer(self._client.hmget(self.keys.message_index, names))
        return {name: value for name, value in zip(names, held, strict=True) if value is not None}

    async def read_pending(self, count: int) -> list[bytes]:
        """Return the oldest pending messages, oldest first; fewer when they are large.

        Of a Redis that has fallen back nothing is read: the next commit restores the list.
        """
        return await self._read_held(self.keys.pending, count, "left")

    async def _read_held(self, key: str, count: int, end: Literal["left", "right"]) -> list[bytes]:
        """Read items of a list that belong to the newest commit known. Raises :class:`StoreUnavailable` if Redis is at
        another one: it fell back, or somebody else writes.
        """
        read, latest = await self._list_reader.read(key, self.keys.checkpoint, count, end), self.lineage.latest
        if (read.revision, read.by) != (latest.revision, latest.by):
            raise StoreUnavailable("Redis has fallen back")
        return read.items

    async def note_recording(self, place: str) -> None:
        """Note where the session is recorded, so that who forgets it knows."""
        async with translated():
            await _answer(self._client.sadd(self.keys.recordings, place))

    async def forgotten_in_part(self) -> None:
        """Tell who forgot the session that something of it may still be delivered, unless it was begun anew."""
        async with translated(RELEASE_TIMEOUT):
            args = [TOMBSTONE, TOMBSTONE_IN_PART, TOMBSTONE_MS]
            await script(self._client, "in_part")(keys=[self.keys.owner], args=args)

    async def clear_request(self) -> None:
        async with translated():
            await self._client.delete(self.keys.control)

    async def commit(self, commit: Commit) -> Committed:
        """Write everything in one atomic step, which counts once even if it is sent again after a lost answer.

        Raises :class:`LeaseLost` when somebody else owns the session and :class:`StoreDiverged`
        when Redis holds another revision than the one this process wrote last.
        """
        # Without a head nothing is written to the checkpoint, so the revision stays: only what expires is refreshed.
        target = self._revision + 1 if commit.head else self.lineage.base.revision
        acknowledged = commit.acknowledged
        patch = StatePatch.between(self._published, commit.state) if commit.state is not None else None
        patience = _patience(commit, patch)
        while True:
            args = commit_arguments(commit, self.lineage, target, patch, acknowledged)
            try:
                answer = await self._commit(args, patience)
            except Exception as error:
                if translated_error := translation(error, patience):
                    raise translated_error from None
                raise
            status, waiting, undelivered, unremembered, request, state_present, detail = answer
            if status == b"ok":
                if target > self._revision:  # also a rewrite that was not heard of, on which this commit builds
                    self._revision, self.lineage = target, self.lineage.committed(target)
                # The next state is sent as edits of this one, so it must be what Redis really holds.
                self._published = (patch.result if patch else self._published) if state_present else None
                return Committed(waiting, undelivered, unremembered, request.decode(), bool(state_present), detail)
            if status == b"input_changed":
                # Redis fell back in between, or somebody else took deliveries away. What is left is read again, and
                # then known.
                acknowledged = ()
            elif status == b"fenced":
                raise LeaseLost(self._why_fenced(detail), expired=not detail or self._asked_for(detail))
            else:
                raise StoreDiverged(int(detail), self._revision)

    def _bound_commit(self) -> BoundScript:
        constant = constant_arguments(self._lease, self.lineage, self._rules, self.keys)
        return self._commit_script.bound(commit_keys(self.keys), constant)

    def _asked_for(self, lease: bytes) -> bool:
        """Return whether this process asked for the lease, heard of it or not."""
        return OWNER.read(lease).get("nonce") == self._nonce

    def _why_fenced(self, present: bytes) -> str:
        if not present:
            return f"the lease of session {self.keys.session_id} ran out"
        return f"session {self.keys.session_id} is now run by {describe(OWNER.read(present))}"


def _patience(commit: Commit, patch: StatePatch | None) -> float:
    """Return the seconds that a commit may take, the large ones longer. Sent again, it counts once."""
    return ANSWER_TIMEOUT + ((patch.size if patch else 0) + sum(map(len, commit.acknowledged))) / SLOWEST


async def _answer(command: Awaitable[Any] | Any) -> Any:
    """redis-py types its commands as sync or async at once; these are async."""
    return await command
