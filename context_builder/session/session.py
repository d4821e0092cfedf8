"""A session is an actor that owns its conversation and nothing else.

Deliveries, finished analysis and ticks are applied one by one; after each handful everything that changed is committed
in one step. Nothing here owns a process, a thread or a connection, so that one process may run many sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import groupby

import structlog
from redis.asyncio import Redis

from context_builder import metrics
from context_builder.analysis.analyst import Analyst
from context_builder.analysis.turns import share
from context_builder.archive.archive import Archive
from context_builder.clock import Clock, Instant, SystemClock
from context_builder.costs import NO_USAGE
from context_builder.errors import LeaseLost, SessionOwned, StoreError, StoreUnavailable
from context_builder.memory.memory import TenantMemory
from context_builder.session.alarm import Alarm
from context_builder.session.committer import Committer
from context_builder.session.config import SessionConfig
from context_builder.session.conversation import checkpoint
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.published_state import conversation_state
from context_builder.session.conversation.usage import task_of
from context_builder.session.failures import lone_failure_itself, reason_of
from context_builder.session.host.host import HostedSession, Refresh, SessionHost
from context_builder.session.inbox import Batch, Inbox
from context_builder.session.jobs import Dispatch, Jobs, TaskOutcome
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.session.messages.revision import Revision
from context_builder.session.recorder import (
    Charged,
    DeadLettered,
    DeliveriesRejected,
    NoRecorder,
    PhaseChanged,
    Received,
    Recorder,
    Revised,
    TaskFinished,
)
from context_builder.session.relays import Relays
from context_builder.session.store.commit_history import CommitHistory
from context_builder.session.store.store import END_REQUEST, SessionStore
from context_builder.session.usage_metrics import hide_totals, show_totals
from context_builder.storage.redis_availability import until_available


@dataclass(frozen=True, slots=True)
class SessionDependencies:
    """What a session works with; all sessions of a process share it.

    ``last_resort`` answers when a failing analyst cannot be waited for. ``memory`` is fed when the rules say so.
    Without an ``archive`` or a ``memory``, nothing is put aside for it.
    """

    analyst: Analyst
    last_resort: Analyst
    archive: Archive | None
    count_tokens: Callable[[str], int]
    clock: Clock = field(default_factory=SystemClock)
    memory: TenantMemory | None = None


log = structlog.get_logger(__name__)

Event = Batch | TaskOutcome | DeadLettered | Charged | None
"""Events that the loop applies; ``None`` only wakes it."""


class Session:
    """Runs one conversation: ``startup``, ``run``, ``shutdown``; ``serve`` is the three in a row."""

    def __init__(
        self,
        client: Redis,
        session_id: str,
        rules: SessionConfig,
        dependencies: SessionDependencies,
        recorder: Recorder | None = None,
        host: SessionHost | None = None,
    ) -> None:
        self.session_id = session_id
        self.ready = asyncio.Event()
        self.told_to_stop = asyncio.Event()
        self._rules = rules = replace(
            rules,
            archives=rules.archives and dependencies.archive is not None,
            feed_memory=rules.feed_memory and dependencies.memory is not None,
        )
        self._count_tokens = dependencies.count_tokens
        self._clock = dependencies.clock
        self._tenant_id = dependencies.memory.tenant_id if dependencies.memory else ""
        client, list_reader = (host.client, host.list_reader) if host else (client, None)
        self._store = SessionStore(client, session_id, rules, list_reader)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._alarm = Alarm(lambda: self._events.put_nowait(None))
        history = CommitHistory()
        self._host = host
        self._hosted = HostedSession(self._store.keys, self._describe_refresh, self._refreshed, self._attend)
        self._inbox = Inbox(self._store, rules, self._clock, history, self._hosted.arrived if host else None)
        self._recorder = recorder or NoRecorder()
        self._committer = Committer(self._store, self._clock, self._recorder, history)
        put = self._events.put_nowait
        self.relays = Relays(
            self._store, dependencies.archive, dependencies.memory, self._clock, put, feeds=rules.feed_memory
        )
        self._jobs = Jobs(dependencies.analyst, dependencies.last_resort, rules, put)
        self._batches: list[Batch] = []
        self._received: list[BufferedMessage] = []
        self._ending = False
        self._handing_over = False
        self._can_count = False
        self._at_rest = False
        self._must_commit = False
        self._conversation: Conversation | None = None

    @property
    def conversation(self) -> Conversation:
        """Return the conversation, which exists from ``startup`` on."""
        if self._conversation is None:
            raise RuntimeError("the session has not started")
        return self._conversation

    @property
    def is_served(self) -> bool:
        """Return whether Redis takes the session's commits; false before it is ready and once it is told to stop."""
        return self.ready.is_set() and not self.told_to_stop.is_set() and not self._committer.is_late(self._rules.tick)

    def is_idle(self, seconds: float) -> bool:
        """Return whether nobody has spoken for so long, and nothing waits but for a receiver that is away."""
        if not self.ready.is_set() or self._inbox.waiting or not self._events.empty():
            return False
        is_done = self.relays.are_done or self.relays.are_away
        return self.silent_for >= seconds and self.conversation.is_settled and is_done

    @property
    def silent_for(self) -> float:
        """Return the seconds since somebody spoke."""
        return self.conversation.silent_for(self._clock.now())

    def stop(self) -> None:
        """Finish the commit under way and leave; the next run continues the rest."""
        self.told_to_stop.set()
        self._committer.stop()
        self._events.put_nowait(None)

    def hand_over(self) -> None:
        """Leave once Redis has taken one more commit, for which a Redis that is away is waited for.

        Should Redis have lost what this process committed, that commit restores it; who comes next could not.
        """
        self._handing_over = True
        self._attend()

    def end(self) -> None:
        """Summarize and archive what remains, then leave."""
        self._ending = True
        self._events.put_nowait(None)

    async def serve(self, *, takeover: bool = False, wait: bool = True) -> None:
        """Run the session until it is stopped or ended.

        Raises :class:`SessionOwned` when another process runs it and ``wait`` is false, and
        :class:`~context_builder.errors.LeaseLost` when it is taken over or forgotten.
        """
        share.set(self._tenant_id)
        with structlog.contextvars.bound_contextvars(session_id=self.session_id):  # whatever logs on its behalf
            if not await self.startup(takeover=takeover, wait=wait):
                return
            metrics.SESSIONS.inc()
            try:
                await self.run()
            except LeaseLost:
                await self._take_back_if_forgotten()
                raise
            finally:
                metrics.SESSIONS.dec()
                await self.shutdown()

    async def _take_back_if_forgotten(self) -> None:
        try:
            held = await self._store.held()
            if self._store.lineage.was_forgotten(held):
                self._recorder.forget()
                await self.relays.take_back(begun_anew=bool(held.revision))
        except Exception as error:  # noqa: BLE001 a receiver may be anybody's and fail in any way
            log.error("session.forgotten_in_part", advice="forget it again", error=reason_of(error))
            with suppress(StoreError):
                await self._store.forgotten_in_part()

    async def startup(self, *, takeover: bool = False, wait: bool = True) -> bool:
        """Become the owner, continue from the checkpoint, publish. Return false when stopped before that."""
        try:
            if not await self._acquire(takeover=takeover, wait=wait):
                return False
            try:
                async with self._host.starting if self._host else nullcontext():
                    await self._continue()
            except BaseException:  # being cancelled, too: the lease is given back
                await self.shutdown()
                raise
        except StoreUnavailable:
            if self.told_to_stop.is_set():
                return False
            raise
        self.ready.set()
        received = self.conversation.received
        log.info("session.ready", session_id=self.session_id, received=received, waiting=self._inbox.waiting)
        return True

    async def _continue(self) -> None:
        snapshot, now = await self._committer.load(), self._clock.now()
        self._recorder.begin(self.session_id, self._rules, snapshot, now)
        if self._recorder.place:
            with suppress(StoreError):  # a Redis that is full, for one
                await self._store.note_recording(self._recorder.place)
        self._conversation = checkpoint.restore(
            self.session_id, snapshot.fields, snapshot.pending, self._rules, now, self._count_tokens
        )
        self._inbox.highest_number = self._conversation.highest_number
        self._inbox.last_id = self._conversation.last_id
        self._conversation.index_at_least()  # of what an earlier version took in
        self._conversation.resume()
        show_totals(self.session_id, self._conversation.usage_totals)
        self._received += self._conversation.buffer.ordered()  # the last process may not have fed them
        await self._commit(publish=True)

    async def run(self) -> None:
        """Apply what happens until told to stop, or until all is summarized and archived after ``end``."""
        with lone_failure_itself(), self._host.hosting(self._hosted) if self._host else nullcontext():
            async with asyncio.TaskGroup() as tasks:
                beside = (
                    tasks.create_task(self._inbox.feed(self._events.put_nowait), name=f"inbox {self.session_id}"),
                    *(tasks.create_task(run(), name=f"relay {self.session_id}") for run in self.relays.running()),
                    tasks.create_task(self._learn_to_count(), name=f"tokens {self.session_id}"),
                )
                try:
                    await self._live(tasks)
                finally:
                    self._alarm.cancel()
                    self._jobs.cancel()
                    for task in beside:
                        task.cancel()

    async def shutdown(self) -> None:
        """Give the lease back, so that the next run starts at once."""
        try:
            await self._store.release()
        except StoreUnavailable as error:
            log.warning("session.lease_kept", session_id=self.session_id, error=str(error))
        self._inbox.expect(0)
        if self._conversation:
            hide_totals(self.session_id, self._conversation.usage_totals)
        self._recorder.end()
        log.info("session.stopped", session_id=self.session_id, revision=self._store.revision)

    async def _acquire(self, *, takeover: bool, wait: bool) -> bool:
        reported: str | None = None
        while not (self.told_to_stop.is_set() or self._handing_over):
            try:
                await self._committer.acquire(takeover=takeover)
            except SessionOwned as owned:
                if not wait:
                    raise
                if str(owned) != reported and not self._ending:  # its owner was asked to end it
                    reported = str(owned)
                    log.warning("session.waiting", reason=reported, hint="--takeover takes it, --no-wait gives up")
                await self._next_event(self._rules.tick)
            else:
                return True
        self.stop()
        return False

    async def _learn_to_count(self) -> None:
        """Count once in a thread: it may load a vocabulary, for which no message is to wait. Summaries do."""
        await asyncio.to_thread(self._count_tokens, "")
        self._can_count = True
        self._events.put_nowait(None)

    async def _live(self, tasks: asyncio.TaskGroup) -> None:
        dispatch = Dispatch(self.conversation, self._jobs, self._store, self._recorder, self._clock)
        while not self.told_to_stop.is_set():
            now = self._clock.now()
            ticks = self._host is None or self._ending
            can_start = self._jobs.have_room and self._can_count
            moment = self.conversation.next_moment(now, can_start_tasks=can_start, ticks=ticks)
            self._at_rest = not ticks
            self._apply(await self._next_event(moment - now.monotonic))
            self._at_rest = False
            self._apply_all()
            while self._batches and dispatch.read_at_once(more_to_come=self._inbox.waiting > 0):
                self._apply_all()
            ending, leaving = self._ending, self._handing_over  # before the commit, which then has it all
            try:
                if ticks or self._has_something_to_commit:
                    await self._commit()
                if leaving:
                    self.stop()
                if ending and await self._has_ended():
                    return
                await dispatch.start(tasks, more_to_come=self._inbox.waiting > 0, can_count=self._can_count)
            except StoreUnavailable:
                self._must_commit = True  # which waits until Redis is back, and restores what it lost

    @property
    def _has_something_to_commit(self) -> bool:
        return bool(self._must_commit or self._ending or self._batches or self.conversation.has_changed)

    def _describe_refresh(self) -> Refresh | None:
        """Return what the host refreshes while nothing happens here."""
        if not self._at_rest or not self._events.empty():
            return None
        latest = self._store.lineage.base
        state = conversation_state(self.conversation, self._clock.now())
        return Refresh(self._store.lease, latest.revision, latest.by, state)

    def _refreshed(self, waiting: int) -> None:
        """Note that Redis holds the session as this process knows it, with ``waiting`` deliveries at least."""
        self._committer.refreshed()
        self._inbox.expect(waiting)
        self.relays.refreshed()

    def _attend(self) -> None:
        """Commit, which tells what the matter is."""
        self._must_commit = True
        self._events.put_nowait(None)

    async def _next_event(self, timeout: float) -> Event:
        """Return the next event, or None after so many seconds."""
        if self._events.empty():
            self._alarm.ring_in(timeout)
        event = await self._events.get()
        self._alarm.silence()
        return event

    def _apply_all(self) -> None:
        """Apply all that has happened."""
        while not self._events.empty():
            self._apply(self._events.get_nowait())

    def _apply(self, event: Event) -> None:
        now = self._clock.now()
        if isinstance(event, Batch):
            self._batches.append(event)
            for is_new, events in groupby(event.events, lambda one: isinstance(one, Message)):
                if is_new:
                    self._receive([one for one in events if isinstance(one, Message)], now)
                else:
                    self._revise([one for one in events if not isinstance(one, Message)], now)
            if dead := len(event.dead):
                self.conversation.count_dead_letters(dead)
                self._recorder.happened(DeliveriesRejected(dead), now)
        elif isinstance(event, TaskOutcome) and self.conversation.dismissed(event.task):
            usage = event.usage if event.result is None else event.result.usage
            if usage is not None and usage is not NO_USAGE:
                self._apply(Charged(task_of(event.task), usage))
        elif isinstance(event, TaskOutcome):
            if event.result is None:
                self.conversation.fail(event.task, now, event.retry_after, event.usage, event.reason)
            else:
                self.conversation.finish(event.task, event.result, now)
            if (event.usage if event.result is None else event.result.usage) is not NO_USAGE:
                show_totals(self.session_id, self.conversation.usage_totals)
            self._recorder.happened(TaskFinished(event.task, event.result, event.usage, event.reason), now)
        elif isinstance(event, Charged):
            self.conversation.charge(event.task, event.usage)
            show_totals(self.session_id, self.conversation.usage_totals)
            self._recorder.happened(event, now)
        elif isinstance(event, DeadLettered):
            self.conversation.dead_lettered(event.receiver, event.count)
            self._recorder.happened(event, now)

    def _receive(self, messages: Sequence[Message], now: Instant) -> None:
        self._received += self.conversation.receive(messages, now)
        self._recorder.happened(Received(messages, self.conversation.last_id), now)

    def _revise(self, revisions: Sequence[Revision], now: Instant) -> None:
        self._received += self.conversation.revise(revisions, now)
        self._recorder.happened(Revised(revisions), now)

    async def _commit(self, *, publish: bool = False) -> None:
        struck = self.conversation.struck
        if struck:  # before the commit, since it may be done again
            self.relays.struck(message.entry_id for message, _ in struck)
            async for attempt in self._committer.attempts():
                with attempt:
                    await self._store.waiting_items.strike(struck, self.conversation.revisions.superseded_since)
        revisions = self.conversation.revisions
        if self.conversation.undeliverable["archive"] and revisions.superseded_since is not None and not struck:
            async for attempt in self._committer.attempts():
                with attempt:
                    await self._store.waiting_items.supersede(revisions.superseded_since)
        batches, self._batches = self._batches, []
        gone = {message.entry_id for message, _ in struck}
        received, self._received = [entry for entry in self._received if entry.id not in gone], []
        self._must_commit = False
        self._hosted.committing()
        committed = await self._committer.commit(self.conversation, batches, publish=publish)
        self._inbox.make_room(has_room=self.conversation.has_room)
        if struck:
            await self._record_anew()
        for batch in batches:
            batch.settle()
        self._inbox.expect(committed.waiting)
        self.relays.committed(committed, received)
        if self._host:
            self._hosted.committed(self._rules.tick, self.conversation.silent_in(self._clock.now()))
        if not committed.state_present:  # it expired, or is not what an edit was made for: readers come before work
            self.conversation.everything_changed()
            await self._commit()
        if committed.request == END_REQUEST:
            self._ending = True
            with suppress(StoreUnavailable):  # it is seen again by the next commit
                await self._store.clear_request()

    async def _record_anew(self) -> None:
        """Delete what was recorded, which tells what was struck, and begin again."""
        if not self._recorder.place:
            return
        self._recorder.forget()
        with suppress(StoreUnavailable):
            async for attempt in until_available(lambda _: not self.told_to_stop.is_set()):
                with attempt:
                    snapshot = await self._store.read()
            self._recorder.begin(self.session_id, self._rules, snapshot, self._clock.now())

    async def _has_ended(self) -> bool:
        if self._inbox.waiting or not self._events.empty():
            return False
        if not self.conversation.all_summarized:
            self.conversation.close()
            self._recorder.happened(PhaseChanged("closing"), self._clock.now())
            return False
        if self.conversation.ended_at is None:
            now = self._clock.now()
            self.conversation.end(now)
            self._recorder.happened(PhaseChanged("ended"), now)
            await self._commit()
        return self.relays.are_done_or_given_up(self.session_id)
