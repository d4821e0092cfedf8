"""A library opens the recordings of a folder for people who look back in time, and remembers the ones used last."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from context_builder.recording.folder import SUFFIX, RecordingEntry, find_recording, recordings_in
from context_builder.recording.timeline import Span, Timeline

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
    ``stopped`` is as in :class:`~context_builder.recording.timeline.Timeline`.
    """

    session_id: str
    span: Span
    at: float
    published_at: float
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
        if (entry := await self._find(session_id)) is None:
            self._open.pop(self._folder / f"{session_id}{SUFFIX}", None)  # a forgotten session is not remembered here
            return None
        opened = self._opened(entry.path)
        async with opened.one_at_a_time:
            return await asyncio.to_thread(_moment, opened.timeline, session_id, second)

    async def _find(self, session_id: str) -> RecordingEntry | None:
        return await asyncio.to_thread(find_recording, self._folder, session_id)

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
        published_at=found.at.wall,
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
