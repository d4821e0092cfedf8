"""This view shows the published state of a recorded session at any instant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from context_builder.clock import epoch
from context_builder.errors import RecordingError
from context_builder.json_values import number_of, object_of, objects_of, texts_of
from context_builder.knowledge.governance import Access
from context_builder.recording.file import RecordingEntry
from context_builder.recording.library import Moment, RecordingLibrary
from context_builder.server.access.caller import Caller
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER, CallerHere, ServicesHere, SessionId
from context_builder.server.page.page_route import page_router
from context_builder.server.page.rendering import render
from context_builder.server.page.summary_view import in_order, shown_point, under_headings
from context_builder.server.problem import Problem, not_found
from context_builder.server.seen_session import MUST_BE_READ, access_to_sessions
from context_builder.server.services import Services
from context_builder.session.client import JsonObject

SPEEDS: Final = (1, 2, 5, 10, 30, 60)
"""Seconds of a recording that are played in one."""

_WIDTH: Final = 960
_HEIGHT: Final = 56
_TOP: Final = 10
"""Room for the signs of summaries, above the bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the strip."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Strip:
    """When people talked, as bars, and where summaries were finished."""

    bars: tuple[Bar, ...]
    summaries: tuple[float, ...]
    width: int = _WIDTH
    height: int = _HEIGHT


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of the buffer, with the time of day at which it was said."""

    speaker: str
    text: str
    time: str
    keywords: tuple[str, ...]
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenState:
    """What readers of a state see, points under headings; a recording is a file, so any part of it may be missing."""

    messages: tuple[SeenMessage, ...]
    points: Sequence[tuple[str, Sequence[JsonObject]]]
    domains: tuple[tuple[str, float], ...]
    keywords: tuple[str, ...]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> SeenState:
        """Return what is to be seen of a published state."""
        summary = state.get("rolling_summary")
        confidence = object_of(state.get("domain_confidence"))
        domains = [(name, number_of(confidence.get(name)) or 0.0) for name in _texts(state.get("current_domains"))]
        return cls(
            tuple(map(_message, objects_of(state.get("raw_recent_buffer")))),
            under_headings(in_order(map(shown_point, objects_of(object_of(summary).get("points"))))),
            tuple(sorted(domains, key=lambda one: -one[1])),
            _texts(state.get("current_keywords")),
        )


def strip(moment: Moment) -> Strip:
    """Return the strip of a recording's time."""
    highest, width = max(moment.talk, default=0) or 1, _WIDTH / max(1, len(moment.talk))
    bars = []
    for place, count in enumerate(moment.talk):
        if count:
            height = math.sqrt(count / highest) * (
                _HEIGHT - _TOP
            )  # beside a backlog that came at once, talk still shows
            bars.append(Bar(round(place * width, 1), round(_HEIGHT - height, 1), round(width - 1, 1), round(height, 1)))
    return Strip(tuple(bars), tuple(round(share * _WIDTH, 1) for share in moment.summaries))


def silence(moment: Moment) -> str:
    """Return how long nobody had said anything by then, in words."""
    last = moment.state.get("last_message_time")
    if not moment.state.get("received_messages") or not isinstance(last, int | float):
        return "nobody had said anything"
    seconds = max(0.0, moment.at - last)
    minutes, rest = divmod(round(seconds), 60)
    long = f"{minutes:,} min {rest} s" if minutes else f"{rest} s"
    return f"the last message was {long} before" if seconds >= 1 else "somebody was speaking"


def seconds_of(tenths: int | None) -> str | None:
    """Return where an instant is on the slider."""
    return None if tenths is None else f"{tenths / 10:.1f}"


def in_utc(wall: float) -> datetime:
    """Return the moment in UTC."""
    return datetime.fromtimestamp(wall, UTC)


def _message(entry: Mapping[str, Any]) -> SeenMessage:
    arrived = number_of(entry.get("buffer_entry_time")) or 0.0
    said = epoch(entry.get("timestamp"), near=arrived)
    try:
        time = in_utc(arrived if said is None else said).strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        time = ""
    return SeenMessage(
        str(entry.get("speaker") or "Unknown"),
        str(entry.get("text") or ""),
        time,
        _texts(entry.get("keywords")),
        _texts(entry.get("domains")),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(texts_of(value))


router = page_router()


def _library(services: Services, caller: Caller) -> RecordingLibrary | None:
    """Return the recordings, which are of this process's own tenant; none for another tenant's caller."""
    return services.recordings if caller.tenant_id == services.sessions.tenant_id else None


@router.get("/recordings", openapi_extra=READER)
async def recordings_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """List the recordings."""
    library = _library(services, caller)
    listed = await _seen(services, caller, library)
    rows = [{"session_id": one.session_id, "size": one.size, "written": in_utc(one.changed_at)} for one in listed]
    return await render(request, "recordings.html", title="Back in time", recordings=rows, records=library is not None)


@router.get("/sessions/{session_id}/recording", openapi_extra=READER)
async def recording_of(session_id: SessionId, services: ServicesHere, caller: CallerHere) -> Response:
    """Lead from a session to its recording; where there is none, to the list, which says how to have one."""
    library = _library(services, caller)
    listed = await library.recordings() if library is not None else []
    is_there = any(one.session_id == session_id for one in listed)
    return RedirectResponse(f"{PAGE}/recordings/{session_id}" if is_there else f"{PAGE}/recordings", 303)


@router.get("/recordings/{session_id}", openapi_extra=READER, dependencies=[MUST_BE_READ])
async def recording_page(
    session_id: SessionId, request: Request, services: ServicesHere, caller: CallerHere
) -> Response:
    """Show what readers saw at an instant; at the recording's end, where none is named."""
    library = _library(services, caller)
    second = _second(request.query_params.get("at", "end"))
    with _readable():
        moment = await library.moment(session_id, second) if library is not None else None
    if moment is None:
        raise not_found()
    return await render(
        request,
        "recording.html",
        title=f"{session_id}, back in time",
        moment=moment,
        second=moment.at - moment.span.begin,
        at=in_utc(moment.at),
        seen=SeenState.of(moment.state),
        strip=strip(moment),
        silence=silence(moment),
        before=seconds_of(moment.before),
        after=seconds_of(moment.after),
        speeds=SPEEDS,
    )


async def _seen(services: Services, caller: Caller, library: RecordingLibrary | None) -> list[RecordingEntry]:
    """Return the recordings that the caller may see: of sessions that it sees as they are."""
    listed = await library.recordings() if library is not None else []
    access = await access_to_sessions(services, caller, [one.session_id for one in listed])
    return [one for one in listed if access[one.session_id] is Access.READ]


def _second(text: str) -> float:
    try:
        second = float(text)
    except ValueError:
        return math.inf
    return math.inf if math.isnan(second) else second


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except RecordingError as error:
        raise Problem(409, "unreadable_recording", f"the recording cannot be followed: {error}") from None
