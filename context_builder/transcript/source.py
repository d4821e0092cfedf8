"""A source is the text of a file that is being read, with what its reader found wrong in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

Names = Mapping[str, str]


@dataclass(slots=True)
class Source:
    """The text of a file called ``name``; ``names`` are those of a chat's people by id.

    ``problems`` are collected while it is read: what cannot be read is named, and the rest is read.
    """

    name: str
    text: str = ""
    names: Names = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def problem(self, what: object, line: int | None = None) -> None:
        """Note that something cannot be read, at a line where there is one."""
        place = self.name if line is None else f"{self.name}:{line}"
        self.problems.append(f"{place}: {what}")

    @contextmanager
    def one_entry(self, line: int | None = None) -> Iterator[None]:
        """Read one entry: a :class:`ValueError` in it is noted, and the next is read."""
        try:
            yield
        except ValueError as error:
            self.problem(error, line)
