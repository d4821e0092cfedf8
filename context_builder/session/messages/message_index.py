"""The message index finds, by number and by id, the message that a correction or a strike is about.

Its entries are fields of a hash in Redis, which commits add to: of a number the messages that have it, of an id what is
to be known of a message that is no longer at hand. Commits drop the oldest, but for what was struck, and note in the
field ``dropped`` what they were. It is pure; whoever uses it reads the fields that it asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Any, Final, Literal, NamedTuple

import orjson
from pydantic import TypeAdapter

from context_builder.errors import MessageError, StoreError
from context_builder.json_shape import Count, Number
from context_builder.session.keys import Keys
from context_builder.session.messages.message import Delivered, Message
from context_builder.session.messages.revision import (
    Correction,
    MessageReference,
    Revision,
    SpeakerRename,
    Strike,
    StrikeRequest,
)
from context_builder.session.stored import DROPPED_MESSAGES, damaged

MOST_NAMESAKES: Final = 64
"""Newest messages of one number that are told apart: a recorder counts anew, and some count to one."""

INDEXED: Final = 20_000
"""Newest messages of a session that can be corrected and struck."""

DROPPED: Final = "dropped"
"""Field that tells which messages are no longer in the index, as ``commit.lua`` writes it: ``below`` which id; and of
people's numbers (``n``), the assistant's (``c``) and times (``time``) the lowest and the highest."""

SPEAKERS: Final = "speakers"
"""Field that counts the speakers of messages that were dropped, whose names have fields up to :data:`MOST_SPEAKERS`."""

MOST_SPEAKERS: Final = 1_000

STRUCK: Final = b'"struck"'
"""Value in the index of a message that was struck."""


_NONE: Final = (1.0, 0.0)
"""A range in which nothing lies."""

HeldMessage = Literal["there", "struck", "unknown"]
"""A function that returns whether a session has a message."""


@dataclass(frozen=True, slots=True)
class IndexedMessage:
    """What is known of a message by its id; ``origin`` as in :class:`Correction`."""

    origin: str
    number: int | None
    consilience: bool
    time: float
    timestamp: str
    speaker: str

    @classmethod
    def decode(cls, held: bytes) -> IndexedMessage:
        """Return what :meth:`encode` wrote. Raises :class:`ValueError` for anything else."""
        return cls(*_INDEXED.validate_json(held, strict=True))

    def encode(self) -> bytes:
        return orjson.dumps([self.origin, self.number, self.consilience, self.time, self.timestamp, self.speaker])


def speakers_in(held: bytes) -> tuple[str, ...]:
    """Return who said a message, by what is held of it; nobody, of one that was struck."""
    return () if held == STRUCK else (IndexedMessage.decode(held).speaker,)


def number_in(held: bytes) -> int | None:
    """Return the number of a message, by what is held of it; None of one without, and of one that was struck."""
    return None if held == STRUCK else IndexedMessage.decode(held).number


def speaker_field(speaker: str) -> str:
    """Return the field that says that somebody of this name has spoken in a message that was dropped."""
    return f"s:{sha1(speaker.encode(errors='surrogatepass'), usedforsecurity=False).hexdigest()}"


@dataclass(frozen=True, slots=True)
class _Dropped:
    """Bounds of the messages dropped from the index: a number, an id or a time within them may be of one."""

    below: float = 1
    n: tuple[float, float] = _NONE
    c: tuple[float, float] = _NONE
    time: tuple[float, float] = _NONE

    @classmethod
    def read(cls, held: bytes | None) -> _Dropped:
        """Return what the field holds. Raises :class:`ValueError` for what ``commit.lua`` did not write."""
        if not held:
            return cls()
        fields: dict[str, Any] = {**DROPPED_MESSAGES.whole(held)}
        spoken, contributed, times = (tuple(fields.get(name, _NONE)) for name in ("n", "c", "time"))
        return cls(fields.get("below", 1), spoken, contributed, times)

    def may_be_about(self, number: int) -> bool:
        """Return whether a whole number may name a message that was dropped, by its number or its id."""
        return number < self.below or any(low <= number <= high for low, high in (self.n, self.c))

    def may_have(self, message: Message) -> bool:
        """Return whether a message of this number was dropped, of a time at which this one was said."""
        (low, high), (begin, end) = self.c if message.consilience else self.n, self.time
        return message.number is not None and low <= message.number <= high and begin <= message.time <= end


class _Namesake(NamedTuple):
    """One of the messages that share a number, told apart by its timestamp; ``corrected_at`` is the time of the
    correction that first named it."""

    id: Count
    stamp: str
    corrected_at: Number | None = None


_INDEXED: Final = TypeAdapter(tuple[str, Count | None, bool, Number, str, str])
_NAMESAKES: Final = TypeAdapter(list[_Namesake])


def number_field(number: int, *, consilience: bool) -> str:
    """Return the field of the messages with a number; people's and the assistant's are numbered apart."""
    return f"{'c' if consilience else 'n'}:{number}"


def id_field(entry_id: int) -> str:
    """Return the field of one message."""
    return f"i:{entry_id}"


def fields_wanted(deliveries: Iterable[Delivered], is_beyond: Mapping[int, bool]) -> set[str]:
    """Return the fields by which these deliveries may be recognized as revisions.

    ``is_beyond`` tells, by a delivery's place, whether its number is higher than any before.
    """
    wanted: set[str] = set()
    for place, one in enumerate(deliveries):
        if isinstance(one, SpeakerRename):
            continue
        reference = one.reference if isinstance(one, StrikeRequest) else one.corrects
        if reference is not None:
            wanted |= fields_of(reference)
        elif isinstance(one, Message) and one.number is not None and not is_beyond[place]:
            wanted |= {number_field(one.number, consilience=one.consilience), DROPPED}
    return wanted


def fields_of(reference: MessageReference) -> set[str]:
    """Return the fields by which a message is found."""
    if reference.number is None:
        return {id_field(reference.id or 0), DROPPED}
    kinds = {number_field(reference.number, consilience=kind) for kind in (False, True)}
    return {*kinds, id_field(reference.number), DROPPED}


def _encoded(namesakes: Iterable[_Namesake]) -> bytes:
    return orjson.dumps([tuple(one) for one in namesakes])


def index_entries(entry_id: int, message: Message, origin: str) -> dict[str, bytes]:
    """Return the fields of a message, the only one of its number."""
    indexed = IndexedMessage(
        origin, message.number, message.consilience, message.time, message.timestamp, message.speaker
    )
    fields = {id_field(entry_id): indexed.encode()}
    if message.number is not None:
        namesake = _encoded([_Namesake(entry_id, message.stamp)])
        fields[number_field(message.number, consilience=message.consilience)] = namesake
    return fields


class MessageIndex:
    """Reads ``held`` fields, and notes what :attr:`changed` as deliveries are taken in; ids go on from ``last_id``."""

    def __init__(self, session_id: str, held: Mapping[str, bytes], last_id: int) -> None:
        self._session_id = session_id
        self._held = dict(held)
        self._last_id = last_id
        try:
            self._dropped = _Dropped.read(held.get(DROPPED))
        except ValueError as error:
            raise self._damaged(DROPPED, error) from None
        self.changed: dict[str, bytes] = {}

    @property
    def last_id(self) -> int:
        """Return the id that was given last."""
        return self._last_id

    def wanted(self) -> set[str]:
        """Return the fields of the messages whose numbers are held, which are wanted, too."""
        numbers = [field for field in self._held if field.startswith(("n:", "c:"))]
        ids = {id_field(one.id) for field in numbers for one in self._namesakes(field)}
        return ids - self._held.keys()

    def hold(self, fields: Mapping[str, bytes]) -> None:
        """Take in more fields."""
        self._held |= fields

    def take(self, one: Delivered) -> Message | Revision | None:
        """Return what a delivery is: a new message, a revision, or None, where it tells nothing new.

        Raises :class:`MessageError` for a revision of nothing.
        """
        if isinstance(one, SpeakerRename):
            return one
        if isinstance(one, StrikeRequest):
            return self._strike(one)
        return self._new_or_implied(one) if one.corrects is None else self._correction(one, one.corrects)

    def held_message(self, reference: MessageReference) -> HeldMessage:
        """Return what is known of a message. Raises :class:`MessageError` for one of another session, and for one that
        was dropped.
        """
        entry_id = self.find(reference)
        if entry_id is None:
            return "unknown"
        return "struck" if self._indexed(entry_id) is None else "there"

    def replaced_by(self, message: Message) -> int | None:
        """Return the id of the message that this one would correct, as it says, or by number and timestamp; None of a
        new one, and of the very words that came first. Raises as :meth:`held_message` does.
        """
        if message.corrects is not None:
            return self.find(message.corrects, consilience=message.consilience)
        if message.number is None or not message.stamp:
            return None
        known = self._namesakes(number_field(message.number, consilience=message.consilience))
        place = next((one.id for one in reversed(known) if one.stamp == message.stamp), None)
        indexed = None if place is None else self._indexed(place)
        return None if indexed is None or indexed.origin == message.first_identity.hex() else place

    def _new_or_implied(self, message: Message) -> Message | Revision | None:
        if message.number is not None and message.stamp:
            field = number_field(message.number, consilience=message.consilience)
            for known in reversed(self._namesakes(field)):
                if known.stamp == message.stamp:
                    return self._corrected(known.id, message)
                if known.corrected_at is not None and message.time <= known.corrected_at:
                    return None  # this is what was corrected
            if self._dropped.may_have(message):  # the very words are known as such, so these are others
                raise _too_old(f"message {message.number}")
        self._add(message)
        return message

    def _correction(self, message: Message, reference: MessageReference) -> Message | Revision | None:
        entry_id = self.find(reference, consilience=message.consilience)
        if entry_id is not None:
            return self._corrected(entry_id, message)
        if reference.number is None or not (message.text and message.speaker):
            raise MessageError(f"corrects {reference}, which is not of this session")
        new = message.of_number(reference.number)
        self._add(new, corrected_at=message.time)
        return new

    def _corrected(self, entry_id: int, message: Message) -> Revision | None:
        indexed = self._indexed(self._with_id(entry_id, MessageReference(id=entry_id)) or entry_id)
        if indexed is None:
            return None
        if message.speaker and message.consilience and not indexed.consilience:
            raise MessageError("a correction cannot make what somebody said the assistant's")
        speaker = message.speaker or indexed.speaker
        if speaker != indexed.speaker:
            self._put(entry_id, replace(indexed, speaker=speaker).encode())
        return Correction(
            entry_id,
            indexed.origin,
            message.text or None,
            speaker,
            indexed.number,
            indexed.consilience,
            indexed.timestamp,
            indexed.time,
        )

    def _strike(self, request: StrikeRequest) -> Strike | None:
        entry_id = self._of_origin(request) if request.origin else self.find(request.reference)
        if entry_id is None:
            raise MessageError(f"strikes {request.reference}, which is not of this session")
        indexed = self._indexed(entry_id)
        self._put(entry_id, STRUCK)
        return None if indexed is None else Strike(entry_id, indexed.origin, indexed.number)

    def find(self, reference: MessageReference, *, consilience: bool = False) -> int | None:
        """Return the id of the message that is meant, if there is one. Raises as :meth:`held_message` does."""
        if reference.session not in ("", self._session_id):
            raise MessageError(f"is about a message of another session, {reference.session[:128]}")
        if reference.number is None:
            return self._with_id(reference.id or 0, reference)
        for kind in (consilience, not consilience):
            if known := self._namesakes(number_field(reference.number, consilience=kind)):
                return self._with_id(known[-1].id, reference)
        unnumbered = self._held.get(id_field(reference.number))
        if unnumbered is None and self._dropped.may_be_about(reference.number):
            raise _too_old(reference)
        indexed = self._indexed(reference.number)
        return reference.number if indexed is not None and indexed.number is None else None

    def _of_origin(self, request: StrikeRequest) -> int | None:
        """Return the id of the message that was first sent as ``origin`` says, of those that the reference may name."""
        fields = fields_of(request.reference)
        places = {one.id for field in fields if field.startswith(("n:", "c:")) for one in self._namesakes(field)}
        known = {place: self._indexed(place) for place in (*places, request.reference.id or 0)}
        return next((place for place, one in known.items() if one and one.origin == request.origin), None)

    def _with_id(self, entry_id: int, reference: MessageReference) -> int | None:
        """Return the id if there is such a message. Raises :class:`MessageError` for one that was dropped."""
        if id_field(entry_id) in self._held:
            return entry_id
        if 0 < entry_id < self._dropped.below:
            raise _too_old(reference)
        return None

    def _add(self, message: Message, corrected_at: float | None = None) -> None:
        self._last_id += 1
        indexed = IndexedMessage(
            message.first_identity.hex(),
            message.number,
            message.consilience,
            message.time,
            message.timestamp,
            message.speaker,
        )
        self._put(self._last_id, indexed.encode())
        if message.number is not None:
            field = number_field(message.number, consilience=message.consilience)
            known = [*self._namesakes(field), _Namesake(self._last_id, message.stamp, corrected_at)]
            self._held[field] = self.changed[field] = _encoded(known[-MOST_NAMESAKES:])

    def _put(self, entry_id: int, value: bytes) -> None:
        self._held[id_field(entry_id)] = self.changed[id_field(entry_id)] = value

    def _namesakes(self, field: str) -> list[_Namesake]:
        try:
            return _NAMESAKES.validate_json(self._held.get(field, b"[]"), strict=True)
        except ValueError as error:
            raise self._damaged(field, error) from None

    def _indexed(self, entry_id: int) -> IndexedMessage | None:
        """Return what is known of a message; None of one that was struck, or is not known any more."""
        held = self._held.get(id_field(entry_id), STRUCK)
        try:
            return None if held == STRUCK else IndexedMessage.decode(held)
        except ValueError as error:
            raise self._damaged(id_field(entry_id), error) from None

    def _damaged(self, field: str, error: Exception) -> StoreError:
        return damaged(self._session_id, Keys(self._session_id).message_index, field, error)


def _too_old(message: MessageReference | str) -> MessageError:
    newest = f"only the newest {INDEXED:,} messages of a session can be corrected or struck"
    return MessageError(f"is about {message}, which is too old: {newest}")
