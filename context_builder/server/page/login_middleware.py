"""A cookie identifies the user before a view runs; requests that change data must come from the page itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote

from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from context_builder.errors import ContextBuilderError
from context_builder.server.asgi.callers import (
    MOST_ANONYMOUS_BYTES,
    PAGE,
    USUAL_BYTES,
    BodyLimitMiddleware,
    asked_by,
    has_body,
    unauthenticated,
)
from context_builder.server.page.logins import Login, Logins
from context_builder.server.problem import Problem, answered, problem_response

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
        owner, most = ("", MOST_ANONYMOUS_BYTES) if login is None else (login.caller.tenant_id, USUAL_BYTES)
        await self.answer(scope, receive, send, owner, most)


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
