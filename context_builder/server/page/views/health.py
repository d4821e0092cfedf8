"""This view shows health, queues, the cost of model calls, and dead letters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final

from fastapi import Query, Request
from redis.asyncio import Redis
from starlette.responses import RedirectResponse, Response

from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER, WRITER, CallerHere, OwnRedis, ServicesHere, SessionId
from context_builder.server.page.health_report import MOST_COSTS, health_report
from context_builder.server.page.page_route import FormHere, page_router
from context_builder.server.page.rendering import render
from context_builder.server.problem import Problem, not_found
from context_builder.session.store.dead_letters import ORIGINS, DeadLetter, DeadLetters, Origin
from context_builder.session.store.registry import SessionRegistry

EXCERPT: Final = 400
MOST_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ShownLetter:
    """A dead letter of a session. ``name`` is a hash: numbers change when another letter is put back."""

    origin: Origin
    name: str
    letter: DeadLetter

    @property
    def begins(self) -> str:
        return self.letter.begins(self.origin, EXCERPT)


async def letters_of(redis: Redis, session_id: str) -> list[ShownLetter]:
    """Return the session's dead letters, the newest of each origin first."""
    found = []
    for origin in ORIGINS:
        letters = await DeadLetters(redis, session_id, origin).all()
        found += [ShownLetter(origin, _name(origin, one), one) for one in reversed(letters)]
    return found


async def put_back(redis: Redis, session_id: str, name: str) -> int:
    """Put a letter back to where it came from, or with ``all`` every one that was kept whole; return how many."""
    moved = 0
    for one in reversed(await letters_of(redis, session_id)):
        if (name == "all" and one.letter.is_whole) or name == one.name:
            moved += await DeadLetters(redis, session_id, one.origin).requeue(one.letter)
    return moved


def _name(origin: Origin, letter: DeadLetter) -> str:
    return sha256(origin.encode() + letter.encode()).hexdigest()[:32]


router = page_router()

_NAME: Final = re.compile("all|[0-9a-f]{32}")


@router.get("/health", openapi_extra=READER)
async def health(request: Request, services: ServicesHere, caller: CallerHere) -> Response:
    """Show how everything is, and what it costs."""
    report = await health_report(services, caller.tenant_id)
    return render(request, "health.html", title="Health & cost", report=report, most_costs=MOST_COSTS)


@router.get("/dead/{session_id}", openapi_extra=READER)
async def dead(
    session_id: SessionId,
    request: Request,
    redis: OwnRedis,
    put: Annotated[str, Query(max_length=32)] = "",
    done: Annotated[int | None, Query(ge=0, le=10**9)] = None,
) -> Response:
    """Show a session's dead letters; with ``put`` ask first whether that one, or ``all``, is to be put back."""
    if await SessionRegistry(redis).find(session_id) is None:
        raise not_found()
    letters = await letters_of(redis, session_id)
    asked = [one for one in letters if put in ("all", one.name)] if _NAME.fullmatch(put) else []
    return render(
        request,
        "dead.html",
        title=f"Dead letters of {session_id}",
        session_id=session_id,
        letters=letters[:MOST_SHOWN],
        total=len(letters),
        put=put if asked else "",
        asked=asked,
        done=done,
    )


@router.post("/dead/{session_id}", openapi_extra=WRITER)
async def requeue(session_id: SessionId, redis: OwnRedis, form: FormHere) -> Response:
    """Put dead letters back to where they came from."""
    name = form.get("letter", "")
    if not _NAME.fullmatch(name):
        raise Problem(422, "invalid_request", "say which dead letter is to be put back")
    moved = await put_back(redis, session_id, name)
    return RedirectResponse(f"{PAGE}/dead/{session_id}?done={moved}", 303)
