"""How a part that the settings chose is shown to people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Described:
    """For the banner: what a part is, what to set to have another, and the shell line that lets other programs in.

    ``embedded`` says that the project started it.
    """

    what: str
    hint: str = ""
    access: str = ""
    embedded: bool = False
