"""This view corrects what was said, calls a speaker otherwise, and strikes a message, by forms that need no script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Query, Request, Response
from starlette.responses import RedirectResponse

from context_builder.json_values import objects_of
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import WRITER, OwnRedis, SessionId
from context_builder.server.page.choices import once
from context_builder.server.page.conversation_reader import shown_messages
from context_builder.server.page.page_route import FormHere, form_page, page_router
from context_builder.server.problem import Problem, not_found
from context_builder.server.routes.sessions import correct_message, rename_speaker, strike_message
from context_builder.server.seen_session import SeenHere, SeenSession
from context_builder.session.client import JsonObject, SessionClient

router = page_router()

OFFERED: Final = 20
"""Messages that are offered at once, the newest first."""

DONE: Final = {
    "correct": "The message is corrected.",
    "rename": "The speaker is renamed.",
    "strike": "The message is struck: nothing is left of it.",
}
"""What the page says once it is done; an address names no more than which of these."""

MessageId = Annotated[int | None, Query(ge=0, lt=2**53)]


@router.get("/sessions/{session_id}/revisions", openapi_extra=WRITER)
async def revisions(
    session_id: SessionId, request: Request, seen: SeenHere, message: MessageId = None, before: MessageId = None
) -> Response:
    """Ask what is to be changed: offer messages, of which ``message`` is the chosen one, those ``before`` another."""
    return await _page(
        request, session_id, seen, message, before, done=DONE.get(request.query_params.get("done", ""), "")
    )


@router.post("/sessions/{session_id}/revisions", openapi_extra=WRITER)
async def revise(session_id: SessionId, request: Request, redis: OwnRedis, seen: SeenHere, form: FormHere) -> Response:
    """Change what was said, and say so; where that cannot be, show the form again with the reason."""
    client, message = SessionClient(redis, session_id), form.get("message", "").strip()
    try:
        match what := form.get("what"):
            case "correct":
                said, by = _changed(form, "text"), _changed(form, "speaker")
                await correct_message(client, seen, f"id:{message}", said, by)
            case "rename":
                await rename_speaker(client, form.get("old", ""), form.get("new", ""))
            case "strike":
                await strike_message(client, f"id:{message}")
            case _:
                raise Problem(422, "invalid_request", "what is to be done is not told")
    except Problem as problem:
        gone = Problem(422, "invalid_request", "that message is not there any more")
        chosen = int(message) if message.isascii() and message.isdigit() and len(message) < 16 else None
        return await _page(request, session_id, seen, chosen, None, problem=gone if problem.status == 404 else problem)
    return RedirectResponse(f"{PAGE}/sessions/{quote(session_id, safe='')}/revisions?done={what}", 303)


async def _page(
    request: Request,
    session_id: str,
    seen: SeenSession,
    chosen: int | None,
    before: int | None,
    *,
    done: str = "",
    problem: Problem | None = None,
) -> Response:
    end = before if before is not None else 1 + _last_id(await seen.state() or {})
    begin = max(0, end - OFFERED)
    found = await seen.after(session_id, begin - 1, OFFERED)
    if found is None:
        raise not_found()
    offered = shown_messages([one for one in found if one["id"] < end and one.get("text")])
    unmasked = await seen.unmasked(begin - 1, OFFERED)
    picked = None
    if chosen is not None:
        unmasked |= await seen.unmasked(chosen - 1, 1)
        at = await seen.after(session_id, chosen - 1, 1) or []
        picked = next((one for one in at if one["id"] == chosen and one.get("text")), None)
        problem = problem or (None if picked else Problem(404, "not_found", "that message is not there any more"))
    people = once(
        one["speaker"]
        for one in [*offered, *shown_messages([picked] if picked else [])]
        if not one["assistant"] and "speaker" in unmasked.get(one["id"], ())
    )
    return await form_page(
        request,
        "revisions.html",
        title=f"Correct {session_id}",
        problem=problem,
        session_id=session_id,
        done=done,
        chosen=picked,
        may_change=unmasked.get(picked["id"], ()) if picked else (),
        offered=offered[::-1],
        earlier=begin if begin > 1 else None,  # also where all of these are struck
        people=sorted(people),
    )


def _last_id(state: JsonObject) -> int:
    """Return the id of the newest message, or one that is a little higher: others may have none any more."""
    held = [*objects_of(state.get("raw_recent_buffer")), *objects_of(state.get("consilience_responses"))]
    ids = [number for one in held if isinstance(number := one.get("id"), int)]
    return max(*ids, int(state.get("received_messages") or 0), 0)


def _changed(form: Mapping[str, str], name: str) -> str | None:
    """Return what a field says, as it was typed; None where it says what the message said before, or nothing."""
    said, before = (_lines(form.get(key, "")) for key in (name, f"{name}_before"))
    return said if said.strip() and said != before else None


def _lines(text: str) -> str:
    """Return a text with the ends of lines that it had before a browser sent it."""
    return text.replace("\r\n", "\n").strip()
