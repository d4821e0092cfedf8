"""Loopback ports for the embedded engines."""

from __future__ import annotations

import socket
from typing import Final

from context_builder.errors import EngineError

LOOPBACK: Final = "127.0.0.1"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises :class:`EngineError` with the reason why that cannot be."""
    try:
        return socket.create_server((host, port))
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # the address again, in parentheses
        raise EngineError(f"cannot listen on {host}:{port}: {reason}") from None


def choose_port(standard: int) -> int:
    """The standard port when nothing listens on it, else one that is free now."""
    return standard if _is_free(standard) else free_port()


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
