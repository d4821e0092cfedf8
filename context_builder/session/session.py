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
from math import inf
from typing import Literal

import structlog
from redis.asyncio import Redis

from context_builder import metrics
from context_builder.analysis.analyst import Analyst
from context_builder.archive.archive import Archive
from context_builder.clock import Clock, Instant, SystemClock
from context_builder.concurrency import share
from context_builder.costs import NO_USAGE
from context_builder.errors import LeaseLost, SessionOwned, StoreError, StoreUnavailable, WrongKeyType
from context_builder.memory.memory import TenantMemory
from context_builder.session.committer import Committer
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import conversation_state, restore
from context_builder.session.conversation.tasks import TaskUsage, UsageTotals, task_of
from context_builder.session.events import (
    Charged,
    DeadLettered,
    DeliveriesRejected,
    PhaseChanged,
    Received,
    Recorder,
    Revised,
    SessionEvent,
    TaskFinished,
)
from context_builder.session.failures import lone_failure_itself, reason_of
from context_builder.session.host import HostedSession, Refresh, SessionHost
from context_builder.session.inbox import NO_DELIVERIES, Batch, Inbox
from context_builder.session.jobs import Dispatch, Jobs, TaskOutcome
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.session.messages.revision import Revision
from context_builder.session.relays import Relays
from context_builder.session.store.recovery import CommitHistory
from context_builder.session.store.store import END_REQUEST, SessionStore
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


@dataclass(slots=True)
class _Uncommitted:
    """What was applied since the last commit: deliveries, and the messages that the next commit is the first to
    contain. A commit that ``is_due`` is made even if there is none of it.
    """

    batch: Batch = NO_DELIVERIES
    messages: list[BufferedMessage] = field(default_factory=list)
    is_due: bool = False


class Session:
    """Runs one conversation: ``startup``, ``run``, ``shutdown``; ``serve`` is the three in a row.

    It is alone ``on`` a Redis, or one of many ``on`` a host, which does what is periodic for all of them.
    """

    def __init__(
        self,
        on: Redis | SessionHost,
        session_id: str,
        rules: SessionConfig,
        dependencies: SessionDependencies,
        recorder: Recorder | None = None,
    ) -> None:
        rules = replace(
            rules,
            archives=rules.archives and dependencies.archive is not None,
            feed_memory=rules.feed_memory and dependencies.memory is not None,
        )
        host = on if isinstance(on, SessionHost) else None
        client = on.client if isinstance(on, SessionHost) else on
        store = SessionStore(client, session_id, rules, host.list_reader if host else None)
        clock, history = dependencies.clock, CommitHistory()
        self.ready = asyncio.Event()
        self.conversation = Conversation(session_id, rules, clock.now(), dependencies.count_tokens)
        self._dependencies = dependencies
        self._recorder = recorder
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        put = self._events.put_nowait
        self._hosted = (
            HostedSession(store.keys, self._describe_refresh, self._refreshed, self._attend, host) if host else None
        )
        self._inbox = Inbox(store, rules, clock, history, self._hosted.arrived if self._hosted else None)
        self._committer = Committer(store, clock, recorder, history)
        self.relays = Relays(store, dependencies.archive, dependencies.memory, clock, put, feeds=rules.feed_memory)
        self._jobs = Jobs(dependencies.analyst, dependencies.last_resort, rules, put)
        self._uncommitted = _Uncommitted()
        self._leaving: Literal["", "ending", "handing over"] = ""

    @property
    def session_id(self) -> str:
        return self.conversation.session_id

    @property
    def told_to_stop(self) -> asyncio.Event:
        """Return the event that is set once the session is told to stop."""
        return self._committer.told_to_stop

    @property
    def _rules(self) -> SessionConfig:
        return self.conversation.rules

    @property
    def _store(self) -> SessionStore:
        return self._committer.store

    def _now(self) -> Instant:
        return self._dependencies.clock.now()

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
        return self.conversation.silent_for(self._now())

    def stop(self) -> None:
        """Finish the commit under way and leave; the next run continues the rest."""
        self.told_to_stop.set()
        self._events.put_nowait(None)

    def hand_over(self) -> None:
        """Leave once Redis has taken one more commit, for which a Redis that is away is waited for, but no key of
        another type.

        Should Redis have lost what this process committed, that commit restores it; who comes next could not.
        """
        self._leaving = "handing over"
        self._committer.hands_over = True
        self._attend()

    def end(self) -> None:
        """Summarize and archive what remains, then leave, unless the session is being handed over."""
        self._leaving = self._leaving or "ending"
        self._events.put_nowait(None)

    async def serve(self, *, takeover: bool = False, wait: bool = True) -> None:
        """Run the session until it is stopped or ended.

        Raises :class:`SessionOwned` when another process runs it and ``wait`` is false, and
        :class:`~context_builder.errors.LeaseLost` when it is taken over or forgotten.
        """
        share.set(self._dependencies.memory.tenant_id if self._dependencies.memory else "")
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
                if self._recorder:
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
                async with self._hosted.host.starting if self._hosted else nullcontext():
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
        snapshot, now = await self._committer.load(), self._now()
        if self._recorder:
            self._recorder.begin(self.session_id, self._rules, snapshot, now)
            with suppress(StoreError):  # a Redis that is full, for one
                await self._store.note_recording(self._recorder.place)
        count_tokens = self._dependencies.count_tokens
        self.conversation = restore(self.session_id, snapshot.fields, snapshot.pending, self._rules, now, count_tokens)
        self._inbox.continue_from(self.conversation.last_id, self.conversation.highest_number)
        self.conversation.resume()
        _show_totals(self.session_id, self.conversation.usage_totals)
        self._uncommitted.messages += self.conversation.buffer.ordered()  # the last process may not have fed them
        await self._commit(publish=True)

    async def run(self) -> None:
        """Apply what happens until told to stop, or until all is summarized and archived after ``end``."""
        with lone_failure_itself(), self._hosted.host.hosting(self._hosted) if self._hosted else nullcontext():
            async with asyncio.TaskGroup() as tasks:
                beside = (
                    tasks.create_task(self._inbox.feed(self._events.put_nowait), name=f"inbox {self.session_id}"),
                    *(tasks.create_task(run(), name=f"relay {self.session_id}") for run in self.relays.running()),
                    tasks.create_task(self._learn_to_count(), name=f"tokens {self.session_id}"),
                )
                try:
                    await self._live(tasks)
                finally:
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
        _hide_totals(self.session_id, self.conversation.usage_totals)
        if self._recorder:
            self._recorder.end()
        log.info("session.stopped", session_id=self.session_id, revision=self._store.revision)

    async def _acquire(self, *, takeover: bool, wait: bool) -> bool:
        reported: str | None = None
        while not (self.told_to_stop.is_set() or self._leaving == "handing over"):
            try:
                await self._committer.acquire(takeover=takeover)
            except SessionOwned as owned:
                if not wait:
                    raise
                if str(owned) != reported and not self._leaving:  # its owner was asked to end it
                    reported = str(owned)
                    log.warning("session.waiting", reason=reported, hint="--takeover takes it, --no-wait gives up")
                await self._next_event(self._rules.tick)
            else:
                return True
        self.stop()
        return False

    async def _learn_to_count(self) -> None:
        """Count once in a thread: it may load a vocabulary, for which no message is to wait. Summaries do."""
        await asyncio.to_thread(self._dependencies.count_tokens, "")
        self._jobs.can_count = True
        self._events.put_nowait(None)

    async def _live(self, tasks: asyncio.TaskGroup) -> None:
        dispatch = Dispatch(self.conversation, self._jobs, self._store, self._record, self._dependencies.clock)
        while not self.told_to_stop.is_set():
            # One round: wait for something, apply it with all that came meanwhile, commit that in one step, and only
            # then start analysis, so that no model is between a message and its readers.
            now = self._now()
            ticks = self._hosted is None or self._leaving == "ending"
            moment = self.conversation.next_moment(now, can_start_tasks=self._jobs.can_start, ticks=ticks)
            with self._hosted.at_rest() if self._hosted and not ticks else nullcontext():
                event = await self._next_event(moment - now.monotonic)
            self._apply(event)
            self._apply_all()
            # Plain text analysis of a short message takes less time than a second commit would.
            while self._has_deliveries and dispatch.do_at_once(more_to_come=self._inbox.waiting > 0):
                self._apply_all()
            leaving = self._leaving  # before the commit, which then has it all
            try:
                if ticks or leaving or self._has_something_to_commit:
                    await self._commit()
                if leaving == "handing over":
                    self.stop()
                if leaving == "ending" and await self._has_ended():
                    return
                await dispatch.start(tasks, more_to_come=self._inbox.waiting > 0)
            except StoreUnavailable as error:
                if self._committer.hands_over and isinstance(error, WrongKeyType):
                    raise  # also where the hand-over began within the commit: its changes would not be written again
                self._uncommitted.is_due = True  # which waits until Redis is back, and restores what it lost

    @property
    def _has_deliveries(self) -> bool:
        """Return whether the next commit acknowledges deliveries."""
        return self._uncommitted.batch is not NO_DELIVERIES

    @property
    def _has_something_to_commit(self) -> bool:
        return self._uncommitted.is_due or self._has_deliveries or self.conversation.has_changed

    def _describe_refresh(self) -> Refresh | None:
        """Return what the host refreshes while nothing happens here."""
        if not self._events.empty():
            return None
        latest = self._store.lineage.base
        state = conversation_state(self.conversation, self._now())
        return Refresh(self._store.lease, latest.revision, latest.by, state)

    def _refreshed(self, waiting: int) -> None:
        """Note that Redis holds the session as this process knows it, with ``waiting`` deliveries at least."""
        self._committer.refreshed()
        self._inbox.expect(waiting)
        self.relays.refreshed()

    def _attend(self) -> None:
        """Let the loop commit, which finds out what is wrong."""
        self._uncommitted.is_due = True
        self._events.put_nowait(None)

    async def _next_event(self, seconds: float) -> Event:
        """Return the next event, or None after so many seconds; an infinite time means never."""
        if not self._events.empty():
            return self._events.get_nowait()
        if seconds == inf:
            return await self._events.get()
        timer = asyncio.get_running_loop().call_later(seconds, self._events.put_nowait, None)
        try:
            return await self._events.get()
        finally:
            timer.cancel()

    def _apply_all(self) -> None:
        """Apply all that has happened."""
        while not self._events.empty():
            self._apply(self._events.get_nowait())

    def _apply(self, event: Event) -> None:
        now = self._now()
        if isinstance(event, Batch):
            self._take_in(event, now)
        elif isinstance(event, TaskOutcome):
            self._conclude(event, now)
        elif isinstance(event, Charged):
            self._charge(event, now)
        elif isinstance(event, DeadLettered):
            self.conversation.dead_lettered(event.receiver, event.count)
            self._record(event, now)

    def _take_in(self, batch: Batch, now: Instant) -> None:
        self._uncommitted.batch = batch
        for is_new, events in groupby(batch.events, lambda one: isinstance(one, Message)):
            if is_new:
                self._receive([one for one in events if isinstance(one, Message)], now)
            else:
                self._revise([one for one in events if not isinstance(one, Message)], now)
        if dead := len(batch.dead):
            self.conversation.count_dead_letters(dead)
            self._record(DeliveriesRejected(dead), now)

    def _conclude(self, outcome: TaskOutcome, now: Instant) -> None:
        task, result, spent = outcome.task, outcome.result, outcome.spent
        if self.conversation.dismissed(task):
            if spent is not None and spent is not NO_USAGE:
                self._charge(Charged(task_of(task), spent), now)
            return
        if result is None:
            self.conversation.fail(task, now, outcome.retry_after, outcome.usage, outcome.reason)
        else:
            self.conversation.finish(task, result, now)
        if spent is not NO_USAGE:
            _show_totals(self.session_id, self.conversation.usage_totals)
        self._record(TaskFinished(task, result, outcome.usage, outcome.reason), now)

    def _charge(self, charged: Charged, now: Instant) -> None:
        self.conversation.charge(charged.task, charged.usage, now)
        _show_totals(self.session_id, self.conversation.usage_totals)
        self._record(charged, now)

    def _receive(self, messages: Sequence[Message], now: Instant) -> None:
        self._uncommitted.messages += self.conversation.receive(messages, now)
        self._record(Received(messages, self.conversation.last_id), now)

    def _revise(self, revisions: Sequence[Revision], now: Instant) -> None:
        self._uncommitted.messages += self.conversation.revise(revisions, now)
        self._record(Revised(revisions), now)

    def _record(self, event: SessionEvent, now: Instant) -> None:
        if self._recorder:
            self._recorder.happened(event, now)

    async def _commit(self, *, publish: bool = False) -> None:
        struck = self.conversation.struck
        if struck:
            self.relays.struck(message.entry_id for message, _ in struck)
        if self.conversation.was_revised:
            await self._committer.revise_what_waits(self.conversation)
        # Taken before the commit is awaited: what is applied meanwhile belongs to the next one.
        uncommitted, self._uncommitted = self._uncommitted, _Uncommitted()
        gone = {message.entry_id for message, _ in struck}
        messages = [entry for entry in uncommitted.messages if entry.id not in gone]
        if self._hosted:
            self._hosted.commits += 1
        committed = await self._committer.commit(self.conversation, uncommitted.batch, publish=publish)
        self._inbox.make_room(has_room=self.conversation.has_room)
        if struck:
            await self._record_anew()
        if uncommitted.batch is not NO_DELIVERIES:
            self._inbox.committed()
        self._inbox.expect(committed.waiting)
        self.relays.committed(committed, messages)
        if self._hosted:
            self._hosted.committed(self._rules.tick, self.conversation.silent_in(self._now()))
        if not committed.state_present:  # it expired, or is not what an edit was made for: readers come before work
            self.conversation.everything_changed()
            await self._commit()
        if committed.request == END_REQUEST and self._leaving != "handing over":  # or the next owner sees it
            self._leaving = "ending"
            with suppress(StoreUnavailable):  # it is seen again by the next commit
                await self._store.clear_request()

    async def _record_anew(self) -> None:
        """Delete what was recorded, which tells what was struck, and begin again."""
        if not self._recorder:
            return
        self._recorder.forget()
        with suppress(StoreUnavailable):
            async for attempt in until_available(lambda _: not self.told_to_stop.is_set()):
                with attempt:
                    snapshot = await self._store.read()
            self._recorder.begin(self.session_id, self._rules, snapshot, self._now())

    async def _has_ended(self) -> bool:
        if self._inbox.waiting or not self._events.empty():
            return False
        if not self.conversation.all_summarized:
            self.conversation.close()
            self._record(PhaseChanged("closing"), self._now())
            return False
        if self.conversation.ended_at is None:
            now = self._now()
            self.conversation.end(now)
            self._record(PhaseChanged("ended"), now)
            await self._commit()
        return self.relays.are_done_or_given_up(self.session_id)


def _show_totals(session_id: str, totals: UsageTotals) -> None:
    """Set the gauges of a session that runs here."""
    for task, spent in totals.tasks.items():
        for kind, tokens in _tokens_by_kind(spent).items():
            metrics.SESSION_TOKENS.labels(session_id, task, kind).set(tokens)
        metrics.SESSION_COST_DOLLARS.labels(session_id, task).set(spent.dollars)


def _hide_totals(session_id: str, totals: UsageTotals) -> None:
    """Remove the gauges of a session that no longer runs here."""
    for task, spent in totals.tasks.items():
        with suppress(KeyError):
            for kind in _tokens_by_kind(spent):
                metrics.SESSION_TOKENS.remove(session_id, task, kind)
            metrics.SESSION_COST_DOLLARS.remove(session_id, task)


def _tokens_by_kind(usage: TaskUsage) -> dict[str, int]:
    return {"prompt": usage.prompt_tokens, "cached": usage.cached_tokens, "completion": usage.completion_tokens}
