"""The table that a benchmark fills: what is to be reached stands beside what was measured, and misses are marked."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

NONE: Final = "–"

WIDTH: Final = 150
"""Characters of a table that is not printed to a terminal."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement.

    ``reached`` says whether the goal was, None where there is none. ``baseline`` is measured in the same run;
    ``published`` quotes what others say of themselves; ``values`` are the plain numbers, for JSON.
    """

    what: str
    measured: str
    goal: str = NONE
    reached: bool | None = None
    baseline: str = NONE
    published: str = NONE
    values: Mapping[str, float] = field(default_factory=dict)

    def cells(self) -> tuple[str, ...]:
        verdict = {True: "{}", False: "[bold red]{} MISSED[/]", None: "{}"}[self.reached]
        return (self.what, self.goal, verdict.format(self.measured), self.baseline, self.published)


COLUMNS: Final = ("what", "goal", "measured here", "baseline of the same run", "published, not measured here")


@dataclass
class Report:
    """Lines in the order in which they were measured, and tables of another shape below.

    ``missing`` names the files that were not there, ``notes`` say how it was measured.
    """

    title: str
    lines: list[Line] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)

    def add(self, line: Line) -> None:
        self.lines.append(line)

    def extend(self, lines: Iterable[Line]) -> None:
        self.lines.extend(lines)

    @property
    def missed(self) -> list[Line]:
        return [line for line in self.lines if line.reached is False]

    def print(self) -> None:
        console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
        for table in (self._table(), *self.tables):
            console.print(table)
        for note in self.notes:
            console.print(note, style="dim")
        for path in dict.fromkeys(self.missing):
            console.print(f"[bold red]not measured:[/] {path} is missing", soft_wrap=True)
        for line in self.missed:
            console.print(f"[bold red]missed:[/] {line.what}: {line.measured}, goal {line.goal}", soft_wrap=True)
        goals = sum(line.reached is not None for line in self.lines)
        console.print(f"{goals - len(self.missed)} of {goals} goals reached, {len(self.missed)} missed")

    def as_json(self) -> str:
        lines = [
            {"what": line.what, "measured": line.measured, "goal": line.goal, "reached": line.reached, **line.values}
            for line in self.lines
        ]
        missed = [line.what for line in self.missed]
        return json.dumps({"lines": lines, "notes": self.notes, "missed": missed}, indent=2, ensure_ascii=False)

    def _table(self) -> Table:
        """The lines, without the columns that are empty in all of them."""
        rows = [line.cells() for line in self.lines]
        filled = [place for place in range(len(COLUMNS)) if place < 3 or any(row[place] != NONE for row in rows)]
        table = Table(*(COLUMNS[place] for place in filled), title=self.title)
        for row in rows:
            table.add_row(*(row[place] for place in filled))
        return table


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
