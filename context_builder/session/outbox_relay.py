"""An outbox relay delivers what waits in an outbox, in order, trying again as often as it takes.

What will never be taken becomes a dead letter, so that what follows is delivered. That is what its receiver refuses
for what is in it, and what fails again and again while others are delivered. As long as nothing is delivered, the
fault is the receiver's, and waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from prometheus_client import Counter

from context_builder.clock import Clock
from context_builder.errors import (
    ContextBuilderError,
    DatabaseUnavailable,
    StoreUnavailable,
    Undeliverable,
)
from context_builder.session.failures import raise_what_ends_the_task, reason_of
from context_builder.session.recorder import DeadLettered
from context_builder.session.store.dead_letters import DeadLetter
from context_builder.session.store.outbox import Outbox
from context_builder.storage.redis_availability import until_available

log = structlog.get_logger(__name__)

LONGEST_WAIT: Final = 30.0
"""Seconds between attempts while the receiver refuses or stays away."""

TRIES: Final = 5
"""Failures of an entry, each while another one was delivered, after which it is a dead letter."""

TRIES_UNAVAILABLE: Final = 10
"""The same while the receiver says that it is unavailable, which is seldom an entry's fault."""

OTHERS: Final = 10
"""At most so many other entries are tried after a failure."""


class _NotTaken(ContextBuilderError):
    """Raised when the receiver took nothing; says why."""


class OutboxRelay:
    """Delivers an outbox's entries beside the session's loop, which it never slows or ends.

    ``deliver`` is idempotent, so an entry may go out twice; ``take_back`` deletes what may have been delivered although
    the session was forgotten: the delivery that was under way then, for as long as its machine stood still.

    ``receiver`` is what people call where it goes, ``deliveries`` counts by outcome, and ``dead_lettered`` is told of
    each dead letter.
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
