"""People log in with a credential of the API, or by the address that ``serve`` prints, and log out."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import RedirectResponse, Response

from context_builder.server.asgi.callers import PAGE
from context_builder.server.guarded_route import READER
from context_builder.server.page.logins import (
    LOGIN_PATH,
    WRONG_SECONDS,
    Login,
    Logins,
    TooManyWrong,
    cookie_name,
    is_https,
    place_of,
)
from context_builder.server.page.page_route import FormHere, page_router
from context_builder.server.page.rendering import render

router = APIRouter(include_in_schema=False)
inside = page_router()

HOME: Final = f"{PAGE}/sessions"
_OWN_PATH: Final = re.compile(rf"{PAGE}/[A-Za-z0-9._~/?=&%+:,-]*")
"""Where a login may lead to: nowhere but into the page."""

_MOST_CHARS: Final = 20_000


async def _logins(request: Request) -> Logins:
    logins: Logins = request.app.state.logins
    return logins


LoginsHere = Annotated[Logins, Depends(_logins)]


@router.get("/login")
async def ask(request: Request, logins: LoginsHere, code: str = "", next: str = "") -> Response:  # noqa: A002
    """Ask for a credential; with a code that is still good, log in at once."""
    if code:
        try:
            begun = await logins.by_code(code[:_MOST_CHARS], _address(request), _place(request))
        except TooManyWrong:
            return await _refused(request, next, _TOO_MANY, 429)
        if begun is None:
            return await _refused(
                request, next, "This address was used already, or is too old. Log in with a credential.", 401
            )
        return await _let_in(request, logins, begun, next)
    return await render(request, "login.html", title="Log in", error="", next=_own(next))


@router.post("/login")
async def log_in(request: Request, logins: LoginsHere, form: FormHere) -> Response:
    """Log in with a credential of the API."""
    wanted, credential = form.get("next", ""), form.get("credential", "").strip()
    if not credential or len(credential) > _MOST_CHARS:
        return await _refused(request, wanted, "Paste an API key, a JWT, or the local token.", 422)
    try:
        begun = await logins.by_credential(credential, _address(request), _place(request))
    except TooManyWrong:
        return await _refused(request, wanted, _TOO_MANY, 429)
    if begun is None:
        return await _refused(request, wanted, "This credential is unknown, expired or revoked.", 401)
    return await _let_in(request, logins, begun, wanted)


@inside.post("/logout", openapi_extra=READER)
async def log_out(request: Request, logins: LoginsHere) -> Response:
    """Log out, on every server."""
    login: Login = request.scope["state"]["login"]
    await logins.end(login.cookie)
    response = RedirectResponse(LOGIN_PATH, 303)
    response.set_cookie(await cookie_name(logins, login.place), "", max_age=0, expires=0, **_bound_to(login.place))
    return response


@inside.get("/", openapi_extra=READER)
async def home() -> Response:
    """Lead to the first view."""
    return RedirectResponse(HOME, 303)


router.include_router(inside)

_TOO_MANY: Final = f"Too many wrong logins to this account from your address: wait {WRONG_SECONDS} seconds."


async def _refused(request: Request, wanted: str, error: str, status: int) -> Response:
    page = await render(request, "login.html", title="Log in", status=status, error=error, next=_own(wanted))
    if status == 429:
        page.headers["Retry-After"] = str(WRONG_SECONDS)
    return page


async def _let_in(request: Request, logins: Logins, begun: tuple[str, int], wanted: str) -> Response:
    cookie, seconds = begun
    place = _place(request)
    response = RedirectResponse(_own(wanted) or HOME, 303)
    response.set_cookie(await cookie_name(logins, place), cookie, max_age=seconds, **_bound_to(place))
    return response


def _place(request: Request) -> str:
    return place_of(request.scope, is_secure=is_https(request.scope))


def _bound_to(place: str) -> dict[str, Any]:
    """Return a cookie's attributes; one that begins with ``__Host-`` must be of the whole host."""
    is_secure = place.startswith("https:")
    return {"path": "/" if is_secure else PAGE, "secure": is_secure, "httponly": True, "samesite": "strict"}


def _own(wanted: str) -> str:
    return wanted if _OWN_PATH.fullmatch(wanted) and "//" not in wanted else ""


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
