"""Who asks is known before any other part of a call is read, and every caller and tenant has a share of the server.

A body is read here as a whole, up to a limit, before it is parsed.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.concurrency import share
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller
from context_builder.server.problem import Problem, problem_response

PUBLIC: Final = ("/docs", "/openapi.json", "/livez", "/readyz")
"""Paths that anybody may read: they hold nobody's data."""

PAGE: Final = "/ui"
"""Paths of the page, which lets people in by its own logins: a cookie is not a credential anywhere else."""

_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)
_SCHEME: Final = b"bearer "


def current_caller() -> Caller:
    """Return who asks. Raises a :class:`~context_builder.server.problem.Problem` where nobody was let in."""
    caller = _CALLER.get()
    if caller is None:
        raise unauthenticated()
    return caller


def find_caller() -> Caller | None:
    """Return who asks; None where nobody was let in, as at public paths."""
    return _CALLER.get()


@contextmanager
def asked_by(caller: Caller) -> Iterator[None]:
    """Let what is inside be answered for this caller, whose tenant's share of the model's calls it takes."""
    token, former = _CALLER.set(caller), share.set(caller.tenant_id)
    try:
        yield
    finally:
        share.reset(former)
        _CALLER.reset(token)


def unauthenticated() -> Problem:
    """Return the one answer to a credential that is missing, unknown, expired or revoked."""
    detail = "no valid credential; send Authorization: Bearer KEY, with a key of `context-builder keys create` or a JWT"
    return Problem(401, "unauthenticated", detail, headers={"WWW-Authenticate": "Bearer"})


class AuthenticationMiddleware:
    """Finds the caller, or answers 401. ``scope["state"]["still_holds"]`` tells a long answer whether the credential
    holds yet."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator) -> None:
        self._app = app
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_public(scope["path"]):
            await self._app(scope, receive, send)
            return
        credential = _credential(scope)
        caller = await self._authenticator.caller(credential) if credential else None
        if caller is None:
            await problem_response(unauthenticated())(scope, receive, send)
            return
        scope.setdefault("state", {})["still_holds"] = self._holds(credential, caller)
        with asked_by(caller):
            await self._app(scope, receive, send)

    def _holds(self, credential: str, caller: Caller) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            return await self._authenticator.caller(credential) == caller

        return holds


def is_public(path: str) -> bool:
    """Return whether anybody may ask for the path."""
    return path in PUBLIC or path.startswith(("/docs/", f"{PAGE}/")) or path in ("/", PAGE)


def _credential(scope: Scope) -> str:
    headers = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(headers) != 1 or headers[0][: len(_SCHEME)].lower() != _SCHEME:
        return ""
    return bytes(headers[0][len(_SCHEME) :]).strip().decode("latin-1")


BURST: Final = 10.0
"""Seconds whose calls may come at once, after as long a pause."""

MOST_WAITING: Final = 100
"""Calls of a tenant that wait for their turn, half of them of one caller; of more, only a caller's first one waits."""

_STREAM: Final = re.compile(r"/sessions/[^/]+/events|/ui/live/.+|/mcp")
"""Paths that are read for as long as somebody looks; to ``/mcp``, most calls are written."""

_MOST_KNOWN: Final = 10_000


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """Limits: calls a second, open streams, and calls of a tenant that are answered at the same time."""

    caller_rate: float = 100.0
    tenant_rate: float = 400.0
    caller_streams: int = 32
    tenant_streams: int = 128
    tenant_requests: int = 8


class Shares:
    """Counts what callers and tenants of this process use."""

    def __init__(self, limits: ShareLimits, now: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._now = now
        self._debts: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        self._streams: Counter[tuple[str, ...]] = Counter()
        self._turns: dict[str, _Turns] = {}

    def count_call(self, tenant: str, sub: str) -> None:
        """Note a call. Raises a :class:`Problem` for one too many."""
        limits = self._limits
        for name, rate in (((tenant, sub), limits.caller_rate), ((tenant,), limits.tenant_rate)):
            now = self._now()
            debt, at = self._debts.get(name, (0.0, now))
            debt = max(0.0, debt - (now - at) * rate)
            if debt + 1 > BURST * rate:
                raise _too_many("calls", (debt + 1 - BURST * rate) / rate)
            self._debts[name] = debt + 1, now
            self._debts.move_to_end(name)
        while len(self._debts) > _MOST_KNOWN:
            self._debts.popitem(last=False)

    @contextmanager
    def stream(self, tenant: str, sub: str) -> Iterator[None]:
        """Count a stream for as long as it is open. Raises a :class:`Problem` for one too many."""
        names: tuple[tuple[str, ...], ...] = ((tenant, sub), (tenant,))
        limits = self._limits.caller_streams, self._limits.tenant_streams
        if any(self._streams[name] >= most for name, most in zip(names, limits, strict=True)):
            raise _too_many("streams that are open", 5)
        self._streams.update(names)
        try:
            yield
        finally:
            self._streams.subtract(names)
            for name in names:
                if not self._streams[name]:
                    del self._streams[name]

    async def begin(self, tenant: str, sub: str) -> None:
        """Wait for a turn of the caller, which :meth:`end` ends. Raises a :class:`Problem` where too many wait."""
        turns = self._turns.setdefault(tenant, _Turns(self._limits.tenant_requests))
        try:
            await turns.begin(sub)
        finally:
            self._tidy(tenant, turns)

    def end(self, tenant: str, sub: str) -> None:
        """Let the tenant's next call begin."""
        turns = self._turns[tenant]
        turns.end(sub)
        self._tidy(tenant, turns)

    def _tidy(self, tenant: str, turns: _Turns) -> None:
        if turns.is_idle and self._turns.get(tenant) is turns:
            del self._turns[tenant]


class _Turns:
    """Calls of a tenant that are worked on, and those that wait: its callers take turns, and nobody takes them all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._running.total()

    async def begin(self, sub: str) -> None:
        own = self._waiting.get(sub, ())
        if self._may_run(sub) and not own:
            self._running[sub] += 1
            return
        if len(own) >= MOST_WAITING // 2 or (own and sum(map(len, self._waiting.values())) >= MOST_WAITING):
            raise _too_many("calls at the same time", 1)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(sub, deque()).append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.end(sub)
            else:
                self._leave(sub, turn)
            raise

    def end(self, sub: str) -> None:
        self._running -= Counter((sub,))
        while (name := next(filter(self._may_run, self._waiting), None)) is not None:
            turn = self._waiting[name][0]
            self._leave(name, turn)
            if name in self._waiting:
                self._waiting.move_to_end(name)
            if not turn.done():  # nobody has given it up
                self._running[name] += 1
                turn.set_result(None)

    def _may_run(self, sub: str) -> bool:
        """Return whether another call may be worked on; one turn is kept for the tenant's other callers."""
        return self._running.total() < self._most and self._running[sub] < max(1, self._most - 1)

    def _leave(self, sub: str, turn: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(sub)
        if waiting is not None and turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[sub]


def _too_many(what: str, seconds: float) -> Problem:
    detail = f"too many {what} of yours, or of your tenant; try again later"
    return Problem(429, "too_many_requests", detail, headers={"Retry-After": str(max(1, math.ceil(seconds)))})


class RateMiddleware:
    """Answers 429 to a call, or a stream, above its caller's or tenant's share, before its body is read."""

    def __init__(self, app: ASGIApp, shares: Shares) -> None:
        self._app = app
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = find_caller() if scope["type"] == "http" else None
        if caller is None:
            await self._app(scope, receive, send)
            return
        try:
            self._shares.count_call(caller.tenant_id, caller.sub)
            if not is_stream(scope):
                await self._app(scope, receive, send)
                return
            with self._shares.stream(caller.tenant_id, caller.sub):
                await self._app(scope, receive, send)
        except Problem as problem:  # of ours: what the app raises it has answered
            await problem_response(problem)(scope, receive, send)


class TurnMiddleware:
    """Lets no tenant have more calls answered at the same time than its share, and none of its callers all of them; the
    others wait for their turn.
    """

    def __init__(self, app: ASGIApp, shares: Shares) -> None:
        self._app = app
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = find_caller() if scope["type"] == "http" and not is_stream(scope) else None
        if caller is None:
            await self._app(scope, receive, send)
            return
        whose = caller.tenant_id, caller.sub
        await self._shares.begin(*whose)
        has_turn = True

        async def send_and_end(message: Message) -> None:
            nonlocal has_turn
            if has_turn:  # the work is done; how fast it is read is nobody else's business
                has_turn = False
                self._shares.end(*whose)
            await send(message)

        try:
            await self._app(scope, receive, send_and_end)
        finally:
            if has_turn:
                self._shares.end(*whose)


def is_stream(scope: Scope) -> bool:
    """Return whether the call is answered for as long as somebody looks."""
    return scope["method"] in ("GET", "HEAD") and _STREAM.fullmatch(scope["path"]) is not None


MOST_BYTES: Final = 16 * 1024 * 1024
"""An artifact's two million characters, each escaped as JSON allows, fit in."""

USUAL_BYTES: Final = 2 * 1024 * 1024
"""Everything else that one is asked for fits in: a turn's query of 100,000 characters, each escaped, is the longest."""

MOST_ANONYMOUS_BYTES: Final = 64 * 1024
"""Where who asks is not known yet: a credential fits in."""

_LARGE: Final = re.compile(r"/knowledge/artifacts/.+|/knowledge/edges(?:/delete)?|/sessions/[^/]+/messages")
"""Paths whose bodies may be of :data:`MOST_BYTES`."""

PATIENCE: Final = 10.0
"""Seconds in which the body of somebody who is not known has to come in whole, and of others the next piece of it."""

LEAST_RATE: Final = 64 * 1024
"""Bytes a second, beyond the first :data:`PATIENCE` seconds, in which a body comes in."""

READ_AWAY: Final = 4 * MOST_BYTES
"""Bytes that are read and thrown away: who is cut off while sending does not see the answer."""

MOST_HELD: Final = 256 * 1024 * 1024
"""Bytes of all bodies that have begun to come in, as they are declared."""

SHARE: Final = 4
"""Part of :data:`MOST_HELD` that a tenant may take, and all who are not known together; a caller takes half of that."""


class BodyLimitMiddleware:
    """Answers 413 to a body that is too large for its path, whether declared or sent, and 503 while bodies that come
    in slowly take all the room that there is for them.

    The page's are read by the page, once it knows who sends them.
    """

    def __init__(self, app: ASGIApp, patience: float = PATIENCE) -> None:
        self._app = app
        self._patience = patience
        self._held: Counter[tuple[str, ...]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope) or scope["path"].startswith(f"{PAGE}/"):
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if is_public(path):
            await self.answer(scope, receive, send, None, MOST_ANONYMOUS_BYTES)
        else:
            most = MOST_BYTES if _LARGE.fullmatch(path) else USUAL_BYTES
            await self.answer(scope, receive, send, current_caller(), most)

    async def answer(self, scope: Scope, receive: Receive, send: Send, caller: Caller | None, most: int) -> None:
        """Read the body, and let the app answer it."""
        room = min(_declared(scope, most), most)
        limits: dict[tuple[str, ...], int] = {(): MOST_HELD}
        if caller is None:
            limits[("",)] = MOST_HELD // SHARE
            pause, patience = None, self._patience
        else:
            limits[caller.tenant_id,] = MOST_HELD // SHARE
            limits[caller.tenant_id, caller.sub] = MOST_HELD // SHARE // 2
            pause, patience = self._patience, self._patience + min(_declared(scope, most), READ_AWAY) / LEAST_RATE
        if any(self._held[name] + room > limit for name, limit in limits.items()):
            detail = "too many bodies are coming in at the same time; try again"
            problem = Problem(503, "busy", detail, headers={"Retry-After": "1", "Connection": "close"})
            await problem_response(problem)(scope, receive, send)
            return
        self._held.update(dict.fromkeys(limits, room))
        try:
            async with asyncio.timeout(patience):
                body = await _read(scope, receive, most, pause)
        except TimeoutError:
            late = Problem(408, "timeout", "the body did not come in in time", headers={"Connection": "close"})
            await problem_response(late)(scope, receive, send)
            return
        finally:
            self._held -= Counter(dict.fromkeys(limits, room))
        if body is None:
            return
        if body == "too large":
            problem = Problem(
                413, "too_large", f"a body here is at most {most:,} bytes", headers={"Connection": "close"}
            )
            await problem_response(problem)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


async def _read(scope: Scope, receive: Receive, most: int, pause: float | None) -> bytes | Literal["too large"] | None:
    """Return the body, or that it is too large; None when the sender has gone.

    Raises :class:`TimeoutError` where nothing comes for ``pause`` seconds.
    """
    if _declared(scope, 0) > READ_AWAY:
        return "too large"
    body = bytearray()
    size = 0
    more = True
    while more and size <= READ_AWAY:
        async with asyncio.timeout(pause):
            message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            body.clear()
        else:
            body += piece
        more = message.get("more_body", False)
    return "too large" if size > most else bytes(body)


def has_body(scope: Scope) -> bool:
    """Return whether a body is announced."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _declared(scope: Scope, otherwise: int) -> int:
    told = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return int(told) if told.isdigit() else otherwise


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
