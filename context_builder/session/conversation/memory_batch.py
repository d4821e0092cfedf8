"""A memory batch holds what one part of a summary adds to the long-term memory: its messages, and new points."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

import orjson
import structlog

from context_builder.clock import moment
from context_builder.errors import EntryUnreadable
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, TenantMemory, point_id
from context_builder.memory.preferences import KIND, WITHDRAWN, Preference, stated_preferences, withdrawal
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import UNKNOWN_SPEAKER
from context_builder.session.stored import BATCH, MEMORY
from context_builder.session.summary.cited_change import with_name
from context_builder.session.summary.ledger import LedgerUpdate
from context_builder.session.summary.point import Point, replaced_by

log = structlog.get_logger(__name__)

_HELD: Final = 200
"""Newest preferences of a user that may be taken back."""


@dataclass(slots=True)
class PreferenceChanges:
    """The ``memories`` to keep, by id, of each user and topic the last; and the preferences taken back."""

    memories: dict[str, Memory] = field(default_factory=dict)
    withdrawals: list[tuple[Preference, Memory]] = field(default_factory=list)
    """Withdrawn preferences, each with the message that withdraws it."""

    async def settled(self, memory: TenantMemory) -> list[Memory]:
        """Return all of it to be remembered; a withdrawal replaces what the user stated before."""
        settled = dict(self.memories)
        for user_id in {_user_of(said) for _, said in self.withdrawals}:
            where = MemoryFilter(user_id=user_id, kinds=(KIND,))
            held = [found.memory for found in await memory.search(MemoryQuery("", limit=_HELD, filter=where))]
            for preference, said in self.withdrawals:
                for one in held if _user_of(said) == user_id else ():
                    if one.id not in settled and _withdraws(preference, one):
                        settled[one.id] = withdrawal(one, said.id, said.time)
        return list(settled.values())


def preferences_in(memories: Iterable[Memory]) -> PreferenceChanges:
    """Return the preferences that message memories state, oldest first.

    They are the user's whom the message names, else the speaker's. What the assistant says is nobody's preference,
    nor is what somebody unknown says.
    """
    stated = PreferenceChanges()
    for memory in memories:
        for preference in _stated(memory):
            if preference.withdrawn:
                stated.withdrawals.append((preference, memory))
                for one in stated.memories.values():
                    if one.user_id == _user_of(memory) and _withdraws(preference, one):
                        stated.memories[one.id] = withdrawal(one, memory.id, memory.time)
                continue
            remembered = preference.as_memory(str(_user_of(memory)), source=memory.id, time=memory.time)
            stated.memories.pop(remembered.id, None)
            stated.memories[remembered.id] = replace(remembered, session_id=memory.session_id, speaker=memory.speaker)
    return stated


def _stated(memory: Memory) -> Iterator[Preference]:
    if memory.kind != "message" or memory.metadata.get("consilience") or _user_of(memory) in (None, UNKNOWN_SPEAKER):
        return
    try:
        yield from stated_preferences(memory.text)
    except Exception as error:  # noqa: BLE001 whatever a pattern stumbles over, the message itself is remembered
        log.error("preferences.failed", memory=memory.id, kind=type(error).__name__)


def _user_of(memory: Memory) -> str | None:
    user_id: str | None = memory.metadata.get("user_id", memory.speaker)
    return user_id


def _withdraws(preference: Preference, memory: Memory) -> bool:
    """Return whether the memory is a current preference that is taken back; re-read messages find it gone."""
    return WITHDRAWN not in memory.metadata and preference.withdraws(memory.text)


_FIELDS: Final = ("id", "text", "kind", "speaker", "time", "position", "tags", "metadata")
"""Fields of a memory in the order in which an outbox entry lists their values; new ones go to the end."""

MOST_UNPACKED: Final = 64 * 1024 * 1024
"""Bytes of a batch, many times what one part of a summary says; others who write to Redis may pack a thousand times as
much as they send."""

POINT: Final = "point"
"""The kind of memory that a point becomes."""

POINT_KEYWORDS: Final = 10
"""Most keywords of a point; each of the messages it cites may have as many."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """Tells what the message with a memory's ``id`` says now; its words stay where ``text`` is None."""

    id: str
    text: str | None
    speaker: str

    def followed_by(self, later: Amendment) -> Amendment:
        """Return what the message says after a later one."""
        return later if later.text is not None else replace(later, text=self.text)

    def applied(self, memory: Memory) -> Memory:
        """Return the memory as it is to be; what was found in other words is left out."""
        if self.text is None:
            return replace(memory, speaker=self.speaker)
        metadata = {name: value for name, value in memory.metadata.items() if name != "keywords"}
        return replace(memory, text=self.text, speaker=self.speaker, metadata=metadata)


@dataclass(frozen=True, slots=True)
class StruckMessage:
    """Names a message of which nothing is to be left: by its memory's ``id``, and its id in the session, ``entry_id``.

    ``points`` are ids of memories of points that rested on it.
    """

    id: str
    entry_id: int
    points: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MemoryBatch:
    """Memories to keep, and the ids of those that no longer hold; messages that say something else now, and those that
    were struck; and the new names of speakers, by the old ones.

    Its outbox entry is compressed: hardly more than what was said, however long the memory stays away.
    """

    session_id: str
    memories: Sequence[Memory] = ()
    superseded: Sequence[str] = ()
    amended: Sequence[Amendment] = ()
    struck: Sequence[StruckMessage] = ()
    renamed: Sequence[tuple[str, str]] = ()

    def encode(self) -> bytes:
        rows = [[getattr(memory, name) for name in _FIELDS] for memory in self.memories]
        revised = {"amended": self.amended, "struck": self.struck, "renamed": self.renamed}
        written = orjson.dumps(
            {
                "session_id": self.session_id,
                "memories": rows,
                "superseded": self.superseded,
                **{name: values for name, values in revised.items() if values},
            }
        )
        return zlib.compress(written, level=1)

    @classmethod
    def decode(cls, encoded: bytes) -> Self:
        """Return the batch that :meth:`encode` wrote. Raises :class:`EntryUnreadable` for anything else."""
        try:
            written = BATCH.whole(unpacked(encoded))
            session_id = written["session_id"]
            return cls(
                session_id,
                [_memory(session_id, row) for row in written["memories"]],
                written["superseded"],
                tuple(Amendment(**one) for one in written.get("amended", ())),
                tuple(StruckMessage(**one) for one in written.get("struck", ())),
                tuple((old, new) for old, new in written.get("renamed", ())),
            )
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise EntryUnreadable(f"not a memory batch: {type(error).__name__}") from None

    def at_present(self, replaced: Iterable[tuple[int, float]]) -> Self:
        """Return what still holds of the batch when the points ``replaced`` no longer do; for a late delivery."""
        gone = {point_id(self.session_id, number, time) for number, time in replaced}
        return replace(self, memories=[one for one in self.memories if one.id not in gone])

    def without(self, struck: Iterable[StruckMessage]) -> Self:
        """Return the batch without what was struck since, and what rested on it."""
        gone = {known for one in struck for known in (one.id, *one.points)}
        cited = {one.entry_id for one in struck}
        return replace(
            self,
            memories=[one for one in self.memories if one.id not in gone and cited.isdisjoint(cited_by(one))],
            amended=[one for one in self.amended if one.id not in gone],
        )

    def followed_by(self, later: MemoryBatch) -> Self:
        """Return the batch with messages as a later one corrects them, and speakers by the names that it gives them."""
        memories, amended, renamed = [*self.memories], [*self.amended], [*self.renamed]
        for old, new in later.renamed:
            memories = [with_speaker(one, old, new) for one in memories]
            amended = [replace(one, speaker=new) if one.speaker == old else one for one in amended]
            renamed = [(first, new if called == old else called) for first, called in renamed]
        present = {one.id: one for one in later.amended}  # by the names of now
        memories = [present[one.id].applied(one) if one.id in present else one for one in memories]
        amended = [one.followed_by(present[one.id]) if one.id in present else one for one in amended]
        return replace(self, memories=memories, amended=tuple(amended), renamed=tuple(renamed))


def unpacked(encoded: bytes) -> bytes:
    """Return the JSON of a batch. Raises :class:`zlib.error` for what is none, is cut short, or is too large."""
    unpacker = zlib.decompressobj()
    written = unpacker.decompress(encoded, MOST_UNPACKED)
    if not unpacker.eof:
        raise zlib.error("is cut short, or too large")
    return written


def with_speaker(memory: Memory, old: str, new: str) -> Memory:
    """Return a message or a point with another name of a speaker."""
    if memory.kind != POINT:
        return replace(memory, speaker=new) if memory.speaker == old else memory
    if old not in memory.text and old not in (memory.speaker or ""):
        return memory
    speakers = memory.metadata.get("speakers")
    names: Iterable[Any] = speakers if isinstance(speakers, list | tuple) else (memory.speaker or "").split(", ")
    renamed = list(dict.fromkeys(new if name == old else name for name in names))
    metadata = {**memory.metadata, "speakers": renamed} if speakers else memory.metadata
    speaker = ", ".join(map(str, renamed))
    return replace(memory, text=with_name(memory.text, old, new), speaker=speaker, metadata=metadata)


def memory_batch(
    session_id: str,
    entries: Sequence[BufferedMessage],
    update: LedgerUpdate,
    points: Iterable[Point],
    responses: Mapping[int, bytes],
) -> MemoryBatch:
    """Return the batch of a part that summarized ``entries``, and whose ``update`` led to the ledger's ``points``.

    ``responses`` are what the assistant said, as published, by id. Points are remembered as they were written, for
    good: those that leave the summary for want of room, or are rewritten there, stay in the memory as they are. What a
    new point replaced is superseded.
    """
    cited = {entry.id: entry for entry in entries}
    earlier = list(
        {_point_id(session_id, point): point for point in (*points, *update.replaced, *update.written)}.values()
    )
    written = [
        of_point(session_id, point, cited, _rewritten(point, update) or replaced_by(point, earlier))
        for point in update.written
    ]
    messages = [of_message(session_id, entry, responses.get(entry.id)) for entry in entries]
    replaced = dict.fromkeys(known for point in update.replaced for known in point.known_as)
    superseded = [point_id(session_id, number, time) for number, time in replaced]
    return MemoryBatch(session_id, [*messages, *written], superseded)


def _rewritten(point: Point, update: LedgerUpdate) -> Point | None:
    """Return the point that says the same in words that were corrected since, if the update replaced it."""
    return next((old for old in update.replaced if (old.id, old.time) in point.merges), None)


def of_message(session_id: str, entry: BufferedMessage, response: bytes | None = None) -> Memory:
    """Return the message as a memory, its id made of its first identity so that sending it again changes nothing, and
    a correction takes its place.

    ``published`` in its metadata is what else the state says of it, and of the assistant's ``response``.
    """
    known = {
        "message_number": entry.number,
        "keywords": entry.keywords,
        "consilience": entry.consilience,
        "user_id": entry.user_id,
        "published": _published(entry, response),
    }
    return Memory(
        id=message_id(session_id, entry.identity),
        text=entry.text,
        session_id=session_id,
        speaker=entry.speaker,
        time=moment(entry.time),
        position=entry.id,
        tags=tuple(entry.domains),
        metadata={name: value for name, value in known.items() if value},
    )


def message_id(session_id: str, origin: str) -> str:
    """Return the id of a message's memory, made of the identity that it had at first."""
    return f"{session_id}:message:{origin}"


def cited_by(memory: Memory) -> list[int]:
    """Return the ids of the messages that the memory of a point cites; none for any other memory."""
    cited = memory.metadata.get("cites") if memory.kind == POINT else ()
    return [one for one in cited if isinstance(one, int)] if isinstance(cited, list | tuple) else []


def _published(entry: BufferedMessage, response: bytes | None) -> dict[str, Any]:
    """Return the published fields that a memory has no place for, without those of their usual values."""
    fields = {
        "timestamp": entry.timestamp,
        "timestamp_raw": entry.timestamp_raw,
        "buffer_entry_time": entry.buffer_entry_time,
        "confidence": None if entry.confidence == 1.0 else entry.confidence,
        "domain_confidence": entry.domain_confidence or None,
        "metadata": None if response is None else orjson.loads(response)["metadata"] or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def of_point(
    session_id: str, point: Point, entries: Mapping[int, BufferedMessage], replaced: Point | None = None
) -> Memory:
    """Return the point as a memory, with domains and keywords of its cited messages in ``entries``, by id, and the
    number of the decision that it replaces, if it does.
    """
    cited = [entries[entry_id] for entry_id in point.ids if entry_id in entries]
    keywords = list(dict.fromkeys(keyword for entry in cited for keyword in entry.keywords))[:POINT_KEYWORDS]
    return Memory(
        id=_point_id(session_id, point),
        text=point.text,
        kind=POINT,
        session_id=session_id,
        speaker=", ".join(point.by),
        time=moment(point.time),
        tags=tuple(dict.fromkeys(domain for entry in cited for domain in entry.domains)),
        metadata={
            "point": point.kind.value,
            "cites": point.ids,
            "messages": point.messages,
            "speakers": point.by,
            **({"keywords": keywords} if keywords else {}),
            **({"supersedes": replaced.id} if replaced is not None else {}),
        },
    )


def _point_id(session_id: str, point: Point) -> str:
    return point_id(session_id, point.id, point.time)


def _memory(session_id: str, row: Sequence[Any]) -> Memory:
    held = dict(zip(_FIELDS, row, strict=False))
    fields = MEMORY.known(held)
    if fields != held:
        raise ValueError
    time = fields.pop("time")
    tags = tuple(fields.pop("tags"))
    return Memory(
        **fields, session_id=session_id, time=datetime.fromisoformat(time) if time is not None else None, tags=tags
    )
