"""Logins live in Redis, so that any server knows them: under a hash of the cookie, signed, without the credential.

A cookie identifies the user before a view runs; requests that change data must come from the page itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Final
from urllib.parse import quote

import orjson
from redis.asyncio import Redis
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.database.database import SharedSecret
from context_builder.errors import ContextBuilderError
from context_builder.server.access.authenticator import Authenticator, CredentialReference, account_of
from context_builder.server.access.caller import Caller, digest_of
from context_builder.server.asgi.callers import (
    MOST_ANONYMOUS_BYTES,
    PAGE,
    USUAL_BYTES,
    BodyLimitMiddleware,
    asked_by,
    has_body,
    unauthenticated,
)
from context_builder.server.problem import Problem, answered, problem_response
from context_builder.storage.redis_availability import translated

LOGIN_SECONDS: Final = 12 * 3600
"""Lifetime of a login, in seconds."""

CODE_SECONDS: Final = 15 * 60
"""Lifetime of a one-time login code, in seconds."""

_SIGNATURE: Final = 64
"""Characters of the signature that comes first in what is kept."""

MOST_WRONG: Final = 20
WRONG_SECONDS: Final = 60
"""So many wrong logins to one account are answered from one address in so many seconds; then none is looked at."""

_LOGIN: Final = "context_builder:page_login:"
"""String: a login, under the hash of its cookie. Lives :data:`LOGIN_SECONDS`, or until its JWT expires."""

_CODE: Final = "context_builder:page_code:"
"""String: a code that lets in once, under its hash. Lives :data:`CODE_SECONDS`."""

_WRONG: Final = "context_builder:page_wrong:"
"""String: how many wrong logins to an account came from an address, under both's hash. Lives :data:`WRONG_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who is logged in, and the token that their forms carry."""

    cookie: str
    caller: Caller
    csrf: str
    place: str

    def is_form_token(self, token: str) -> bool:
        """Return whether a form was made for this login."""
        return compare_digest(self.csrf.encode(), token.encode("utf-8", "surrogatepass"))


class TooManyWrong(Exception):
    """Wrong logins to this account have come from this address too often."""


class Logins:
    """Logs people in by a credential of the API, or by a code that this machine's user was shown.

    A login holds at the ``place`` that it was begun at: the origin that the browser asked. What Redis keeps of logins
    and codes is signed for its key there, because others may write to Redis.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis, and
    :class:`~context_builder.errors.DatabaseUnavailable` when the database of keys does not answer.
    """

    def __init__(self, redis: Redis, authenticator: Authenticator, secret: SharedSecret) -> None:
        self._redis = redis
        self._authenticator = authenticator
        self._secret = secret

    async def cookie_name(self, place: str) -> str:
        """Return the cookie's name at a place, which no other server and no other port of the host uses."""
        return f"context_builder_{(await self._secret.signature('cookie', place))[:16]}"

    async def by_credential(self, credential: str, address: str, place: str) -> tuple[str, int] | None:
        """Return a new login's cookie and its seconds; None for a credential that does not hold.

        Raises :class:`TooManyWrong`.
        """
        tried = f"{account_of(credential)} {address}"
        await self._check_wrong(tried)
        reference = await self._authenticator.reference(credential)
        if reference is None:
            await self._count_wrong(tried)
            return None
        return await self._begin(reference, place)

    async def by_code(self, code: str, address: str, place: str) -> tuple[str, int] | None:
        """Return a new login's cookie and its seconds; None for a code that is wrong, old or used.

        Raises :class:`TooManyWrong`.
        """
        tried = f"code {address}"
        await self._check_wrong(tried)
        key = _CODE + digest_of(code)
        async with translated():
            stored = await self._redis.getdel(key)
        reference = None if await self._opened(key, stored) is None else self._authenticator.local_reference()
        if reference is None:
            await self._count_wrong(tried)
            return None
        return await self._begin(reference, place)

    async def new_code(self) -> str | None:
        """Return a code that lets this machine's user in once; None where the local token lets nobody in."""
        if self._authenticator.local_reference() is None:
            return None
        code = token_urlsafe(24)
        await self._keep(_CODE + digest_of(code), {}, CODE_SECONDS)
        return code

    async def find(self, cookie: str, place: str) -> Login | None:
        """Return the login of a cookie that was given at this place, as long as its credential holds."""
        if not cookie:
            return None
        key = _LOGIN + digest_of(cookie)
        async with translated():
            stored = await self._redis.get(key)
        fields = await self._opened(key, stored)
        if fields is None or fields["place"] != place:
            return None
        caller = await self._authenticator.caller_of(CredentialReference.from_wire(fields["credential"]))
        return None if caller is None else Login(cookie, caller, fields["csrf"], place)

    async def end(self, cookie: str) -> None:
        """Log out."""
        async with translated():
            await self._redis.delete(_LOGIN + digest_of(cookie))

    async def _begin(self, reference: CredentialReference, place: str) -> tuple[str, int]:
        cookie = token_urlsafe(32)
        left = LOGIN_SECONDS if reference.expires_at is None else int(reference.expires_at - time.time())
        seconds = max(1, min(LOGIN_SECONDS, left))
        fields = {"credential": reference.wire(), "csrf": token_urlsafe(32), "place": place}
        await self._keep(_LOGIN + digest_of(cookie), fields, seconds)
        return cookie, seconds

    async def _keep(self, key: str, fields: dict[str, Any], seconds: int) -> None:
        content = orjson.dumps({**fields, "expires": time.time() + seconds})
        signature = await self._secret.signature(key, content)
        async with translated():
            await self._redis.set(key, signature.encode() + content, ex=seconds)

    async def _opened(self, key: str, stored: Any) -> dict[str, Any] | None:
        """Return what was kept under the key; None unless a server signed it for that key, and it has not expired."""
        if stored is None:
            return None
        signature, content = stored[:_SIGNATURE], stored[_SIGNATURE:]
        if not await self._secret.has_signed(signature.decode("latin-1"), key, content):
            return None
        fields: dict[str, Any] = orjson.loads(content)
        return fields if fields["expires"] > time.time() else None

    async def _check_wrong(self, tried: str) -> None:
        async with translated():
            wrong = await self._redis.get(_WRONG + digest_of(tried))
        if wrong is not None and int(wrong) >= MOST_WRONG:
            raise TooManyWrong

    async def _count_wrong(self, tried: str) -> None:
        key = _WRONG + digest_of(tried)
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.set(key, 0, ex=WRONG_SECONDS, nx=True)
            pipe.incr(key)
            await pipe.execute()


LOGIN_PATH: Final = f"{PAGE}/login"
OPEN: Final = (f"{PAGE}/static/",)
"""Path prefixes served without a login."""

FOR_SCRIPTS: Final = (f"{PAGE}/live/", f"{PAGE}/data/")
"""Path prefixes that scripts ask for: without a login the answer is 401, not the login page."""

_SAFE: Final = ("GET", "HEAD")
_HEADERS: Final = {
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
"""Security headers of every page response. Referrer-Policy is same-origin, as forms sent without a referrer have no
Origin."""


class HardeningMiddleware:
    """Lets nothing but the page's own scripts, styles and connections work in the page."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS.items()]
            await send(message)

        await self._app(scope, receive, send_hardened)


class CompressionMiddleware:
    """Compresses what is served without a login. Other pages hold a form's token beside what was asked for, which the
    size of a compressed page would tell to whoever chooses the one and sees the other (BREACH).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressing = GZipMiddleware(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        is_public = path.startswith(OPEN) or (path == LOGIN_PATH and scope["method"] in _SAFE)
        await (self._compressing if is_public else self._app)(scope, receive, send)


class LoginMiddleware:
    """Finds the login of a request, and sends people without one to the form. ``scope["state"]["still_holds"]`` tells
    a long answer whether the login holds yet.
    """

    def __init__(self, app: ASGIApp, logins: Logins) -> None:
        self._app = app
        self._logins = logins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] not in _SAFE and not _is_from_here(scope):
            refused = Problem(403, "foreign_origin", "this was not sent by the page itself")
            await problem_response(refused)(scope, receive, send)
            return
        path = scope["path"]
        try:
            login = None if path.startswith(OPEN) else await self._login(scope)
        except ContextBuilderError as error:
            await problem_response(answered(error))(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["login"] = login
        if login is not None:
            state["still_holds"] = self._holds(login)
            with asked_by(login.caller):
                await self._app(scope, receive, send)
        elif path.startswith(OPEN) or path == LOGIN_PATH:
            await self._app(scope, receive, send)
        elif path.startswith(FOR_SCRIPTS):
            await problem_response(unauthenticated())(scope, receive, send)
        else:
            await RedirectResponse(_to_login(scope), 303)(scope, receive, send)

    async def _login(self, scope: Scope) -> Login | None:
        """Return the login of the cookie that this server gave: the one by HTTPS, where the browser has both."""
        cookies = cookies_of(scope)
        for is_secure in (True, False):
            place = place_of(scope, is_secure=is_secure)
            name = await cookie_name(self._logins, place)
            if login := await self._logins.find(cookies.get(name, ""), place):
                return login
        return None

    def _holds(self, login: Login) -> Callable[[], Awaitable[bool]]:
        async def holds() -> bool:
            found = await self._logins.find(login.cookie, login.place)
            return found is not None and found.caller == login.caller

        return holds


class FormLimitMiddleware(BodyLimitMiddleware):
    """Reads forms up to a limit, which is low for people who have not logged in."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        login: Login | None = scope["state"]["login"]
        if login is None:
            await self.answer(scope, receive, send, None, MOST_ANONYMOUS_BYTES)
        else:
            await self.answer(scope, receive, send, login.caller, USUAL_BYTES)


def header_of(scope: Scope, wanted: bytes) -> str:
    """Return the header; empty when it is not there, or there twice."""
    found = [value for name, value in scope["headers"] if name == wanted]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def is_https(scope: Scope) -> bool:
    """Return whether the browser came by HTTPS, which a proxy before the server may have ended."""
    return scope["scheme"] == "https" or header_of(scope, b"origin").startswith("https://")


def place_of(scope: Scope, *, is_secure: bool) -> str:
    """Return the origin that the browser asked. Browsers send cookies to every port of a host; logins hold at one."""
    return f"{'https' if is_secure else 'http'}://{header_of(scope, b'host').lower()}"


async def cookie_name(logins: Logins, place: str) -> str:
    """Return the cookie's name: by HTTPS one that no other host can set, else one that is this server's."""
    return "__Host-context_builder" if place.startswith("https:") else await logins.cookie_name(place)


def cookies_of(scope: Scope) -> dict[str, str]:
    """Return the cookies that the browser sent."""
    sent = b";".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
    pairs = (pair.strip().partition("=") for pair in sent.split(";"))  # whatever else on this host sets cookies
    return {name: value for name, _, value in pairs}


def _is_from_here(scope: Scope) -> bool:
    """Return whether a page of this server sent it: browsers say so. A foreign origin never comes as far as this."""
    if header_of(scope, b"origin"):
        return True
    return header_of(scope, b"sec-fetch-site") == "same-origin"


def _to_login(scope: Scope) -> str:
    query = scope["query_string"].decode("latin-1")
    wanted = scope["path"] + (f"?{query}" if query else "")
    is_known = scope["method"] in _SAFE and wanted not in (f"{PAGE}/", PAGE)
    return f"{LOGIN_PATH}?next={quote(wanted, safe='/')}" if is_known else LOGIN_PATH
