"""Every route declares the role that it requires, and what it is given; the role is checked before the body is read.

A body is read as JSON in bounded time: what would become a million values is refused before it is any.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Final, get_origin
from uuid import uuid4

import orjson
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi._compat import ModelField
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.params import Query
from fastapi.routing import APIRoute
from pydantic import AfterValidator
from redis.asyncio import Redis

from context_builder.concurrency import beside_loop
from context_builder.database.database import Database
from context_builder.errors import DatabaseError, SessionIdError
from context_builder.memory.rows import as_key, storable
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import current_caller
from context_builder.server.problem import SHOWN_NAME, Problem, not_found
from context_builder.server.services import Services
from context_builder.session.keys import SESSION_ID_RULE, validate_session_id


def _session_id(value: str) -> str:
    try:
        return validate_session_id(value)
    except SessionIdError:
        raise ValueError(f"a session id is {SESSION_ID_RULE}") from None


async def _services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


async def _caller() -> Caller:
    return current_caller()


ServicesHere = Annotated[Services, Depends(_services)]
CallerHere = Annotated[Caller, Depends(_caller)]


SessionId = Annotated[str, AfterValidator(_session_id), Path(description=f"{SESSION_ID_RULE}, percent-encoded")]


async def _own_redis(session_id: SessionId, services: ServicesHere, caller: CallerHere) -> Redis:
    if (redis := await services.sessions.redis_of(caller, session_id)) is None:
        raise not_found()
    return redis


OwnRedis = Annotated[Redis, Depends(_own_redis)]
"""The Redis that the caller's session, which the path names, is on; without one the answer is 404."""


QUICK: Final = 65_536
"""Bytes that are read and validated in some milliseconds; more is left to a thread."""

MOST_VALUES: Final = 200_000
"""Values of a body, counted by what is between them. A list of 10,000 edges has a quarter of them."""

MOST_FIELDS: Final = 1_000
"""Fields of an object."""


async def read_json(body: bytes) -> Any:
    """Return the body's value. Raises :class:`Problem`."""
    return _read(body) if len(body) <= QUICK else await beside_loop(_read, body)


async def validated(body: bytes, field: ModelField) -> Any:
    """Return the body as the field has it. Raises :class:`Problem` and :class:`RequestValidationError`."""
    if len(body) <= QUICK:
        return _validated(body, field)
    return await beside_loop(_validated, body, field)


def _validated(body: bytes, field: ModelField) -> Any:
    found, errors = field.validate(_read(body), {}, loc=("body",))
    if errors:
        raise RequestValidationError(errors)
    return found


def _read(body: bytes) -> Any:
    if len(body) > QUICK and _has_too_many_values(body):
        raise _too_many(f"the body has more than {MOST_VALUES:,} values")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _no_json(error) from None
    _check_objects(value)
    return value


def _no_json(error: orjson.JSONDecodeError) -> Problem:
    """Return the answer to what is not JSON, with the place; what stands there is not quoted."""
    place = f"line {error.lineno}, column {error.colno}"
    what = f"is not JSON in UTF-8: {place}"
    found = [{"at": "body", "problem": what}]
    return Problem(422, "invalid_request", f"body: {what}", errors=found, line=error.lineno, column=error.colno)


def _too_many(what: str) -> Problem:
    return Problem(422, "invalid_request", what, errors=[{"at": "body", "problem": what}])


def _has_too_many_values(body: bytes) -> bool:
    """Return whether more values follow each other outside of texts than :data:`MOST_VALUES`.

    Texts are skipped from one quotation mark to the next, as fast as memory is read.
    """
    count, strings, at = 0, 0, 0
    while count <= MOST_VALUES and strings <= 2 * MOST_VALUES:
        begin = body.find(b'"', at)
        end = len(body) if begin < 0 else begin
        count += sum(body.count(sign, at, end) for sign in (b",", b"[", b"{"))
        if begin < 0:
            return count > MOST_VALUES
        at = _end_of_text(body, begin + 1)
        strings += 1
    return True


def _end_of_text(body: bytes, at: int) -> int:
    """Return the place behind the quotation mark that ends a text: one with an even number of backslashes before it."""
    while (end := body.find(b'"', at)) >= 0:
        before = end - 1
        while before >= at and body[before] == 0x5C:  # a backslash
            before -= 1
        at = end + 1
        if (end - before) % 2:
            return at
    return len(body)


def _check_objects(value: Any) -> None:
    """Raise :class:`Problem` for an object with too many fields, each of which would be found wrong by itself."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if len(one) > MOST_FIELDS:
                raise _too_many(f"an object has more than {MOST_FIELDS:,} fields")
            waiting += [inner for inner in one.values() if isinstance(inner, dict | list)]
        elif isinstance(one, list):
            waiting += [inner for inner in one if isinstance(inner, dict | list)]


KEY: Final = "Idempotency-Key"
LONGEST_KEY: Final = 255

LONGEST_KEPT: Final = 4_096
"""Bytes of an answer that is kept; a longer one is made anew."""


async def answered_once(
    database: Database,
    caller: Caller,
    request: Request,
    answer: Callable[[], Awaitable[Response]],
    *,
    keeps: bool = True,
) -> Response:
    """Return the answer to a call; to one that was made before, the first one's, unless that is too long, or is not to
    be kept: then it is made anew.

    Raises :class:`Problem` for a key that came with another call, or whose call is being answered.
    """
    key = request.headers.get(KEY)
    if key is None:
        return await answer()
    if not 1 <= len(key) <= LONGEST_KEY:
        raise Problem(422, "invalid_request", f"header.{KEY}: is 1 to {LONGEST_KEY} characters")
    called = "\n".join((request.method, request.url.path, request.url.query)).encode() + b"\n" + await request.body()
    named: dict[str, Any] = {"caller_sub": as_key(caller.sub), "call_key": storable(key)}
    held = {**named, "by_holder": uuid4().hex}
    begin = {**named, "call_digest": sha256(called).hexdigest(), "by_holder": held["by_holder"]}
    (found,) = await database.call("context_access_call_begin", caller.tenant_id, begin)
    match found["state"]:
        case "other":
            raise Problem(422, "idempotency_clash", f"this {KEY} was sent before with another call")
        case "busy":
            detail = f"the call with this {KEY} is being answered; try again"
            raise Problem(409, "idempotency_busy", detail, headers={"Retry-After": "1"})
        case "answered":
            kept = found["answer"]
            if kept.get("body") is None:
                return await answer()
            return Response(kept["body"], kept["status"], media_type=kept["type"] or None)
    noted: dict[str, Any] | None = None
    try:
        response = await answer()
        noted = _kept(response, keeps=keeps)
        return response
    finally:
        ended = held if noted is None else {**held, "answered": noted}
        with suppress(DatabaseError):  # it is done all the same; who asks again is told so, or waits a minute
            await database.call("context_access_call_end", caller.tenant_id, ended)


def _kept(response: Response, *, keeps: bool) -> dict[str, Any]:
    body = bytes(response.body)
    told = body.decode() if keeps and len(body) <= LONGEST_KEPT else None
    return {"status": response.status_code, "type": response.headers.get("content-type"), "body": told}


KEEP_THEIR_OWN: Final = frozenset({"build_package"})
"""Routes that know by themselves which of their calls came again."""

TELL_WHAT_WAS_SAID: Final = frozenset({"build_turn"})
"""Routes whose answers are made anew, of what the caller may see when it asks again."""

ROLE: Final = "x-role"
"""Names a route's role among what it is given."""

READER: Final[dict[str, Any]] = {ROLE: Role.READER.value}
WRITER: Final[dict[str, Any]] = {ROLE: Role.WRITER.value}
ADMIN: Final[dict[str, Any]] = {ROLE: Role.ADMIN.value}
"""What a route is given as ``openapi_extra``; one without cannot be made."""


def guarded_router(tag: str) -> APIRouter:
    """Return a router whose routes each take a role."""
    return APIRouter(tags=[tag], route_class=GuardedRoute)


class _ReadRequest(Request):
    """Has been read: ``json`` returns what the body was validated to, which is not validated again."""

    read: Any = None

    async def json(self) -> Any:
        return self.read


class GuardedRoute(APIRoute):
    """Answers 403 to callers whose roles do not include the route's, then 422 and 415 to what it does not know."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        needed = Role((self.openapi_extra or {})[ROLE])
        asked = [one for one in get_flat_params(self.dependant) if isinstance(one.field_info, Query)]
        known = frozenset(one.alias for one in asked)
        lists = frozenset(one.alias for one in asked if get_origin(one.field_info.annotation) is list)

        async def guarded(request: Request) -> Response:
            if needed not in current_caller().roles:
                raise Problem(403, "forbidden", f"this needs the role {needed.value}")
            check_query(request, known, lists)
            read = _ReadRequest(request.scope, request.receive)
            if self.body_field is not None:
                body = await read.body()
                if body:
                    _check_is_json(request)
                    read.read = await validated(body, self.body_field)
            if request.method != "POST" or self.name in KEEP_THEIR_OWN:
                return await handler(read)
            services: Services = request.app.state.services
            keeps = self.name not in TELL_WHAT_WAS_SAID
            return await answered_once(services.database, current_caller(), read, lambda: handler(read), keeps=keeps)

        return guarded


async def as_json(make: Callable[[], Any], **headers: str) -> Response:
    """Return what ``make`` returns, which may be megabytes and needs no validation, made beside the loop."""
    body = await beside_loop(lambda: orjson.dumps(make()))
    return Response(body, headers=headers, media_type="application/json")


def check_query(request: Request, known: Collection[str], lists: Collection[str] = ()) -> None:
    """Raise :class:`Problem` for a parameter that the route does not know, or that is there twice and no list."""
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            told = f"is not known here, but {', '.join(sorted(known)) or 'nothing'}"
        elif name in seen and name not in lists:
            told = "is there more than once"
        else:
            seen.add(name)
            continue
        at = f"query.{name if SHOWN_NAME.fullmatch(name) else '?'}"
        raise Problem(422, "invalid_request", f"{at}: {told}", errors=[{"at": at, "problem": told}])


def _check_is_json(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Problem(415, "unsupported_media_type", "the body has to be JSON: Content-Type: application/json")
