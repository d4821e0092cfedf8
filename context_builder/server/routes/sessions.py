"""These routes list sessions, return their state and messages, and accept new messages."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import orjson
from fastapi import Body, Query

from context_builder.clock import SystemClock
from context_builder.errors import MessageError
from context_builder.knowledge.artifact import CamelModel, check_ref
from context_builder.knowledge.governance import Access
from context_builder.server.access.caller import Caller
from context_builder.server.guarded_route import READER, WRITER, guarded_router
from context_builder.server.problem import Problem, not_found
from context_builder.server.seen_session import SeenHere, access_to_sessions
from context_builder.server.services import CallerHere, OwnRedis, Services, ServicesHere, SessionId
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.messages.message import decode

router = guarded_router("sessions")

MOST_MESSAGES: Final = 1_000
"""In one call, either way."""


_ID: Final = re.compile("[0-9]{1,15}")
MessageId = Annotated[int | None, Query(ge=0, lt=2**53)]


class AcceptedAnswer(CamelModel):
    """Tells how many messages were handed to the session."""

    accepted: int


@router.get("/sessions", openapi_extra=READER)
async def list_sessions(services: ServicesHere, caller: CallerHere) -> list[dict[str, Any]]:
    """Return every session, most recently active first."""
    sessions = await services.sessions.of_caller(caller)
    access = await access_to_sessions(services, caller, [one.session_id for one in sessions])
    return [one.as_json() for one in sessions if access[one.session_id] is not Access.DENIED]


@router.get("/sessions/{session_id}/state", openapi_extra=READER)
async def session_state(session: SeenHere) -> dict[str, Any]:
    """Return what the session publishes; after that has expired, what it would."""
    state = await session.state()
    if state is None:
        raise not_found()
    return state


@router.get("/sessions/{session_id}/messages", openapi_extra=READER)
async def session_messages(
    session_id: SessionId,
    session: SeenHere,
    services: ServicesHere,
    caller: CallerHere,
    after: Annotated[MessageId, Query(description="The id of a message: those that arrived later.")] = None,
    around: Annotated[
        str | None, Query(max_length=600, description="A message's id, or a source's ref: those before and after it.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_MESSAGES)] = 100,
) -> list[dict[str, Any]]:
    """Return messages in the order in which they arrived, also after they have left the buffer."""
    begin = -1 if after is None else after
    if around is not None:
        begin = max(-1, await _place(services, caller, session_id, around) - limit // 2 - 1)
    found = await session.after(session_id, begin, limit)
    if found is None:
        raise not_found()
    return found


async def _place(services: Services, caller: Caller, session_id: str, around: str) -> int:
    """Return the id of the message that ``around`` names, or that the source it names cites first; 0 where none is."""
    if _ID.fullmatch(around):
        return int(around)
    try:
        node = (await services.knowledge.nodes(caller.tenant_id, [check_ref(around)], 0)).get(around)
    except ValueError as error:
        raise Problem(422, "invalid_request", f"query.around: neither a message's id nor a ref: {error}") from None
    cited = [around, *(node.cites if node is not None else ())]
    places = [ref.removeprefix(f"message:{session_id}/") for ref in cited]
    return next((int(place) for place in places if _ID.fullmatch(place)), 0)


@router.post("/sessions/{session_id}/messages", openapi_extra=WRITER, status_code=202)
async def send_messages(
    session_id: SessionId,
    messages: Annotated[
        dict[str, Any] | list[dict[str, Any]], Body(description="One message, or several, oldest first.")
    ],
    redis: OwnRedis,
    services: ServicesHere,
) -> AcceptedAnswer:
    """Hand messages to the session, as a listener or an orchestrator does; with one that cannot be read, none is."""
    listed = messages if isinstance(messages, list) else [messages]
    check_messages(listed, services.max_message_bytes)
    await SessionClient(redis, session_id).push(*listed)
    return AcceptedAnswer(accepted=len(listed))


def check_messages(messages: list[JsonObject], max_bytes: int) -> None:
    """Raise a :class:`Problem` that names the first message which the session could not read."""
    if len(messages) > MOST_MESSAGES:
        raise Problem(422, "invalid_message", f"at most {MOST_MESSAGES:,} messages in one call")
    now = SystemClock().now()
    for place, message in enumerate(messages):
        try:
            decode(orjson.dumps(message), now, max_bytes=max_bytes)
        except (MessageError, orjson.JSONEncodeError) as error:
            reason = str(error) if isinstance(error, MessageError) else "cannot be written as JSON"
            raise Problem(422, "invalid_message", f"message {place}: {reason}", index=place) from None
