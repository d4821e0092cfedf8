"""A call is authenticated before any other part of it is read, including its path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

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
    detail = "a valid credential is needed: Authorization: Bearer …"
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
