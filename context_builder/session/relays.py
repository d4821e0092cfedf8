"""An outbox relay delivers what waits in an outbox, in order, trying again as often as it takes.

What will never be taken becomes a dead letter, so that what follows is delivered. That is what its receiver refuses
for what is in it, and what fails again and again while others are delivered. As long as nothing is delivered, the
fault is the receiver's, and waited for.

The relays deliver a session's summaries to the archive, and its memory batches to the long-term memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Final

import structlog
from prometheus_client import Counter
from pydantic import ValidationError

from context_builder import metrics
from context_builder.archive.archive import Archive, RevisedSummaryRow, SummaryRow
from context_builder.clock import Clock
from context_builder.costs import NO_USAGE, collected_usage
from context_builder.errors import (
    CannotForget,
    ContextBuilderError,
    DatabaseUnavailable,
    EntryUnreadable,
    StoreUnavailable,
    Undeliverable,
)
from context_builder.memory.memory import Memory, TenantMemory
from context_builder.session.conversation.memory_batch import MemoryBatch, preferences_in
from context_builder.session.events import Charged, DeadLettered
from context_builder.session.failures import raise_what_ends_the_task, reason_of
from context_builder.session.memory_corrections import revise_memories
from context_builder.session.message_feed import MessageFeed
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.store.commit import Committed
from context_builder.session.store.dead_letters import DeadLetter
from context_builder.session.store.outboxes import Outbox
from context_builder.session.store.store import SessionStore
from context_builder.storage.redis_availability import until_available

log = structlog.get_logger(__name__)

LONGEST_WAIT: Final = 30.0
"""Seconds between attempts while the receiver refuses or stays away."""

TRIES: Final = 5
"""Failures of an entry, each while another one was delivered, after which it is a dead letter."""

TRIES_UNAVAILABLE: Final = 10
"""The same while the receiver says that it is unavailable, which is seldom an entry's fault."""

OTHERS: Final = 10
"""Most other entries that are tried after a failure."""


class _NotTaken(ContextBuilderError):
    """Raised when the receiver took nothing; the message says why."""


class OutboxRelay:
    """Delivers an outbox's entries beside the session's loop, which it never slows or ends.

    ``deliver`` is idempotent, so an entry may go out twice; ``take_back`` deletes what may have been delivered although
    the session was forgotten: the delivery that was under way then, for as long as its machine stood still.

    ``receiver`` is its destination's name for people, ``deliveries`` counts by outcome, and ``dead_lettered`` is called
    with each dead letter.
    """

    def __init__(
        self,
        outbox: Outbox,
        deliver: Callable[[bytes], Awaitable[None]],
        take_back: Callable[[], Awaitable[None]],
        receiver: str,
        deliveries: Counter,
        clock: Clock,
        dead_lettered: Callable[[DeadLettered], None],
    ) -> None:
        self.receiver = receiver
        self.waiting = 0
        """Entries in the outbox at the last commit; 0 once it was found empty."""
        self.failures = 0
        """Attempts in a row at which the receiver took nothing."""
        self._outbox = outbox
        self._deliver = deliver
        self.take_back = take_back
        self._deliveries = deliveries
        self._clock = clock
        self._dead_lettered = dead_lettered
        self._told: type[BaseException] | None = None
        self._suspect = _Suspect(b"")
        self._is_delivering = False
        self._wake = asyncio.Event()

    @property
    def is_done(self) -> bool:
        """Return whether nothing waits, and nothing is under way."""
        return not (self.waiting or self._is_delivering)

    def expect(self, waiting: int) -> None:
        """Note how many entries are in the outbox."""
        self.waiting = waiting
        if waiting:
            self._wake.set()

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._is_delivering = True
            async for attempt in until_available(self._is_worth_another_try, longest_wait=LONGEST_WAIT):
                with attempt:
                    while await self._deliver_oldest():
                        pass
            if not self._wake.is_set():  # nothing was committed since the outbox was found empty
                self.waiting = 0
            self._is_delivering = False

    async def _deliver_oldest(self) -> bool:
        entry = await self._outbox.at(0)
        if entry is None:
            return False
        error = await self._error_of(entry)
        if error is None:
            await self._outbox.discard(entry)
            self._deliveries.labels("delivered").inc()
        elif isinstance(error, Undeliverable) or await self._fails_alone(entry, error):
            await self._give_up(entry, error)
        else:
            self._note(error)
            raise _NotTaken(reason_of(error))
        self.failures, self._told = 0, None
        return True

    async def _error_of(self, entry: bytes) -> BaseException | None:
        """Return why the entry was not delivered; None when it was."""
        try:
            await self._deliver(entry)
        except BaseException as error:  # noqa: BLE001 a receiver or a decoder may fail in any way
            raise_what_ends_the_task(error)
            return error
        return None

    async def _fails_alone(self, entry: bytes, error: BaseException) -> bool:
        """Return whether the entry has failed often enough while others were delivered."""
        if self._suspect.entry != entry:
            self._suspect = _Suspect(entry)
        suspect = self._suspect
        suspect.tries += 1
        if suspect.tries > 1 and await self._another_is_delivered(suspect):
            suspect.failed_alone += 1
            self.failures = 0
        is_away = isinstance(error, DatabaseUnavailable)
        return suspect.failed_alone >= (TRIES_UNAVAILABLE if is_away else TRIES)

    async def _another_is_delivered(self, suspect: _Suspect) -> bool:
        """Try others behind the suspect. What is delivered stays where it is, and is delivered again in its turn:
        what it deletes is then deleted also if the suspect, late, brings it back."""
        for _ in range(OTHERS):
            other = await self._outbox.at(suspect.tried_with)
            if other is None:
                suspect.tried_with = 1
                return False
            error = None if other == suspect.entry else await self._error_of(other)
            if error is None and other != suspect.entry:
                return True
            suspect.tried_with += 1
            if isinstance(error, DatabaseUnavailable):
                return False
        return False

    async def _give_up(self, entry: bytes, error: BaseException) -> None:
        reason = reason_of(error)
        letter = DeadLetter.of(entry, reason, self._clock.now()).encode()
        async for attempt in until_available():
            with attempt:
                count = await self._outbox.move_to_dead_letters(entry, letter)
        self._deliveries.labels("dead").inc()
        self._dead_lettered(DeadLettered(self._outbox.receiver, count))
        log.error("delivery.dead_letter", receiver=self.receiver, reason=reason, bytes=len(entry))

    def _note(self, error: BaseException) -> None:
        self._deliveries.labels("failed").inc()
        self.failures += 1
        if type(error) is not self._told:
            tell = log.warning if isinstance(error, DatabaseUnavailable) else log.error
            tell("delivery.waiting", receiver=self.receiver, error=reason_of(error))
        self._told = type(error)

    def _is_worth_another_try(self, error: BaseException) -> bool:
        """Return true for any error but a cancellation: entries' errors are dealt with, so this one is Redis'."""
        if not isinstance(error, Exception):
            return False
        if not isinstance(error, _NotTaken | StoreUnavailable) and type(error) is not self._told:
            self._told = type(error)
            log.error("delivery.waiting", receiver=self.receiver, error=reason_of(error))
        return True


class _Suspect:
    """Tracks an entry that failed: how often at all and while another one was delivered, and which to try next."""

    def __init__(self, entry: bytes) -> None:
        self.entry = entry
        self.tries = 0
        self.failed_alone = 0
        self.tried_with = 1


WORTH_GIVING_UP: Final = 2
"""Deliveries in a row that failed; a first one may have met a connection that died while it was idle."""

LONGEST_TAKE_BACK: Final = 10.0
"""Most seconds for which a forgotten session deletes what it delivered late."""


class Relays:
    """Runs the relays to the ``archive`` and to the ``memory``, of those that there are; neither waits for the other.

    With ``feeds``, a message feed remembers what is said at once, in a memory that supports it.
    """

    def __init__(
        self,
        store: SessionStore,
        archive: Archive | None,
        memory: TenantMemory | None,
        clock: Clock,
        happened: Callable[[DeadLettered | Charged], None],
        *,
        feeds: bool = False,
    ) -> None:
        self._feed = (
            message_feed(store, memory, clock, happened) if memory and feeds and memory.supports_message_feed else None
        )
        self._archiver = archive_relay(store.outbox, archive, clock, happened) if archive else None
        self._rememberer = memory_relay(store, memory, clock, happened, self._feed) if memory else None

    def each(self) -> list[OutboxRelay]:
        """Return the relays there are."""
        return [relay for relay in (self._archiver, self._rememberer) if relay is not None]

    def running(self) -> list[Callable[[], Coroutine[None, None, None]]]:
        """Return the functions to run beside the session, each for ever."""
        return [*(relay.run for relay in self.each()), *([self._feed.run] if self._feed else [])]

    @property
    def undelivered(self) -> int:
        """Return how many summaries waited for the archive at the last commit."""
        return self._archiver.waiting if self._archiver else 0

    @property
    def unremembered(self) -> int:
        """Return how many memory batches waited for the long-term memory at the last commit."""
        return self._rememberer.waiting if self._rememberer else 0

    def committed(self, committed: Committed, received: Sequence[BufferedMessage] = ()) -> None:
        """Take note of a commit: what waits in the outboxes after it, and the messages that are new in it."""
        if self._archiver:
            self._archiver.expect(committed.undelivered)
        if self._rememberer:
            self._rememberer.expect(committed.unremembered)
        if self._feed:
            self._feed.committed(received)

    def struck(self, entry_ids: Iterable[int]) -> None:
        """Take note of messages that are not to be remembered any more."""
        if self._feed:
            self._feed.strike(entry_ids)

    def refreshed(self) -> None:
        """Take note that Redis still holds the latest commit, and that the session is this process's."""
        if self._feed:
            self._feed.committed(())

    async def take_back(self, *, begun_anew: bool) -> None:
        """Delete what may have been delivered although the session was forgotten.

        Whoever has ``begun_anew`` may have delivered the same as the relays: then only what the feed told is deleted.
        """
        async with asyncio.timeout(LONGEST_TAKE_BACK):
            if self._feed:
                await self._feed.take_back()
            for relay in () if begun_anew else self.each():
                await relay.take_back()

    @property
    def are_done(self) -> bool:
        """Return whether nothing waits to be delivered."""
        return all(relay.is_done for relay in self.each())

    @property
    def are_away(self) -> bool:
        """Return whether something waits, and none of those that it waits for takes anything."""
        late = self._late()
        return bool(late) and all(relay.failures >= WORTH_GIVING_UP for relay in late)

    def _late(self) -> list[OutboxRelay]:
        return [relay for relay in self.each() if not relay.is_done]

    def are_done_or_given_up(self, session_id: str) -> bool:
        """Return whether an ending session need not wait: all is delivered, or no late receiver takes anything."""
        if not (self.are_done or self.are_away):
            return False
        for relay in self._late():
            about = {"receiver": relay.receiver, "waiting": relay.waiting}
            log.error("session.ended_undelivered", session_id=session_id, **about)
        return True


def archive_relay(
    outbox: Outbox, archive: Archive, clock: Clock, dead_lettered: Callable[[DeadLettered], None]
) -> OutboxRelay:
    """Return the relay that takes the outbox's summary rows to the archive."""

    async def deliver(entry: bytes) -> None:
        row = _decoded(entry)
        seq = await archive.deliver(row)
        about = {"session_id": row.session_id, "summary_seq": seq}
        if seq == row.summary_seq:
            log.info("summary.archived", **about)
        else:  # Redis lost what the archive kept, be it the whole session or its last moments
            log.warning("summary.renumbered", taken=row.summary_seq, **about)

    async def leave() -> None:
        """Delete nothing: one statement delivers a row, and who forgot the session deletes the archive's rows, too."""

    return OutboxRelay(outbox, deliver, leave, archive.name, metrics.SUMMARIES_ARCHIVED, clock, dead_lettered)


def _decoded(entry: bytes) -> SummaryRow:
    try:
        kind = RevisedSummaryRow if b'"supersedes_from"' in entry else SummaryRow
        return kind.model_validate_json(entry)
    except ValidationError as error:
        raise EntryUnreadable(f"not a summary: {error.errors(include_input=False)[0]['msg']}") from None


def memory_relay(
    store: SessionStore,
    memory: TenantMemory,
    clock: Clock,
    happened: Callable[[DeadLettered | Charged], None],
    feed: MessageFeed | None = None,
) -> OutboxRelay:
    """Return the relay that takes memory batches to the memory, and the preferences that their messages state.

    ``happened`` is told of dead letters and of what embeddings cost; ``feed`` gives way to what is delivered. In a
    memory that cannot forget, superseded points stay.
    """

    latest: list[str] = []
    remember = charging(memory, happened)

    async def deliver(entry: bytes) -> None:
        part = MemoryBatch.decode(entry)
        stated = await asyncio.to_thread(preferences_in, part.memories)
        preferences = await stated.settled(memory)
        latest[:] = [one.id for one in (*part.memories, *preferences)]
        if feed is not None:
            revised = [*(one.id for one in part.amended), *(one.id for one in part.struck)]
            await feed.give_way(part.memories, revised)
        if part.memories:
            await remember([*part.memories, *preferences])
        try:
            await memory.forget(part.superseded)
        except CannotForget:
            log.info("memory.superseded_stay", session_id=part.session_id, points=len(part.superseded))
        await revise_memories(memory, remember, part)
        await store.waiting_items.correct(part)
        fed = {"memories": len(part.memories), "preferences": len(preferences)}
        log.info("memory.fed", session_id=part.session_id, **fed)

    async def take_back() -> None:
        with suppress(CannotForget):
            await memory.forget(latest)

    return OutboxRelay(store.memory_outbox, deliver, take_back, memory.name, metrics.MEMORY_FED, clock, happened)


def message_feed(
    store: SessionStore, memory: TenantMemory, clock: Clock, happened: Callable[[DeadLettered | Charged], None]
) -> MessageFeed:
    """Return the feed that remembers messages as they are said; ``happened`` is told what embeddings cost."""
    remember = charging(memory, happened)
    return MessageFeed(store.keys.session_id, memory.name, remember, memory.forget, store.are_known, clock)


def charging(
    memory: TenantMemory, happened: Callable[[DeadLettered | Charged], None]
) -> Callable[[Sequence[Memory]], Awaitable[None]]:
    """Return ``memory.remember``, which tells ``happened`` what embeddings cost, also when it fails."""

    async def remember(memories: Sequence[Memory]) -> None:
        with collected_usage() as usages:
            try:
                await memory.remember(memories)
            finally:
                if usages:
                    happened(Charged("embeddings", sum(usages, NO_USAGE)))

    return remember
