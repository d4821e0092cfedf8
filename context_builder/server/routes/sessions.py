"""These routes list sessions, tell their state and messages, and take messages, corrections, renames and strikes.

Other doors of the server use the functions behind them; a :class:`Problem` tells what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import orjson
from fastapi import Body, Path, Query, Request, Response
from pydantic import Field
from redis.asyncio import Redis

from context_builder.clock import SystemClock
from context_builder.concurrency import beside_loop
from context_builder.errors import MessageError, SessionIdError, StoreError, StoreUnavailable, WrongKeyType
from context_builder.knowledge.artifact import CamelModel, at_most, check_ref
from context_builder.knowledge.governance import Access
from context_builder.server.access.caller import Caller
from context_builder.server.guarded_route import (
    READER,
    WRITER,
    CallerHere,
    OwnRedis,
    ServicesHere,
    SessionId,
    as_json,
    guarded_router,
)
from context_builder.server.problem import Missing, Problem, not_found
from context_builder.server.seen_session import MUST_BE_SEEN, SeenHere, SeenSession, access_to_sessions, first_seen
from context_builder.server.services import Services
from context_builder.session.client import JsonObject, SessionClient
from context_builder.session.keys import validate_session_id
from context_builder.session.messages.message import Delivered, Message, decode
from context_builder.session.messages.revision import MessageReference, read_reference

router = guarded_router("sessions")

MOST_MESSAGES: Final = 1_000
"""In one call, either way."""


MOST_LISTED: Final = 1_000
"""Sessions in one answer."""

_PAGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"headers": {"Link": {"description": "The next page (RFC 8288).", "schema": {"type": "string"}}}}
}

_REVISING: Final = frozenset({"corrects", "renames", "strikes"})
"""Fields of a message that changes what was said."""

_ID: Final = re.compile("[0-9]{1,15}")
MessageId = Annotated[int | None, Query(ge=0, lt=2**53)]


class AcceptedAnswer(CamelModel):
    """Tells how many messages were handed to the session; ``unheard`` that nothing ever ran it, so they wait."""

    accepted: int
    unheard: bool = False


@router.get("/sessions", openapi_extra=READER, response_model=list[dict[str, Any]], responses=_PAGED)
async def list_sessions(
    request: Request,
    services: ServicesHere,
    caller: CallerHere,
    limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = MOST_LISTED,
    after: Annotated[str | None, Query(max_length=128, description="The last session of the page before.")] = None,
) -> Response:
    """Return the sessions, most recently active first; `Link` leads to the next page, where there is one."""
    found = await services.sessions.of_caller(caller)
    if after is not None:
        place = next((place for place, one in enumerate(found) if one.session_id == after), None)
        if not await _may_see(services, caller, after) or place is None:
            raise Problem(422, "invalid_request", "query.after: is no session that there is")
        found = found[place + 1 :]
    page = await first_seen(services, caller, found, limit + 1)
    headers = {}
    if len(page) > limit:
        page.pop()
        query = urlencode({"limit": limit, "after": page[-1].session_id})
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    return await as_json(lambda: [one.as_json() for one in page], **headers)


async def _may_see(services: Services, caller: Caller, session_id: str) -> bool:
    """Return whether the caller may see a session of this name, if there is one: it takes as long if there is none."""
    try:
        validate_session_id(session_id)
    except SessionIdError:
        return False
    return (await access_to_sessions(services, caller, [session_id]))[session_id] is not Access.DENIED


@router.get("/sessions/{session_id}/state", openapi_extra=READER, response_model=dict[str, Any])
async def session_state(session: SeenHere) -> Response:
    """Return what the session publishes; after that has expired, what it would."""
    state = await session.state()
    if state is None:
        raise not_found()
    return await as_json(lambda: state)


@router.get("/sessions/{session_id}/messages", openapi_extra=READER, response_model=list[dict[str, Any]])
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
) -> Response:
    """Return messages in the order in which they arrived, also after they have left the buffer."""
    begin = -1 if after is None else after
    if around is not None:
        begin = max(-1, await _place(services, caller, session_id, around) - limit // 2 - 1)
    found = await session.after(session_id, begin, limit)
    if found is None:
        raise not_found()
    return await as_json(lambda: found)


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


@router.post(
    "/sessions/{session_id}/messages", openapi_extra=WRITER, status_code=202, response_model_exclude_defaults=True
)
async def send_messages(
    session_id: SessionId,
    messages: Annotated[
        dict[str, Any] | list[dict[str, Any]],
        Body(description="One message, or several, oldest first."),
        at_most(MOST_MESSAGES),
    ],
    redis: OwnRedis,
    services: ServicesHere,
    caller: CallerHere,
) -> AcceptedAnswer:
    """Hand messages to the session, as a listener or an orchestrator does; with one that cannot be read, none is.

    404 for corrections, renames and strikes of what is not there for the caller, 403 for corrections of what the caller
    is shown redacted.
    """
    listed = messages if isinstance(messages, list) else [messages]
    is_heard = await hand_over(services, caller, redis, session_id, listed)
    return AcceptedAnswer(accepted=len(listed), unheard=not is_heard)


async def hand_over(
    services: Services, caller: Caller, redis: Redis, session_id: str, messages: list[JsonObject]
) -> bool:
    """Hand messages to a session, and return whether it was ever run, as far as the caller may know.

    Whoever may not see a session may speak in it, but change nothing that was said: to them it is not there. Raises a
    :class:`Problem` for that, for what the caller sees masked, and for a message that the session could not read.
    """
    delivered = await beside_loop(_read, messages, services.max_message_bytes)
    access = (await access_to_sessions(services, caller, [session_id]))[session_id]
    client, is_denied = SessionClient(redis, session_id), access is Access.DENIED
    is_heard = not is_denied and await client.is_known()
    revising = [not _REVISING.isdisjoint(message) for message in messages]
    if (is_denied and any(revising)) or (all(revising) and not is_heard and not await client.waiting()):
        raise not_found()
    await check_corrections(client, SeenSession(services, caller, session_id, redis, access), delivered)
    await client.push(*messages)
    return is_heard


def _read(messages: list[JsonObject], max_bytes: int) -> list[Delivered]:
    if len(messages) > MOST_MESSAGES:
        raise Problem(422, "invalid_message", f"at most {MOST_MESSAGES:,} messages in one call")
    now = SystemClock().now()
    delivered: list[Delivered] = []
    for place, message in enumerate(messages):
        try:
            delivered.append(decode(orjson.dumps(message), now, max_bytes=max_bytes))
        except (MessageError, orjson.JSONEncodeError) as error:
            reason = str(error) if isinstance(error, MessageError) else "cannot be written as JSON"
            raise Problem(422, "invalid_message", f"message {place}: {reason}", index=place) from None
    return delivered


MASKED: Final = "you are not shown all of that message, and only who sees the words may correct them"


async def correct_message(
    client: SessionClient, seen: SeenSession, message: str, text: str | None, speaker: str | None
) -> None:
    """Correct a message of a session, by number or id; 403 for words, or a speaker, that the caller sees masked."""
    with _told():
        reference = await _existing(client, message)
        if seen.is_redacted:
            await _check_unmasked(seen, await client.id_of(reference), text, speaker)
        await client.correct(reference, text=text, speaker=speaker)


async def check_corrections(client: SessionClient, seen: SeenSession, delivered: Sequence[Delivered]) -> None:
    """Refuse messages that would correct what the caller sees masked (403), or may not see at all (404): those with
    ``corrects``, and other words of a number and a timestamp that are there, or wait to be taken in.
    """
    if not seen.is_redacted:
        return
    messages = [one for one in delivered if isinstance(one, Message)]
    is_unsure = any(one.corrects for one in messages) and await client.waiting()  # before others are taken in
    try:
        waiting = await client.corrects_waiting(messages)  # likewise
        with _told():
            places = await client.replaced_by(messages)
    except StoreError as error:
        is_away = isinstance(error, StoreUnavailable) and not isinstance(error, WrongKeyType)
        if seen.access is not Access.DENIED or is_away:
            raise
        raise not_found() from None  # of what is damaged, who may not see it is not told
    if seen.access is Access.DENIED and (any(waiting) or any(place is not None for place in places)):
        raise not_found()
    for message, place, waits in zip(messages, places, waiting, strict=True):
        if place is not None or waits or (message.corrects and is_unsure):
            await _check_unmasked(seen, place, message.text or None, message.speaker or None)


async def _check_unmasked(seen: SeenSession, place: int | None, text: str | None, speaker: str | None) -> None:
    unmasked = {} if place is None else await seen.unmasked(place - 1, 1)
    changed = {name for name, value in (("text", text), ("speaker", speaker)) if value is not None}
    if place is None or not changed <= unmasked.get(place, frozenset()):
        raise Problem(403, "masked", MASKED)


async def strike_message(client: SessionClient, message: str) -> None:
    """Strike a message of a session, by number or id."""
    with _told():
        await client.strike(await _existing(client, message))


async def rename_speaker(client: SessionClient, old: str, new: str) -> None:
    """Call a speaker of a session otherwise."""
    if not await client.is_known():
        raise not_found()
    with _told():
        await client.rename_speaker(old, new)


async def _existing(client: SessionClient, message: str) -> MessageReference:
    """Return the reference to a message that is there, or waits to be taken in."""
    reference = read_reference(message, "message")
    held = await client.held_message(reference)
    if held == "struck" or (held == "unknown" and not await client.waiting()):
        raise not_found(Missing.MESSAGE)
    return reference


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except MessageError as error:
        raise Problem(422, "invalid_message", str(error)) from None


_REVISION: Final[dict[str, Any]] = {
    "dependencies": [MUST_BE_SEEN],
    "openapi_extra": WRITER,
    "status_code": 202,
    "response_model_exclude_defaults": True,
}

MessageName = Annotated[str, Path(max_length=400, description="The number of a message, or its id as `id:12`.")]


class CorrectionBody(CamelModel):
    """What a message says from now on; a field that is left out stays as it was."""

    text: str | None = None
    speaker: str | None = None


class SpeakerBody(CamelModel):
    """The name that a speaker is given."""

    name: str = Field(min_length=1)


@router.patch("/sessions/{session_id}/messages/{message}", **_REVISION)
async def correct(
    session_id: SessionId, message: MessageName, body: CorrectionBody, redis: OwnRedis, seen: SeenHere
) -> AcceptedAnswer:
    """Correct the words of a message, its speaker, or both; everything that rests on it follows.

    403 for what the caller is shown redacted: only who sees the words may correct them.
    """
    await correct_message(SessionClient(redis, session_id), seen, message, body.text, body.speaker)
    return AcceptedAnswer(accepted=1)


@router.delete("/sessions/{session_id}/messages/{message}", **_REVISION)
async def strike(session_id: SessionId, message: MessageName, redis: OwnRedis) -> AcceptedAnswer:
    """Strike a message: nothing of it is left anywhere, and it does not come back."""
    await strike_message(SessionClient(redis, session_id), message)
    return AcceptedAnswer(accepted=1)


@router.put("/sessions/{session_id}/speakers/{speaker}", **_REVISION)
async def rename(
    session_id: SessionId,
    speaker: Annotated[str, Path(max_length=1_000, description="What the speaker is called now.")],
    body: SpeakerBody,
    redis: OwnRedis,
) -> AcceptedAnswer:
    """Rename a speaker, in everything said so far and from now on."""
    await rename_speaker(SessionClient(redis, session_id), speaker, body.name)
    return AcceptedAnswer(accepted=1)
