"""Who asks is known before any other part of a call is read, and every caller and tenant has a share of the server."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.analysis.turns import share
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller
from context_builder.server.problem import Problem, problem_response

PUBLIC: Final = ("/docs", "/openapi.json", "/livez", "/readyz")
"""Paths that anybody may read: they hold nobody's data."""

PAGE: Final = "/ui"
"""Paths of the page, which lets people in by its own logins: a cookie is no credential anywhere else."""

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
    detail = (
        "a valid credential is needed, and this one is missing, unknown, expired or revoked; send "
        "Authorization: Bearer … with an API key (`context-builder keys create`), a JWT or, on the server's "
        "machine, what its serve.token holds"
    )
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
"""Calls of a tenant that wait for their turn; more are refused."""

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
        self._turns: dict[str, tuple[asyncio.Semaphore, Counter[str]]] = {}

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

    async def begin(self, tenant: str) -> None:
        """Wait for a turn of the tenant, which :meth:`end` ends. Raises a :class:`Problem` where too many wait."""
        turn, held = self._turns.setdefault(tenant, (asyncio.Semaphore(self._limits.tenant_requests), Counter()))
        if held["calls"] >= self._limits.tenant_requests + MOST_WAITING:
            raise _too_many("calls at the same time", 1)
        held["calls"] += 1
        try:
            await turn.acquire()
        except BaseException:
            self._left(tenant)
            raise

    def end(self, tenant: str) -> None:
        """Let the tenant's next call begin."""
        self._turns[tenant][0].release()
        self._left(tenant)

    def _left(self, tenant: str) -> None:
        held = self._turns[tenant][1]
        held["calls"] -= 1
        if not held["calls"]:
            del self._turns[tenant]


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
    """Lets no tenant have more calls answered at the same time than its share; the others wait for their turn."""

    def __init__(self, app: ASGIApp, shares: Shares) -> None:
        self._app = app
        self._shares = shares

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = find_caller() if scope["type"] == "http" and not is_stream(scope) else None
        if caller is None:
            await self._app(scope, receive, send)
            return
        tenant = caller.tenant_id
        await self._shares.begin(tenant)
        has_turn = True

        async def send_and_end(message: Message) -> None:
            nonlocal has_turn
            if has_turn:  # the work is done; how fast it is read is nobody else's business
                has_turn = False
                self._shares.end(tenant)
            await send(message)

        try:
            await self._app(scope, receive, send_and_end)
        finally:
            if has_turn:
                self._shares.end(tenant)


def is_stream(scope: Scope) -> bool:
    """Return whether the call is answered for as long as somebody looks."""
    return scope["method"] in ("GET", "HEAD") and _STREAM.fullmatch(scope["path"]) is not None
