"""Sessions as lines of JSON: a header each, and after it the values of its keys."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from context_builder.errors import BackupError, SessionIdError
from context_builder.session.keys import SUMMARY_SEQS, Keys
from context_builder.session.store.registry import SessionRegistry
from context_builder.session.store.session_copy import (
    KEPT,
    SessionHeader,
    SessionRestore,
    SharedCounts,
    take_snapshot,
)

LINE: Final = 2**20
"""Bytes of values after which a line ends."""

_LARGEST: Final = 2**53


@dataclass(slots=True)
class SessionPosition:
    """How far the database may be ahead of a session's copy: its highest message, summary and point.

    Where the checkpoint cannot be read, nothing in the database counts as ahead of it.
    """

    message: int = 0
    summary: int = 0
    point: int = 0

    def look(self, checkpoint: Mapping[bytes, bytes]) -> None:
        """Take them from some of the checkpoint's fields."""
        try:
            if head := checkpoint.get(b"head"):
                self.message = int(orjson.loads(head)["last_id"])
            if summary := checkpoint.get(b"summary"):
                ledger = orjson.loads(summary)
                self.summary = int(ledger["seq"])
                self.point = int(ledger["next_point"]) - 1
        except (ValueError, TypeError, KeyError):
            self.is_unknown()

    def is_unknown(self) -> None:
        """Let nothing in the database count as ahead."""
        self.message = self.summary = self.point = _LARGEST - 1


async def session_lines(
    redis: Redis, server: int, *, told: Callable[[str], None], left_out: Callable[[str], None]
) -> AsyncIterator[bytes]:
    """Yield the lines of every session of a Redis; each session is as it was at one moment, and goes on meanwhile.

    ``told`` is given each session's id, and ``left_out`` what is said of a key that somebody made another type.
    """
    for session in await SessionRegistry(redis).sessions():
        snapshot = await take_snapshot(redis, session.session_id)
        try:
            header, at = snapshot.header, SessionPosition(summary=snapshot.header.summary_seq or 0)
            for name, kind in snapshot.left_out.items():
                key = getattr(Keys(session.session_id), name)
                left_out(f"left out {key}: it is a {kind}, not a {KEPT[name]}")
            if snapshot.has_other_count:
                left_out(f"left out the field {session.session_id} of {SUMMARY_SEQS}: it is no count")
            if "checkpoint" in snapshot.left_out:
                at.is_unknown()
            yield _line(
                session=header.session_id,
                server=server,
                active=header.last_active,
                seq=header.summary_seq,
                mark=header.mark.decode("latin-1"),
                lives=header.lives,
            )
            async for name, values in snapshot.parts():
                if name == "checkpoint":
                    at.look(dict(zip(values[::2], values[1::2], strict=True)))
                for some in _parted(values, in_pairs=KEPT[name] == "hash"):
                    yield _line(key=name, values=[b64encode(value).decode() for value in some])
            yield _line(end=header.session_id, message=at.message, summary=at.summary, point=at.point)
        finally:
            await snapshot.drop()
        told(header.session_id)


def _line(**fields: object) -> bytes:
    return orjson.dumps(fields) + b"\n"


def _parted(values: list[bytes], *, in_pairs: bool) -> Iterable[list[bytes]]:
    step, part, size = 2 if in_pairs else 1, list[bytes](), 0
    for first in range(0, len(values), step):
        part += values[first : first + step]
        size += sum(map(len, values[first : first + step]))
        if size > LINE:
            yield part
            part, size = [], 0
    if part:
        yield part


def read_header(line: Mapping[str, Any], servers: int) -> tuple[SessionHeader, int]:
    """Return a session's header and the number of its server. Raises :class:`BackupError`."""
    try:
        session_id, server, active, seq, lives = (
            line[name] for name in ("session", "server", "active", "seq", "lives")
        )
        Keys(session_id)
        mark = line["mark"].encode("latin-1")
        whole = [server, *lives, *([] if seq is None else [seq])]
        fits = (
            all(type(number) is int and -2 <= number < _LARGEST for number in whole)
            and 0 <= server < servers
            and len(lives) == len(KEPT)
            and (active is None or math.isfinite(active))
        )
    except (KeyError, TypeError, ValueError, AttributeError, SessionIdError):
        fits = False
    if not fits:
        raise BackupError("a session's header cannot be read")
    return SessionHeader(session_id, active, seq, mark, tuple(lives)), server


def read_values(line: Mapping[str, Any]) -> tuple[str, list[bytes]]:
    """Return the key's name and its values. Raises :class:`BackupError`."""
    try:
        name, values = line["key"], [b64decode(value, validate=True) for value in line["values"]]
        kind = KEPT[name]
    except (KeyError, TypeError, ValueError):
        raise BackupError("a session's values cannot be read") from None
    if not values or (kind == "hash" and len(values) % 2) or (kind == "string" and len(values) != 1):
        raise BackupError(f"a session's {name} cannot be read")
    return name, values


def read_position(line: Mapping[str, Any]) -> SessionPosition:
    """Return how far the session was. Raises :class:`BackupError`."""
    numbers = [line.get(name) for name in ("message", "summary", "point")]
    if not all(type(number) is int and 0 <= number < _LARGEST for number in numbers):
        raise BackupError("a session's end cannot be read")
    return SessionPosition(*numbers)  # type: ignore[arg-type]


def read_shared_counts(fields: object) -> SharedCounts:
    """Return the counts that a manifest has for a server. Raises :class:`BackupError`."""
    try:
        fence, seqs, marks = (fields[name] for name in ("fence", "summary_seqs", "marks"))  # type: ignore[index]
        read = [{k.encode("latin-1"): v.encode("latin-1") for k, v in values.items()} for values in (seqs, marks)]
        counted = all(value.isdigit() for value in read[0].values())
    except (KeyError, TypeError, ValueError, AttributeError):
        counted = False
    if not counted or type(fence) is not int or not 0 <= fence < _LARGEST:
        raise BackupError("the counts of its sessions cannot be read")
    return SharedCounts(fence, *read)


def write_shared_counts(counts: SharedCounts) -> dict[str, Any]:
    """Return the counts as JSON takes them."""

    def text(values: Mapping[bytes, bytes]) -> dict[str, str]:
        return {field.decode("latin-1"): value.decode("latin-1") for field, value in values.items()}

    return {"fence": counts.fence, "summary_seqs": text(counts.summary_seqs), "marks": text(counts.marks)}


OnSession = Callable[[str, int, SessionPosition], None]


async def restore_sessions(
    lines: Iterable[Mapping[str, Any]],
    servers: Mapping[int, Redis] | None,
    count: int,
    *,
    left_out: frozenset[str],
    done: OnSession,
) -> None:
    """Read the lines, and put the sessions back; without ``servers``, only read them.

    Raises :class:`BackupError` for lines that cannot be read, and for a session that is there already.
    """
    current: tuple[SessionHeader, int] | None = None
    place: SessionRestore | None = None
    for line in lines:
        if "session" in line:
            if current is not None:
                raise BackupError("a session has no end")
            current = read_header(line, count)
            header, server = current
            place = SessionRestore(servers[server], header) if servers and header.session_id not in left_out else None
        elif current is None:
            raise BackupError("values belong to no session")
        elif "key" in line:
            name, values = read_values(line)
            if place is not None:
                await place.write(name, values)
        else:
            header, server = current
            position = read_position(line)
            if line.get("end") != header.session_id:
                raise BackupError("a session has another one's end")
            if place is not None and not await place.finish():
                await place.drop()
                raise BackupError(f"session {header.session_id} already exists")
            if header.session_id not in left_out:
                done(header.session_id, server, position)
            current = place = None
    if current is not None:
        raise BackupError("a session has no end")
