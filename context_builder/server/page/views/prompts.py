"""This view explains a session's prompt within an adjustable budget, and takes feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import groupby
from typing import Any, Final, Self

from fastapi import Request, Response
from pydantic import ValidationError
from redis.asyncio import Redis
from starlette.responses import RedirectResponse

from context_builder.assembly.budget import Outcome, Receipt
from context_builder.assembly.build_turn import BuiltContext
from context_builder.concurrency import beside_loop
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
from context_builder.server.page.page_route import FormHere, form_page, page_router, values_of
from context_builder.server.problem import Problem, invalid
from context_builder.server.routes.memories import memories_of
from context_builder.server.routes.turns import TurnRequest, built_turn, refusals, shown_receipts
from context_builder.server.services import Services
from context_builder.session.keys import validate_session_id

PARTS: Final = {
    "system": "System prompt",
    "preferences": "Preferences",
    "summary": "Summary",
    "history": "Conversation",
    "snippets": "Memories",
    "user": "Message",
    "overhead": "Chat format",
}
"""What a prompt's tokens go to, in the order of its messages, as people are told."""

SECTIONS: Final = {"memory": "Memories", "summary": "Summary", "preferences": "Preferences", "history": "Conversation"}
"""Sections of receipts, as people are told, in the order in which they are shown."""

LEFT_OUT: Final = frozenset({Outcome.DROPPED, Outcome.WITHHELD, Outcome.DENIED})
_ALIKE: Final = 3
"""From this many equal unread receipts on, one row stands for all."""

_RATED: Final = "memory"
_NOT_RATED: Final = frozenset({"session", "knowledge"})
"""Origins of what no memory store could learn about."""


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """What a part of the prompt takes; ``begin`` and ``share`` are shares of the budget, 0 to 1."""

    name: str
    label: str
    tokens: int
    begin: float
    share: float


@dataclass(frozen=True, slots=True)
class Change:
    """Tells what another budget did to a candidate: it came ``in``, went ``out``, or takes ``more`` or ``less``."""

    kind: str
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class ReceiptGroup:
    """The receipts of one section; only those of ranked candidates have scores and signals to show."""

    label: str
    receipts: Sequence[Receipt]

    @property
    def is_ranked(self) -> bool:
        return any(one.signals for one in self.receipts)

    @property
    def can_be_rated(self) -> bool:
        return any(map(is_rated, self.receipts))

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.receipts)


@dataclass(frozen=True, slots=True)
class PromptView:
    """A prompt within ``budget`` tokens, and what changed since it had ``before`` tokens."""

    budget: int
    before: int
    tokens: int
    messages: Sequence[Mapping[str, Any]]
    parts: Sequence[BudgetPart]
    taken: Sequence[ReceiptGroup]
    left: Sequence[ReceiptGroup]
    changes: Sequence[Change]
    memory: str

    @property
    def can_be_rated(self) -> bool:
        return any(one.can_be_rated for one in self.taken)


def prompt_view(built: BuiltContext, shown: Sequence[Receipt], before: Sequence[Receipt], was: int) -> PromptView:
    """Return the view of a prompt whose receipts are ``shown``, which were ``before`` in a budget of ``was`` tokens."""
    budget, counts = int(built.debug["max_prompt_tokens"]), built.token_counts
    return PromptView(
        budget=budget,
        before=was,
        tokens=counts["total"],
        messages=[one for one in built.messages if one["content"]],
        parts=_parts(counts, budget),
        taken=grouped([one for one in shown if one.outcome not in LEFT_OUT]),
        left=grouped(_gathered([one for one in shown if one.outcome in LEFT_OUT])),
        changes=changes(before, shown),
        memory=str(built.debug["memory"]),
    )


def changes(before: Sequence[Receipt], after: Sequence[Receipt]) -> list[Change]:
    """Return what differs between two fits of the same candidates, in the order in which they are told after."""
    had, has = _tokens(before), _tokens(after)
    told: dict[tuple[str, str], Change] = {}
    texts = {(one.section, one.id): one for one in (*after, *before) if one.text}
    for one in (*after, *before):
        name = (one.section, one.id)
        earlier, now = had.get(name, 0), has.get(name, 0)
        if name not in told and earlier != now:
            kind = "in" if not earlier else "out" if not now else "more" if now > earlier else "less"
            told[name] = Change(kind, texts.get(name, one))
    return list(told.values())


def is_rated(receipt: Receipt) -> bool:
    """Return whether it is a memory in the prompt, of which somebody can say whether it helped."""
    return (
        receipt.section == _RATED
        and receipt.outcome not in LEFT_OUT
        and bool(receipt.origins)
        and not _NOT_RATED & {*receipt.origins}
    )


def grouped(receipts: Sequence[Receipt]) -> list[ReceiptGroup]:
    """Return the receipts by section."""
    sections = dict.fromkeys((*SECTIONS, *(one.section for one in receipts)))
    found = {name: [one for one in receipts if one.section == name] for name in sections}
    return [ReceiptGroup(SECTIONS.get(name, name.capitalize()), rows) for name, rows in found.items() if rows]


def _gathered(receipts: Sequence[Receipt]) -> list[Receipt]:
    """Return the receipts, of those in a row that nobody looked at, and are left out for the same reason, one."""
    gathered: list[Receipt] = []
    for _, group in groupby(receipts, key=lambda one: (bool(one.text), one.section, one.reason)):
        alike = list(group)
        if alike[0].text or len(alike) < _ALIKE:
            gathered += alike
        else:
            gathered.append(Receipt(f"{len(alike)} of them", alike[0].section, alike[0].outcome, alike[0].reason))
    return gathered


def _tokens(receipts: Sequence[Receipt]) -> dict[tuple[str, str], int]:
    held: dict[tuple[str, str], int] = {}
    for one in receipts:
        name = (one.section, one.id)
        held[name] = max(one.tokens, held.get(name, 0))
    return held


def _parts(counts: Mapping[str, int], budget: int) -> list[BudgetPart]:
    parts, begin = [], 0
    for name, label in PARTS.items():
        if tokens := counts.get(name, 0):
            parts.append(BudgetPart(name, label, tokens, begin / budget, tokens / budget))
            begin += tokens
    return parts


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
            return await beside_loop(_compared, built, budget, before)
    except Problem as problem:
        raise _no_session() if problem.status == HTTPStatus.NOT_FOUND else problem from None


def _compared(built: BuiltContext, budget: int, before: int) -> PromptView:
    fitted = earlier = _fitted(built, budget)
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
    return Problem(404, "not_found", "this session does not exist, has not run yet, or is no longer kept")


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
    return await form_page(request, "prompt.html", title=title, problem=problem, **shown, **words)


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
