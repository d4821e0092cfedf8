"""This view corrects what was said, calls a speaker otherwise, and strikes a message, by forms that need no script."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from context_builder.server.guarded_route import WRITER
from context_builder.server.page.form_page import form_page
from context_builder.server.page.page_route import FormHere, page_router
from context_builder.server.problem import Problem
from context_builder.server.revisions import correct_message, rename_speaker, strike_message
from context_builder.server.seen_session import SeenHere
from context_builder.server.services import OwnRedis, SessionId
from context_builder.session.client import SessionClient

router = page_router()

DONE: Final = {
    "correct": "The message is corrected.",
    "rename": "The speaker is called otherwise now.",
    "strike": "The message is struck: nothing is left of it.",
}
"""What the page says once it is done; an address names no more than which of these."""


@router.get("/sessions/{session_id}/revisions", openapi_extra=WRITER)
async def revisions(session_id: SessionId, request: Request, seen: SeenHere) -> Response:
    """Ask what is to be changed; ``message`` is the one that was chosen."""
    message, done = request.query_params.get("message", "")[:200], DONE.get(request.query_params.get("done", ""), "")
    title = f"Correct {session_id}"
    return form_page(request, "revisions.html", title=title, session_id=session_id, message=message, done=done)


@router.post("/sessions/{session_id}/revisions", openapi_extra=WRITER)
async def revise(session_id: SessionId, request: Request, redis: OwnRedis, seen: SeenHere, form: FormHere) -> Response:
    """Change what was said, and say so; where that cannot be, show the form again with the reason."""
    client, message = SessionClient(redis, session_id), form.get("message", "").strip()
    try:
        match what := form.get("what"):
            case "correct":
                await correct_message(client, message, form.get("text") or None, form.get("speaker") or None)
            case "rename":
                await rename_speaker(client, form.get("old", ""), form.get("new", ""))
            case "strike":
                await strike_message(client, message)
            case _:
                raise Problem(422, "invalid_request", "what is to be done is not told")
    except Problem as problem:
        told = Problem(422, "invalid_request", f"there is no message {message}") if problem.status == 404 else problem
        title = f"Correct {session_id}"
        return form_page(
            request, "revisions.html", title=title, problem=told, session_id=session_id, message=message, done=""
        )
    return RedirectResponse(
        str(request.url_for("revisions", session_id=session_id).include_query_params(done=what)), 303
    )
