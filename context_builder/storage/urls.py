"""Addresses as they may be shown, without credentials; and redirects, which are refused.

A redirect is not followed because a key, and what people said, are for the server that a setting names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, parse_qs, urljoin, urlsplit

if TYPE_CHECKING:
    import httpx


def is_redirect(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether the answer asks to look elsewhere."""
    return 300 <= status < 400 and "location" in headers


def explain_redirect(asked: str, headers: Mapping[str, str], setting: str) -> str:
    """Return what the server at the URL ``asked`` does, and what to do about it; without secrets of the addresses."""
    where = _origin(asked, headers.get("location", ""))
    return f"redirects to {where}, which is not followed; set {setting} to the address that answers"


def refuse_redirects(
    server: str, setting: str, error: type[Exception]
) -> dict[str, list[Callable[[httpx.Response], Awaitable[None]]]]:
    """Return HTTP ``event_hooks`` that raise ``error`` when ``server``, which ``setting`` names, redirects."""

    async def refuse(response: httpx.Response) -> None:
        if is_redirect(response.status_code, response.headers):
            raise error(f"{server} {explain_redirect(str(response.request.url), response.headers, setting)}")

    return {"response": [refuse]}


def _origin(asked: str, location: str) -> str:
    """Return scheme, host and port of a location, if it can be shown."""
    try:
        target = urljoin(asked, location)
        shown = f"{urlsplit(target).scheme}://{printable(target)}"
    except ValueError:
        return UNREADABLE
    return shown if shown.isascii() and shown.isprintable() and UNREADABLE not in shown else UNREADABLE


UNREADABLE: Final = "an unreadable address"


def printable(url: str) -> str:
    """Return ``host:port`` of each server that a URL names, and nothing that could be secret.

    ``localhost`` where it names none. A password that is not percent-encoded may make the URL read otherwise than
    it was meant, its beginning as a host: then it is :data:`UNREADABLE`.
    """
    try:
        parts = urlsplit(url)
        if "@" in f"{parts.path}{parts.query}{parts.fragment}":
            return UNREADABLE
        servers = parts.netloc.rpartition("@")[2].split(",")
        return ",".join(_address(urlsplit(f"//{server}")) for server in servers)
    except ValueError:
        return UNREADABLE


def server_name(url: str) -> str:
    """Return ``host:port/database`` of a Redis URL, or ``socket/database``, without anything secret."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return f"{parts.path}/{parse_qs(parts.query).get('db', ['0'])[0]}"
    address = ",".join(one if ":" in one.rpartition("]")[2] else f"{one}:6379" for one in printable(url).split(","))
    return f"{address}/{parts.path.strip('/') or '0'}"


def _address(server: SplitResult) -> str:
    host = server.hostname or "localhost"
    shown = f"[{host}]" if ":" in host else host
    return shown if server.port is None else f"{shown}:{server.port}"
