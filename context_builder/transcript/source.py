"""A source is the text of a file that is being read, with what its reader found wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

Names = Mapping[str, str]
Begun = TypeVar("Begun")


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

    def entries(
        self, begins: Callable[[str], tuple[Begun, str] | None], wrong: str = ""
    ) -> list[tuple[int, Begun, list[str]]]:
        """Return the entries of a text: the number of each one's first line, how it begins, and its lines.

        ``begins`` returns how an entry begins in a line, and the rest of the line; None of a line that goes on with the
        entry before. A line that says something above the first entry is a problem, if that has a name: what is
        ``wrong``.
        """
        found: list[tuple[int, Begun, list[str]]] = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            if (begun := begins(line)) is not None:
                found.append((number, begun[0], [begun[1]]))
            elif found:
                found[-1][2].append(line)
            elif wrong and line.strip():
                self.problem(wrong, number)
        return found

    def left_out(self, count: int, thing: str, rest: str) -> None:
        """Note how many things of a kind, such as a ``line``, were not read, if any; ``rest`` tells which."""
        if count:
            self.notes.append(f"{count} {thing if count == 1 else f'{thing}s'} {rest} not read")

    @contextmanager
    def one_entry(self, line: int | None = None) -> Iterator[None]:
        """Read one entry: a :class:`ValueError` in it is noted, and the next is read."""
        try:
            yield
        except ValueError as error:
            self.problem(error, line)
