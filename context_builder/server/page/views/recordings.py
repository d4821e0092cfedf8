"""This view shows the published state of a recorded session at any instant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from context_builder.errors import RecordingError
from context_builder.knowledge.governance import Access
from context_builder.recording.folder import RecordingEntry
from context_builder.recording.library import RecordingLibrary
from context_builder.server.access.caller import Caller
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER, CallerHere, ServicesHere, SessionId
from context_builder.server.page.page_route import page_router
from context_builder.server.page.recording_view import SPEEDS, SeenState, in_utc, seconds_of, silence, strip
from context_builder.server.page.rendering import render
from context_builder.server.problem import Problem, not_found
from context_builder.server.seen_session import access_to_sessions
from context_builder.server.services import Services

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
    return render(request, "recordings.html", title="Back in time", recordings=rows, records=library is not None)


@router.get("/sessions/{session_id}/recording", openapi_extra=READER)
async def recording_of(session_id: SessionId, services: ServicesHere, caller: CallerHere) -> Response:
    """Lead from a session to its recording; where there is none, to the list, which says how to have one."""
    library = _library(services, caller)
    listed = await library.recordings() if library is not None else []
    is_there = any(one.session_id == session_id for one in listed)
    return RedirectResponse(f"{PAGE}/recordings/{session_id}" if is_there else f"{PAGE}/recordings", 303)


@router.get("/recordings/{session_id}", openapi_extra=READER)
async def recording_page(
    session_id: SessionId, request: Request, services: ServicesHere, caller: CallerHere
) -> Response:
    """Show what readers saw at an instant; at the recording's end, where none is named."""
    library = _library(services, caller)
    await _check_seen(services, caller, session_id)
    second = _second(request.query_params.get("at", "end"))
    with _readable():
        moment = await library.moment(session_id, second) if library is not None else None
    if moment is None:
        raise not_found()
    return render(
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


async def _check_seen(services: Services, caller: Caller, session_id: str) -> None:
    """Raise a :class:`Problem` unless the caller sees the session as it is: a recording cannot be redacted whole."""
    if (await access_to_sessions(services, caller, [session_id]))[session_id] is not Access.READ:
        raise not_found()


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
