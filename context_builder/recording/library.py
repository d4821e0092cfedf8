"""A library opens the recordings of a folder for people who look back in time, and remembers the ones used last.

Its timelines find what was published at any instant quickly, however long a recording is. The recording is played once;
on the way, copies of the player are kept. To seek is to play on from the nearest one. What was appended since is read
when it is asked for again.
"""

from __future__ import annotations

import asyncio
import math
import os
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from context_builder.errors import RecordingError, StoreError
from context_builder.recording.file import SUFFIX, RecordingEntry, find_recording, open_recording, recordings_in
from context_builder.recording.recording import Line, parse
from context_builder.recording.replay import UNFOLLOWED, Player, RebuiltState

T = TypeVar("T")

FIRST_SPACING: Final = 1_000
"""Lines between two copies of a player, at first; twice as many whenever there are too many copies."""

MOST_COPIES: Final = 48

_BEGINNING: Final = 200
"""Bytes that tell a recording from another one of the same name: they have its first run's id, and when it began."""


class Span(NamedTuple):
    """When a recording begins and ends, in epoch seconds."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return max(0.0, self.end - self.begin)

    def tenth(self, wall: float) -> int:
        """Return the first tenth of a second after the begin at which what happened then is to be seen."""
        return math.ceil(round((wall - self.begin) * 10, 3))


class _Published(NamedTuple):
    """The place of a ``published`` line."""

    wall: float
    offset: int
    run: str


@dataclass(slots=True)
class _Copy:
    """A player as it was before the line at ``offset``, in the run ``run``."""

    offset: int
    number: int
    run: str
    player: Player


@dataclass(slots=True)
class _Progress:
    """How far the file has been read, and the players of the runs by then."""

    offset: int = 0
    number: int = 0
    players: dict[str, Player] = field(default_factory=dict)


class Timeline:
    """Seeks in one recording; to be used by one thread at a time.

    ``arrivals`` are the times at which messages were published first, and ``summaries`` those of finished summaries, in
    epoch seconds. ``stopped`` says why this version cannot follow the recording to its end, where that is so.
    Everything raises :class:`RecordingError` for a file that is not a recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    def _forget(self) -> None:
        self.arrivals = array("d")
        self.summaries = array("d")
        self.stopped = ""
        self._published: list[_Published] = []
        self._walls = array("d")
        self._earliest: list[float] | None = None
        self._copies: list[_Copy] = []
        self._spacing = FIRST_SPACING
        self._last_copy: dict[str, int] = {}
        self._begun_at: float | None = None
        self._end = 0.0
        self._unpublished = 0
        self._summary_tasks: set[tuple[str, int]] = set()
        self._read = _Progress()
        self._cursor: _Copy | None = None
        self._file: tuple[int, bytes] | None = None

    @property
    def span(self) -> Span:
        """Return when it begins and ends."""
        begin = self._begun_at or 0.0
        return Span(begin, max(self._end, begin))

    def refresh(self) -> None:
        """Read what was appended; all, at first and where it is another file than before."""
        try:
            with open_recording(self.path) as file:
                status = os.fstat(file.fileno())
                identity = (status.st_ino, file.read(_BEGINNING))
                if identity != self._file or status.st_size < self._read.offset:
                    self._forget()
                    self._file = identity
                file.seek(self._read.offset)
                self._take_all(file)
        except OSError as error:
            raise RecordingError(f"{self.path.name}: cannot be read: {error.strerror or error}") from None
        if self._begun_at is None:
            raise RecordingError(f"{self.path.name}: is not a recording of a session")

    def seek(self, until: float) -> RebuiltState:
        """Return the last state that was published by epoch second ``until``; the first one, before that."""
        if not self._published:
            raise RecordingError(f"{self.path.name}: nothing was published yet")
        target = self._published[max(0, bisect_right(self._suffix_minima(), until) - 1)]
        start = self._nearest(target)
        try:
            with open_recording(self.path) as file:
                file.seek(start.offset)
                return self._play(file, start, target)
        except OSError as error:
            raise RecordingError(f"{self.path.name}: cannot be read: {error.strerror or error}") from None

    def _suffix_minima(self) -> list[float]:
        """Return, for each published state, the earliest time from it on: clocks may be set back between runs."""
        if self._earliest is None:
            earliest, lowest = [], float("inf")
            for wall in reversed(self._walls):
                lowest = min(lowest, wall)
                earliest.append(lowest)
            self._earliest = earliest[::-1]
        return self._earliest

    def _take_all(self, lines: Iterable[bytes]) -> None:
        for raw in lines if not self.stopped else ():
            if not raw.endswith(b"\n"):
                break  # is being written
            try:
                self._take(raw)
            except RecordingError as error:
                self.stopped = str(error)
                break

    def _take(self, raw: bytes) -> None:
        read = self._read
        read.number += 1
        line = parse(read.number, raw)
        if line is not None:
            _followed(line, partial(self._note, line))
            if line.event == "begin":
                read.players[line.run] = _followed(line, partial(Player, line))
                self._last_copy[line.run] = line.number - self._spacing
            elif (player := read.players.get(line.run)) is not None:
                if line.event == "published":
                    self._published.append(_Published(line.at.wall, read.offset, line.run))
                    self._walls.append(line.at.wall)
                    self._end = max(self._end, line.at.wall)
                    self._earliest = None
                self._keep_copy(line, player)
                _apply(player, line)
        read.offset += len(raw)

    def _note(self, line: Line) -> None:
        if self._begun_at is None and line.event == "begin":
            self._begun_at = line.at.wall
        elif line.event == "received":
            self._unpublished += len(line.more["messages"])
        elif line.event == "published":
            self.arrivals.extend([line.at.wall] * self._unpublished)
            self._unpublished = 0
        elif line.event == "task_started" and line.more["kind"] == "summary" and line.more["task"] is not None:
            self._summary_tasks.add((line.run, line.more["task"]))
        elif line.event == "task_finished" and (line.run, line.more["task"]) in self._summary_tasks:
            self._summary_tasks.discard((line.run, line.more["task"]))
            if line.more["result"] is not None:
                self.summaries.append(line.at.wall)

    def _keep_copy(self, line: Line, player: Player) -> None:
        if line.number - self._last_copy[line.run] < self._spacing:
            return
        self._last_copy[line.run] = line.number
        copied = _followed(line, player.copied)
        self._copies.append(_Copy(self._read.offset, line.number - 1, line.run, copied))
        if len(self._copies) > MOST_COPIES:
            self._spacing *= 2
            first = {one.run: one for one in reversed(self._copies)}  # without it, nothing of the run could be sought
            self._copies = [one for at, one in enumerate(self._copies) if at % 2 == 0 or first[one.run] is one]

    def _nearest(self, target: _Published) -> _Copy:
        """Return where to play on from: a kept copy, or the place of the last seek where that is nearer."""
        before = [one for one in self._copies if one.run == target.run and one.offset <= target.offset]
        best = max(before, key=lambda one: one.offset)
        cursor = self._cursor
        if cursor is not None and cursor.run == target.run and best.offset <= cursor.offset <= target.offset:
            self._cursor = None
            return cursor
        return _Copy(best.offset, best.number, best.run, best.player.copied())

    def _play(self, lines: Iterable[bytes], place: _Copy, target: _Published) -> RebuiltState:
        for raw in lines:
            place.number += 1
            line = parse(place.number, raw)
            if line is not None and line.run == place.run and place.offset == target.offset:
                self._cursor = place  # where the same is asked for again, it is made again: nothing else was applied
                return _followed(line, partial(place.player.published, line))
            if line is not None and line.run == place.run:
                _apply(place.player, line)
            place.offset += len(raw)
        raise RecordingError(f"{self.path.name}: has become shorter while it was read")


def _apply(player: Player, line: Line) -> None:
    if line.event == "published":
        player.pass_over()
    elif line.event != "begin":
        _followed(line, partial(player.apply, line))


def _followed(line: Line, do: Callable[[], T]) -> T:
    try:
        return do()
    except (*UNFOLLOWED, StoreError) as error:
        what = f"line {line.number} does not follow from what is before it: {type(error).__name__}"
        raise RecordingError(what) from None


MOST_OPEN: Final = 4
"""Recordings whose timelines are kept; one of a day's talk takes some ten megabytes."""

BUCKETS: Final = 120
"""Parts into which a recording's time is divided to show when there was talk."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What readers saw at ``at``, in epoch seconds, and where in the recording that is.

    ``state`` and ``conversation`` are the published JSON. ``before`` and ``after`` are the nearest other tenths of a
    second, from the begin on, at which a message was new, if there are such; ``talk`` counts the messages of each of
    equal parts of the ``span``, ``summaries`` are the shares of it, 0 to 1, at which a summary was finished.
    ``stopped`` is as in :class:`~context_builder.recording.library.Timeline`.
    """

    session_id: str
    span: Span
    at: float
    revision: int
    exact: bool
    state: dict[str, Any]
    conversation: dict[str, Any]
    before: int | None
    after: int | None
    talk: Sequence[int]
    summaries: Sequence[float]
    stopped: str


@dataclass(slots=True)
class _Open:
    timeline: Timeline
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


class RecordingLibrary:
    """Reads the recordings in ``folder``, in threads.

    Everything raises :class:`~context_builder.errors.RecordingError` for one that cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[Path, _Open] = OrderedDict()

    async def recordings(self) -> list[RecordingEntry]:
        """Return the recordings, the one that was written last first."""
        return await asyncio.to_thread(recordings_in, self._folder)

    async def moment(self, session_id: str, second: float) -> Moment | None:
        """Return what readers saw so many seconds after the recording began; None for no such recording."""
        if (entry := await asyncio.to_thread(find_recording, self._folder, session_id)) is None:
            self._open.pop(self._folder / f"{session_id}{SUFFIX}", None)  # a forgotten session is not remembered here
            return None
        opened = self._opened(entry.path)
        async with opened.one_at_a_time:
            return await asyncio.to_thread(_moment, opened.timeline, session_id, second)

    def _opened(self, path: Path) -> _Open:
        opened = self._open.setdefault(path, _Open(Timeline(path)))
        self._open.move_to_end(path)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return opened


def _moment(timeline: Timeline, session_id: str, second: float) -> Moment:
    timeline.refresh()
    span, arrivals = timeline.span, timeline.arrivals
    at = span.begin + min(max(second, 0.0), span.seconds)
    found = timeline.seek(at)
    tenth = round((at - span.begin) * 10)
    before, after = bisect_left(arrivals, tenth, key=span.tenth) - 1, bisect_right(arrivals, tenth, key=span.tenth)
    return Moment(
        session_id=session_id,
        span=span,
        at=at,
        revision=found.revision,
        exact=found.exact,
        state=orjson.loads(found.state),
        conversation=orjson.loads(found.conversation),
        before=span.tenth(arrivals[before]) if before >= 0 else None,
        after=span.tenth(arrivals[after]) if after < len(arrivals) else None,
        talk=_talk(arrivals, span),
        summaries=[(one - span.begin) / span.seconds for one in timeline.summaries] if span.seconds else [],
        stopped=timeline.stopped,
    )


def _talk(arrivals: Sequence[float], span: Span) -> list[int]:
    counts = [0] * BUCKETS
    for one in arrivals:
        place = int((one - span.begin) / span.seconds * BUCKETS) if span.seconds else 0
        counts[min(max(place, 0), BUCKETS - 1)] += 1
    return counts
