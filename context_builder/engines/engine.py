"""What an embedded engine is: a server in the user's home folder that every terminal shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine listens.

    ``url`` may hold a password and is therefore not shown; ``name`` is for people. ``started``
    says that this very call started it; ``warning`` what to know about it, if anything; ``access``
    is the shell line that lets other programs of the same user in, where they need one.
    """

    url: str = field(repr=False)
    name: str
    started: bool = False
    warning: str = ""
    access: str = ""


class Engine(Protocol):
    """A server that is started once, outlives who started it, and is stopped on request.

    Every method blocks (start-up takes up to a few seconds; call it in a thread) and raises
    :class:`~context_builder.errors.EngineError` with what to do about it.
    """

    def ensure(self) -> Address:
        """The running engine of this home, started if there is none."""
        ...

    def running(self) -> Address | None:
        """The running engine of this home, if it is provably that."""
        ...

    def stop(self) -> bool:
        """Stop it cleanly, keeping its data; false when none was running."""
        ...
