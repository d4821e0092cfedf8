"""An embedded engine is a server in the user's home folder that every terminal shares."""

from __future__ import annotations

import errno
import secrets
import socket
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from context_builder.engines.home import exclusive, write_private
from context_builder.errors import EngineError

LOOPBACK: Final = "127.0.0.1"

_LETTING_GO: Final = 0.5
"""Seconds in which the port of a killed process becomes free."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises :class:`EngineError` with the reason why that cannot be.

    Its connections send at once: asyncio sets that only where a socket's protocol is named, and an answer in two pieces
    would wait 40 ms for the first one's acknowledgement.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EngineError(f"port {port} of {host} is taken by another program; choose another port") from None
        reason = str(error.strerror).partition(" (")[0]  # the address again, in parentheses
        raise EngineError(f"cannot listen on {host}:{port}: {reason}") from None


def choose_port(standard: int, kept: Path) -> int:
    """Return the port that an engine had last, as long as it is free: others may know it. Else it is the standard port,
    or one that is free now.
    """
    try:
        last = int(kept.read_text())
    except (OSError, ValueError):
        last = 0
    if 0 < last < 65_536 and _becomes_free(last):
        return last
    return standard if _is_free(standard) else free_port()


def keep_port(kept: Path, port: int) -> None:
    """Note the port that an engine has, for its next start."""
    write_private(kept, str(port))


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _becomes_free(port: int) -> bool:
    deadline = time.monotonic() + _LETTING_GO
    while not _is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port whose last connections are in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Address:
    """The address at which an engine listens.

    ``url`` may contain a password and is therefore not shown; ``name`` is for people. ``started``
    is true if this very call started it; ``warning`` says what to know about it, if anything; ``access``
    is the shell line that lets other programs of the same user in, where they need one.
    """

    url: str = field(repr=False)
    name: str
    started: bool = False
    warning: str = ""
    access: str = ""


class Engine(ABC):
    """Runs a server that is started once, outlives who started it, and is stopped on request.

    Files in the ``home`` that have the engine's ``name`` keep its port and password. The running server is on record
    there, where other terminals find it, and one is started behind a lock. Every method blocks (start-up takes up to a
    few seconds; call it in a thread) and raises :class:`~context_builder.errors.EngineError` with what to do about it.
    """

    def __init__(self, home: Path, name: str, standard_port: int) -> None:
        self._home = home.absolute()
        self._lock = self._home / f"{name}.lock"
        self._port_file = self._home / f"{name}.port"
        self._password_file = self._home / f"{name}.password"
        self._standard_port = standard_port

    def ensure(self) -> Address:
        """Return the running engine of this home, started if there is none."""
        with exclusive(self._lock):
            return self.running() or self._start()

    def restarted(self) -> Address | None:
        """Return the server, started again if it was killed; None if somebody stopped it."""
        with exclusive(self._lock):
            return (self.running() or self._start()) if self._recorded() is not None else None

    @abstractmethod
    def running(self) -> Address | None:
        """Return the running engine of this home, if it is provably that."""

    @abstractmethod
    def stop(self) -> bool:
        """Stop the server cleanly, keeping its data; return false when none was running."""

    def _password(self) -> str:
        """Return this home's password, made up at first use."""
        file = self._password_file
        if not (file.exists() and file.stat().st_size):
            write_private(file, secrets.token_hex(16))
        return file.read_text()

    @abstractmethod
    def _start(self) -> Address: ...

    @abstractmethod
    def _recorded(self) -> object | None:
        """Return the record; None where nothing runs that was not stopped on purpose."""


USER: Final = "context_builder"
"""User of our own commands, always with the home's password: a server that accepts it is this home's."""

VISITOR: Final = "context_builder_visitor"
"""User without password or rights. That it exists tells another user's commands that a server which asks them for a
password is an embedded one, beside which they start their own."""
