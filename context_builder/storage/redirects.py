"""Redirects are not followed: a key, and what people said, are for the server that a setting names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from context_builder.storage.urls import UNREADABLE, printable

if TYPE_CHECKING:
    import httpx


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the answer asks to look elsewhere."""
    return 300 <= status < 400 and "location" in headers


def explain_redirect(asked: str, headers: Mapping[str, str], setting: str) -> str:
    """What the server at the URL ``asked`` does, and what to do about it; without what is secret in either address."""
    where = _origin(asked, headers.get("location", ""))
    return f"redirects to {where}, which is not followed; set {setting} to the address that answers"


def refuse_redirects(
    server: str, setting: str, error: type[Exception]
) -> dict[str, list[Callable[[httpx.Response], Awaitable[None]]]]:
    """``event_hooks`` for an HTTP client: raise ``error`` when ``server``, which ``setting`` names, redirects."""

    async def refuse(response: httpx.Response) -> None:
        if is_redirect(response.status_code, response.headers):
            raise error(f"{server} {explain_redirect(str(response.request.url), response.headers, setting)}")

    return {"response": [refuse]}


def _origin(asked: str, location: str) -> str:
    """Scheme, host and port of a location, if it can be shown."""
    try:
        target = urljoin(asked, location)
        shown = f"{urlsplit(target).scheme}://{printable(target)}"
    except ValueError:
        return UNREADABLE
    return shown if shown.isascii() and shown.isprintable() and UNREADABLE not in shown else UNREADABLE
