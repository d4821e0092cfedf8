"""What of a URL with credentials in it may be shown."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

UNREADABLE: Final = "an unreadable address"


def printable(url: str) -> str:
    """``host:port`` of each server that a URL names, and nothing that could be secret.

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


def _address(server: SplitResult) -> str:
    host = server.hostname or "localhost"
    shown = f"[{host}]" if ":" in host else host
    return shown if server.port is None else f"{shown}:{server.port}"
