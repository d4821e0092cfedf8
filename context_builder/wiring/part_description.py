"""A description of each part that was put together, for the banner and for ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartDescription:
    """What the banner says of a part: its name, the setting for another one, and the shell line for other programs.

    ``embedded`` says that the project started it.
    """

    what: str
    hint: str = ""
    access: str = ""
    embedded: bool = False
