"""A call that is made again under its ``Idempotency-Key`` is answered as it was, and not done again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

from fastapi import Request, Response

from context_builder.errors import KnowledgeError
from context_builder.memory.rows import as_key, storable
from context_builder.server.access.caller import Caller
from context_builder.server.problem import Problem
from context_builder.storage.sql_functions import SqlFunctions

KEY: Final = "Idempotency-Key"
LONGEST_KEY: Final = 255

LONGEST_KEPT: Final = 4_096
"""Bytes of an answer that is kept; a longer one is made anew."""


async def answered_once(
    functions: SqlFunctions,
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
    (found,) = await functions.call("context_access_call_begin", caller.tenant_id, begin)
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
        with suppress(KnowledgeError):  # it is done all the same; who asks again is told so, or waits a minute
            await functions.call("context_access_call_end", caller.tenant_id, ended)


def _kept(response: Response, *, keeps: bool) -> dict[str, Any]:
    body = bytes(response.body)
    told = body.decode() if keeps and len(body) <= LONGEST_KEPT else None
    return {"status": response.status_code, "type": response.headers.get("content-type"), "body": told}
