"""This view explains a session's prompt within an adjustable budget, and takes feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Self

from fastapi import Request, Response
from pydantic import ValidationError
from redis.asyncio import Redis
from starlette.responses import RedirectResponse

from context_builder.assembly.build_turn import BuiltContext
from context_builder.errors import DatabaseRejected, SessionIdError, TokenLimitExceeded
from context_builder.knowledge.request import MAX_BUDGET
from context_builder.memory.memory import Rating
from context_builder.server.access.caller import Caller
from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER, CallerHere, ServicesHere, SessionId
from context_builder.server.page.choices import (
    documents_to_choose,
    remembered_to_choose,
    sessions_to_choose,
    with_chosen,
)
from context_builder.server.page.form_page import form_page, values_of
from context_builder.server.page.page_route import FormHere, page_router
from context_builder.server.page.prompt_view import SECTIONS, PromptView, is_rated, prompt_view
from context_builder.server.problem import Problem, invalid
from context_builder.server.routes.memories import memories_of
from context_builder.server.routes.turns import TurnRequest, built_turn, refusals, shown_receipts
from context_builder.server.services import Services
from context_builder.session.keys import validate_session_id

SLIDER: Final = 16_000
"""Tokens at the end of the slider; a number may be larger."""

FEW: Final = 6
"""Candidates of a section that are shown at once; the others behind a click."""

_DEFAULT: Final = "4000"
_MOST_RATED: Final = 200


@dataclass(frozen=True, slots=True)
class PromptForm:
    """The fields as they were sent."""

    session: str = ""
    query: str = ""
    budget: str = _DEFAULT
    user: str = ""
    project: str = ""
    before: str = ""

    @classmethod
    def read(cls, sent: Mapping[str, Any]) -> Self:
        return cls(**{name: str(sent.get(name, "")).strip() for name in cls.__slots__})

    def turn(self) -> TurnRequest:
        """Return the turn with the largest budget there is, in which everything fits that was found."""
        fields: dict[str, Any] = {"query": self.query, "token_budget": MAX_BUDGET, "user_id": self.user or None}
        if self.project:
            fields["package_scope"] = {"project_id": self.project, "session_ids": [self.session]}
        try:
            return TurnRequest.model_validate(fields)
        except ValidationError as error:
            raise invalid(error.errors()) from None

    def tokens(self) -> tuple[int, int]:
        """Return the budget, and the one before."""
        budget = _whole(self.budget)
        if budget is None or not 1 <= budget <= MAX_BUDGET:
            raise Problem(422, "invalid_request", f"the tokens are not a whole number from 1 to {MAX_BUDGET:,}")
        before = _whole(self.before)
        return budget, budget if before is None or not 1 <= before <= MAX_BUDGET else before


router = page_router()


@router.get("/prompt", openapi_extra=READER)
async def prompt_page(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show the prompt of a session's next turn, where none is named of the one that was active last."""
    noted = _whole(request.query_params.get("noted", ""))
    if noted is not None:
        return await _page(request, services, caller, PromptForm(), noted=noted)
    named = request.query_params.get("session", "")
    form = PromptForm(session=named or next(iter(await sessions_to_choose(services, caller)), ""))
    try:
        view = await _view(services, caller, form) if form.session else None
        return await _page(request, services, caller, form, view=view)
    except Problem as problem:  # which is of the caller's doing only where a session was named
        return await _page(request, services, caller, form, problem if named else None)


@router.get("/sessions/{session_id}/prompt", openapi_extra=READER)
async def prompt_of(session_id: SessionId) -> Response:
    """Lead from a session to its next prompt."""
    return RedirectResponse(f"{PAGE}/prompt?session={session_id}", 303)


@router.post("/prompt", openapi_extra=READER)
async def show_prompt(request: Request, sent: FormHere, services: ServicesHere, caller: CallerHere) -> Response:
    """Build the prompt of the session's next turn, and tell why each part is in it."""
    form = PromptForm.read(sent)
    try:
        return await _page(request, services, caller, form, view=await _view(services, caller, form))
    except Problem as problem:
        return await _page(request, services, caller, form, problem)


async def _view(services: Services, caller: Caller, form: PromptForm) -> PromptView:
    """Return the prompt within the budget.

    It is built in the largest budget and then fitted into the one that is asked for: so nothing is trimmed on the way,
    of which the memory would be told as of a turn, and two budgets are compared over the same candidates.
    """
    budget, before = form.tokens()
    redis = await _redis(services, caller, form.session)
    if redis is None:
        raise _no_session()
    try:
        with refusals():
            built = await built_turn(form.session, form.turn(), redis, services, caller)
            fitted = _fitted(built, budget)
    except Problem as problem:
        raise _no_session() if problem.status == HTTPStatus.NOT_FOUND else problem from None
    earlier = fitted
    if before != budget:
        with suppress(TokenLimitExceeded):  # there was no prompt that anything could have come in to
            earlier = _fitted(built, before)
    return prompt_view(fitted, shown_receipts(fitted), shown_receipts(earlier), earlier.debug["max_prompt_tokens"])


def _fitted(built: BuiltContext, budget: int) -> BuiltContext:
    most = built.debug["max_prompt_tokens"]  # the model's window, where that is smaller
    return built.fit_again(min(budget, most) - most) if built.fit_again else built


async def _redis(services: Services, caller: Caller, session_id: str) -> Redis | None:
    try:
        return await services.sessions.redis_of(caller, validate_session_id(session_id))
    except SessionIdError:
        return None


def _no_session() -> Problem:
    return Problem(404, "not_found", "there is no session of this name, or it is no longer kept")


@router.post("/prompt/helped", openapi_extra=READER)
async def rate_memories(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Note which memories helped, of those that the caller may see; of each caller the latest rating counts."""
    helped, shown = set(await values_of(request, "helped")), (await values_of(request, "shown"))[:_MOST_RATED]
    ratings: list[Rating] = []
    if helped:
        seen = await memories_of(services, caller, shown)
        now = datetime.now(UTC)
        ratings = [Rating(one.id, 1.0 if one.id in helped else 0.0, now, caller.sub) for one in seen]
    try:
        await services.memory.rate(caller.tenant_id, ratings)
    except DatabaseRejected:
        raise Problem(409, "cannot_learn", "this memory store has no way to learn what helped") from None
    return RedirectResponse(f"{PAGE}/prompt?noted={len(ratings)}", 303)


async def _page(
    request: Request,
    services: Services,
    caller: Caller,
    form: PromptForm,
    problem: Problem | None = None,
    *,
    view: PromptView | None = None,
    noted: int | None = None,
) -> Response:
    sessions, remembered, documents = await asyncio.gather(
        sessions_to_choose(services, caller),
        remembered_to_choose(services, caller),
        documents_to_choose(services, caller),
    )
    offered = {
        "sessions": with_chosen(sessions, form.session),
        "users": with_chosen(remembered.users, form.user),
        "projects": with_chosen(documents.projects, form.project),
    }
    shown = {"form": form, "view": view, "noted": noted, "most": SLIDER, "few": FEW, **offered}
    words = {"sections": SECTIONS, "is_rated": is_rated}
    title = "Why is this in the prompt?"
    return form_page(request, "prompt.html", title=title, problem=problem, **shown, **words)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
