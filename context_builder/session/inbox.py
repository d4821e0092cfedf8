"""The inbox reads deliveries from the input list and sorts them: new messages, known ones, and dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Final, NamedTuple

from context_builder import metrics
from context_builder.clock import Clock, Instant
from context_builder.errors import MessageError
from context_builder.session.config import SessionConfig
from context_builder.session.messages.message import MAX_NUMBER, Delivered, Message, decode
from context_builder.session.messages.message_index import MessageIndex, fields_wanted
from context_builder.session.messages.revision import Correction, Revision, Strike
from context_builder.session.store.dead_letters import DeadLetter, without_words
from context_builder.session.store.deliveries import CutDelivery, position_after
from context_builder.session.store.recovery import CommitHistory
from context_builder.session.store.store import SessionStore
from context_builder.storage.redis_availability import until_available
from context_builder.values import value

AHEAD: Final = 86_400.0
"""Seconds that a message's timestamp may lie after its arrival: another time zone explains no more. A message of 2099
counts as said now, or no later one could replace it."""

MOST_CORRECTED: Final = 10
"""Most messages that one commit corrects: each takes some milliseconds, for which other sessions of the loop wait."""

BLOCK_SECONDS: Final = 1
"""Longest blocking read; shorter than every socket timeout."""


@value
class Batch:
    """The deliveries that one commit is to acknowledge together, oldest first.

    ``events`` are new messages, and revisions of earlier ones, in their order; ``identities`` those of the deliveries
    that they came in, and ``index`` the fields that they add to the message index. ``dead`` are dead letters as they
    are stored: JSON with the reason and the raw bytes. ``unidentified`` are the positions of new deliveries without
    identity; the batch leads from position ``begin`` to ``end``.
    """

    raw: Sequence[bytes]
    events: Sequence[Message | Revision]
    dead: Sequence[bytes]
    identities: Sequence[bytes] = ()
    index: Mapping[str, bytes] = field(default_factory=dict)
    unidentified: Sequence[bytes] = ()
    begin: bytes = b""
    end: bytes = b""

    @property
    def messages(self) -> Sequence[Message]:
        """Return the new messages."""
        return [event for event in self.events if isinstance(event, Message)]


NO_DELIVERIES: Final = Batch((), (), ())
"""The batch of a commit that acknowledges none."""


class Decoded(NamedTuple):
    """A delivery, with its message or the dead letter made of it, and its identity, if it has one."""

    raw: bytes
    held: Delivered | None
    identity: bytes = b""
    letter: bytes = b""


class Inbox:
    """Reads a session's input, one batch at a time: the next one once the one before is committed.

    ``waiting`` deliveries were in the input at the latest commit; ``highest_number`` is the highest message number
    among those taken in, ``last_id`` the id that was given last. ``arrived`` is set when there may be something in the
    input; without it, a blocking read waits. Without room, nothing is read.
    """

    def __init__(
        self,
        store: SessionStore,
        rules: SessionConfig,
        clock: Clock,
        history: CommitHistory,
        arrived: asyncio.Event | None = None,
    ) -> None:
        self._store = store
        self._arrived = arrived
        self._history = history
        self._rules = rules
        self._clock = clock
        self.waiting = 0
        self.highest_number = MAX_NUMBER
        self.last_id = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._is_committed = asyncio.Event()

    def continue_from(self, last_id: int, highest_number: int) -> None:
        """Go on behind the messages that the session has taken in."""
        self.last_id, self.highest_number = last_id, highest_number

    def committed(self) -> None:
        """Note that Redis has what was delivered last."""
        self._is_committed.set()

    def make_room(self, *, has_room: bool) -> None:
        """Read on while there is room for more messages; else leave them in the input."""
        if has_room:
            self._has_room.set()
        else:
            self._has_room.clear()

    def expect(self, waiting: int) -> None:
        """Note how many deliveries are in the input; none once the session is left."""
        if waiting != self.waiting:
            metrics.QUEUE_LENGTH.inc(waiting - self.waiting)
            self.waiting = waiting

    async def feed(self, deliver: Callable[[Batch], None]) -> None:
        """Deliver batches for ever, reconnecting around the read."""
        while True:
            await self._has_room.wait()
            async for attempt in until_available():
                with attempt:
                    batch = await self._next()
            # Reading on before the commit would read the same deliveries again: only it takes them out of the input.
            self._is_committed.clear()
            deliver(batch)
            await self._is_committed.wait()
            _count(batch)

    async def _next(self) -> Batch:
        """Return the waiting deliveries, or else the next one alone, at once: reading on would hold it up."""
        if self.waiting and (batch := await self._read()):
            return batch
        while self._arrived:
            await self._arrived.wait()
            self._arrived.clear()  # before the read: what arrives during it is read by the next round
            try:
                batch = await self._read()
            except BaseException:
                self._arrived.set()  # Redis was away; what arrived is still unread, and nobody announces it again
                raise
            if batch:
                return batch
        while True:
            while (delivery := await self._store.next_input(BLOCK_SECONDS)) is None:
                pass
            decoded = self._decode([delivery])
            # With an identity it needs no position to be recognized, which saves a round trip before it is visible.
            if all(each.identity for each in decoded):
                return await self._batch(decoded, self._history.position)
            if batch := await self._read():  # together with its position, which tells whether it came before
                return batch

    async def _read(self) -> Batch | None:
        """Return the waiting deliveries, if there are any."""
        read = await self._store.read_input()
        return await self._batch(self._decode(read.items), read.position) if read.items else None

    def _decode(self, deliveries: Sequence[bytes]) -> list[Decoded]:
        now = self._clock.now()
        decoded = []
        for raw in deliveries:
            try:
                if isinstance(raw, CutDelivery):
                    raise MessageError(f"larger than {self._rules.max_message_bytes} bytes")
                held = _said_by_now(decode(raw, now, max_bytes=self._rules.max_message_bytes), now)
                decoded.append(Decoded(raw, held, held.identity))
            except MessageError as error:
                decoded.append(Decoded(raw, None, letter=DeadLetter.of(raw, str(error), now).encode()))
        return decoded

    async def _batch(self, decoded: Sequence[Decoded], begin: bytes) -> Batch:
        """Return the deliveries not taken in before, nor earlier in this batch, which begins at this position.

        It ends before what would correct too many messages at once: points are held against each.
        """
        known = await self._known([each.held for each in decoded if each.held])
        fresh: list[tuple[int, Decoded]] = []
        positions = [begin]
        for place, each in enumerate(decoded):
            # A position hashes everything read so far, so the same delivery has it again only in the same place.
            positions.append(position_after(positions[-1], each.raw))
            if each.identity in known if each.identity else positions[-1] in self._history.unidentified:
                continue
            known.add(each.identity)
            fresh.append((place, each))
        index = await self._index([each.held for _, each in fresh if each.held])
        events: list[Message | Revision] = []
        dead: list[bytes] = []
        identities: list[bytes] = []
        unidentified: list[bytes] = []
        corrected: set[int] = set()
        length = len(decoded)
        for place, each in fresh:
            if len(corrected) == MOST_CORRECTED:
                length = place
                break
            event, letter = self._taken(each, index)
            corrected |= {event.id} if isinstance(event, Correction) else set()
            events += [event] if event is not None else []
            dead += [letter] if letter else []
            if each.identity and not letter:
                identities.append(each.identity)
            else:  # of a dead letter, too: put back, it is to be read anew
                unidentified.append(positions[place + 1])
        self.last_id = index.last_id  # ids are given here, once: the commit that tells them may be repeated
        dead = _without_struck(dead, [one for one in events if isinstance(one, Strike)])
        raw = [each.raw for each in decoded[:length]]
        batch = Batch(raw, events, dead, identities, index.changed, unidentified, begin, positions[length])
        self.highest_number = max([self.highest_number, *map(_spoken_number, batch.messages)])
        return batch

    def _taken(self, each: Decoded, index: MessageIndex) -> tuple[Message | Revision | None, bytes]:
        """Return the message or revision that a delivery is, given those before it, or else its dead letter."""
        if each.held is None:
            return None, each.letter
        try:
            return index.take(each.held), b""
        except MessageError as error:
            return None, DeadLetter.of(each.raw, str(error), self._clock.now()).encode()

    async def _index(self, held: Sequence[Delivered]) -> MessageIndex:
        """Return the message index, as far as what is held may be about earlier messages; Redis is seldom asked."""
        beyond = {place: isinstance(one, Message) and self._is_beyond(one) for place, one in enumerate(held)}
        wanted = fields_wanted(held, beyond)
        fields = await self._store.read_index(wanted) if wanted else {}
        index = MessageIndex(self._store.keys.session_id, fields, self.last_id)
        if named := index.wanted():
            index.hold(await self._store.read_index(named))
        return index

    async def _known(self, held: Sequence[Delivered]) -> set[bytes]:
        """Return the identities among these that were taken in before.

        A number is part of a message's identity, so Redis is not asked about one that is beyond all others.
        """
        unsure = [
            one.identity
            for one in held
            if one.identity and not (isinstance(one, Message) and one.corrects is None and self._is_beyond(one))
        ]
        if not unsure:
            return set()
        return {
            identity
            for identity, is_known in zip(unsure, await self._store.are_known(unsure), strict=True)
            if is_known or identity in self._history  # Redis may have fallen back
        }

    def _is_beyond(self, message: Message) -> bool:
        return _spoken_number(message) > self.highest_number


def _without_struck(dead: list[bytes], strikes: Sequence[Strike]) -> list[bytes]:
    """Return dead letters, without the content of those that were to correct what is struck right after them."""
    if not strikes:
        return dead
    ids, numbers = {one.id for one in strikes}, {one.id if one.number is None else one.number for one in strikes}
    return [without_words(letter, ids, numbers) for letter in dead]


def _said_by_now(message: Delivered, now: Instant) -> Delivered:
    """Return the message with the present as its time where that lies ahead; its published timestamp stays."""
    if not isinstance(message, Message) or message.time <= now.wall + AHEAD:
        return message
    metrics.TIMESTAMPS_AHEAD.inc()
    return replace(message, time=now.wall)


_NEW, _KNOWN, _DEAD = (metrics.MESSAGES.labels(outcome) for outcome in ("new", "known", "dead"))


def _count(batch: Batch) -> None:
    new, dead = len(batch.events), len(batch.dead)
    _NEW.inc(new)
    if known := len(batch.raw) - new - dead:
        _KNOWN.inc(known)
    if dead:
        _DEAD.inc(dead)


def _spoken_number(message: Message) -> int:
    """Return a person's message number; the assistant's contributions are numbered apart, if at all."""
    return -1 if message.consilience or message.number is None else message.number
