"""The committer owns a session and writes it to Redis, through every failure that can be waited out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from context_builder import metrics
from context_builder.clock import Clock, Instant
from context_builder.errors import LeaseLost, SessionOwned, StoreDiverged, StoreUnavailable, WrongKeyType
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import (
    conversation_state,
    take_session_state,
    write_counters,
    write_head,
    write_order,
)
from context_builder.session.events import Recorder
from context_builder.session.inbox import NO_DELIVERIES, Batch
from context_builder.session.messages.message_index import INDEXED
from context_builder.session.store.commit import Commit, Committed
from context_builder.session.store.lease import this_holder
from context_builder.session.store.recovery import CommitHistory, HeldRevision, StoredSession
from context_builder.session.store.store import SessionStore
from context_builder.session.stored import Checkpoint
from context_builder.storage.redis_availability import until_available
from context_builder.tracing import note_span

log = structlog.get_logger(__name__)

LATE: Final = 1.0
"""Seconds that a commit may be late, waiting or under way, before the session counts as not served."""

WORTH_TELLING: Final = 0.5
"""Seconds without Redis that are logged. A connection that was merely closed is replaced sooner, by the second try."""


@dataclass(slots=True)
class _Attempt:
    """Writes ``commit`` next: the ``changes`` alone or, where Redis fell back, all of the session.

    ``described_at`` is the moment at which it tells the session.
    """

    changes: Commit
    commit: Commit
    described_at: Instant


class Committer:
    """Writes a conversation's changes under this process's lease.

    Redis being away is waited for, unless ``told_to_stop``; then it ends the attempt. A key of another type is not
    waited for while it ``hands_over``: that Redis is there, and the other sessions are waiting for the last to leave.
    """

    def __init__(self, store: SessionStore, clock: Clock, recorder: Recorder | None, history: CommitHistory) -> None:
        self.store = store
        self.told_to_stop = asyncio.Event()
        self.hands_over = False
        self._clock = clock
        self._recorder = recorder
        self._history = history
        self._away_since: Instant | None = None
        self._vain_tries = 0
        self._wrong_key = ""
        self._committed_at = float("-inf")

    def is_late(self, tick: float) -> bool:
        """Return whether Redis has taken no commit for longer than ``tick`` seconds and some to spare."""
        return self._clock.now().monotonic - self._committed_at > tick + LATE

    def refreshed(self) -> None:
        """Note that Redis still takes what this process writes of the session."""
        self._committed_at = self._clock.now().monotonic

    async def acquire(self, *, takeover: bool) -> None:
        """Become the session's owner. Raises :class:`SessionOwned` when another process is."""
        async for attempt in until_available(self._is_worth_waiting):
            with attempt:
                await self.store.acquire(this_holder(self._clock.now().wall), takeover=takeover)
        self._is_back()

    async def load(self) -> StoredSession:
        """Return the session as Redis holds it; commits continue from there."""
        async for attempt in until_available(self._is_worth_waiting):
            with attempt:
                snapshot = await self.store.load()
        self._is_back()
        with Checkpoint(self.store.keys.session_id, snapshot.fields).reading("unidentified"):
            self._history.begin(snapshot, self._clock.now())
        return snapshot

    async def revise_what_waits(self, conversation: Conversation) -> None:
        """Take what was struck, and summaries that no longer hold, out of what waits for archive and memory or was
        refused there. This comes before the commit that tells archive and memory, since it may be repeated.
        """
        waiting, since = self.store.waiting_items, conversation.revisions.superseded_since
        if conversation.struck:
            await self._through(lambda: waiting.strike(conversation.struck, since))
        elif since is not None and conversation.undeliverable["archive"]:
            await self._through(lambda: waiting.supersede(since))

    async def _through(self, revise: Callable[[], Awaitable[None]]) -> None:
        async for attempt in until_available(self._is_worth_waiting):
            with attempt:
                await revise()

    async def commit(
        self, conversation: Conversation, batch: Batch = NO_DELIVERIES, *, publish: bool = False
    ) -> Committed:
        """Write what changed, or refresh what expires; repeat until Redis has it.

        Raises :class:`LeaseLost` when the session belongs to somebody else, and
        :class:`StoreUnavailable` only when told to stop: what is not acknowledged then is read again by the next run.
        """
        next_attempt = self._describe(conversation, batch, publish=publish)
        started, begun = time.perf_counter(), self._clock.now().wall
        async for attempt in until_available(self._is_worth_waiting):
            with attempt:
                committed = await self._write(conversation, next_attempt)
        metrics.COMMIT_SECONDS.observe(time.perf_counter() - started)
        self._committed_at = self._clock.now().monotonic
        self._is_back()
        self._trace(batch, begun)
        return committed

    def _trace(self, batch: Batch, begun: float) -> None:
        """Record in the trace of each message that it was published."""
        for trace in (message.trace for message in batch.messages if message.trace):
            told: dict[str, str | int] = {"session.id": self.store.keys.session_id}
            told["session.revision"] = self.store.revision
            now = self._clock.now().wall
            note_span("session.publish", told, parent=trace, begin=begun, end=now)

    def _describe(self, conversation: Conversation, batch: Batch, *, publish: bool) -> _Attempt:
        # The changes leave the conversation here and are held by the attempt, which is repeated until Redis has them.
        changes = conversation.take_changes()
        if batch.unidentified:
            changes.fields["unidentified"] = self._history.unidentified.encode(batch.unidentified)
        now = self._clock.now()
        written = changes.dirty or batch is not NO_DELIVERIES
        published = changes.dirty or publish
        counted = write_counters(conversation) if written or published else b""
        commit = Commit(
            conversation_state=conversation_state(conversation, now),
            silent_for=conversation.silent_for(now),
            state=take_session_state(conversation, self.store.revision + 1, now, counted) if published else None,
            head=write_head(conversation, counted) if written else b"",
            order=write_order(conversation) if written else b"",
            changes=changes,
            acknowledged=batch.raw,
            identities=batch.identities,
            index=batch.index,
            indexed_from=conversation.last_id - INDEXED + 1,
            dead=batch.dead,
            unidentified=batch.unidentified,
            begin=batch.begin,
            end=batch.end,
        )
        return _Attempt(commit, commit, now)

    async def _write(self, conversation: Conversation, attempt: _Attempt) -> Committed:
        # Each refusal says what Redis holds; the attempt is built on that and put again. It ends, because only this
        # process or its successor writes: a successor raises LeaseLost out of here.
        while True:
            try:
                return await self._put(attempt)
            except LeaseLost as lost:
                await self._own_again(lost)
            except StoreDiverged:
                pass
            await self._adapt(conversation, attempt)

    async def _own_again(self, lost: LeaseLost) -> None:
        """Go on after a long silence from Redis, or a suspended machine, if nobody else came in between.

        In a Redis that fell back, the lease may be that of somebody who was replaced, or who has just begun with less
        than this process remembers. It is taken from them; should they write first, the next commit is refused.
        """
        # A lease can be lost in three ways: it ran out while this process slept, Redis fell back to an earlier owner's,
        # or somebody took it over. Only in the last may this process not go on.
        held, lineage = await self.store.held(), self.store.lineage
        fell_back = lineage.knows(held) and lineage.is_behind(held)
        if not (lost.expired or fell_back):
            raise lost
        self._check(held)
        try:
            await self.store.acquire(this_holder(self._clock.now().wall), takeover=fell_back)
        except SessionOwned:
            raise lost from None
        log.warning("session.owned_again", session_id=self.store.keys.session_id)

    def _check(self, held: HeldRevision) -> None:
        """Raise :class:`LeaseLost` unless this process may write over what Redis holds."""
        lineage = self.store.lineage
        if not lineage.knows(held):
            what = "was forgotten" if lineage.was_forgotten(held) else "was continued by another process"
            raise LeaseLost(f"session {self.store.keys.session_id} {what}")

    async def _adapt(self, conversation: Conversation, attempt: _Attempt) -> None:
        """Build the attempt on what Redis holds, with all of the session if that is older than this process."""
        held, revision = await self.store.held(), self.store.revision
        self._check(held)
        attempt.commit = attempt.changes  # not a rewrite that was built on what Redis held before
        if self.store.lineage.is_behind(held):
            log.error("store.fell_back", session_id=self.store.keys.session_id, revision=revision, held=held.revision)
            self._rewrite(conversation, attempt, held.revision)
        self.store.rebase(held)

    async def _put(self, attempt: _Attempt) -> Committed:
        commit, revision = attempt.commit, self.store.revision + 1
        committed = await self.store.commit(commit)
        self._wrong_key = ""  # a commit looks at all of them
        now = self._clock.now()
        self._history.acknowledged(committed.position)
        (self._history.unidentified.fell_back if commit.rewrite else self._history.unidentified.held)(now)
        if commit.head:
            kept = attempt.changes  # of a rewrite, the rest is remembered already
            self._history.keep(revision, kept.lists, kept.identities, kept.unidentified, now)
        if self._recorder and commit.state is not None and committed.state_present:
            self._recorder.published(revision, commit.state, attempt.described_at)
        return committed

    def _rewrite(self, conversation: Conversation, attempt: _Attempt, held: int) -> None:
        """Let the attempt write everything that Redis, fallen back to revision ``held``, has lost."""
        commit, now = attempt.changes, self._clock.now()
        attempt.described_at = now
        conversation.everything_changed()
        everything = conversation.take_changes()
        # What the attempt holds left the conversation before: list items and ids that only it still knows.
        everything.follow(commit.changes)
        everything.fields["unidentified"] = self._history.unidentified.encode(commit.unidentified)
        counted = write_counters(conversation)
        state = take_session_state(conversation, self.store.revision + 1, now, counted)
        if commit.state is not None:  # which cannot be had any more
            attempt.changes = replace(commit, state=state)
        attempt.commit = replace(
            commit,
            state=state,
            head=write_head(conversation, counted),
            order=write_order(conversation),
            changes=everything,
            identities=[*self._history.identities, *commit.identities],
            rewrite=True,
            replayed=self._history.lists_after(held),
            pending=conversation.buffer.pending,
        )

    def _is_worth_waiting(self, error: Exception) -> bool:
        if not isinstance(error, StoreUnavailable):
            self._is_back()  # it answered
            return False
        if isinstance(error, WrongKeyType) and str(error) != self._wrong_key:
            self._wrong_key = str(error)
            log.error("store.wrong_type", error=self._wrong_key, advice="delete or rename the key; the session waits")
        self._away_since = self._away_since or self._clock.now()
        self._vain_tries += 1
        return not (self.told_to_stop.is_set() or (self.hands_over and isinstance(error, WrongKeyType)))

    def _is_back(self) -> None:
        """Log that Redis is back, if it was away for long enough."""
        if self._away_since is not None:
            waited = round(self._clock.now().monotonic - self._away_since.monotonic, 2)
            if waited >= WORTH_TELLING or self._vain_tries > 1:
                log.warning("redis.back", session_id=self.store.keys.session_id, waited_seconds=waited)
            self._away_since, self._vain_tries = None, 0
