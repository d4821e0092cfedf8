"""The table: what is measured, what others publish of themselves, what is to be reached, and what came out."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

NOTE = (
    "The columns “public implementation” and “closest peer” quote published figures, not measured here. The bare "
    "loop is measured here: BRPOP and SET of a state of the same size; no checkpoint, fence, acknowledgement, analysis."
)


@dataclass(frozen=True)
class Published:
    """What today's public implementation and its closest peer reach, and what is to be reached here."""

    what: str
    implementation: str
    peer: str
    reach: str


@dataclass(frozen=True)
class Line:
    """One measurement. ``reached`` is None where there is nothing to reach; ``values`` are the plain numbers."""

    what: str
    measured: str
    reached: bool | None = None
    bare: str = "–"
    values: Mapping[str, float] = field(default_factory=dict)


class Report:
    """Lines by row, in the order in which they were measured."""

    def __init__(
        self, published: Mapping[str, Published], title: str = "Live: one session's daemon on its own Redis"
    ) -> None:
        self._published = published
        self._title = title
        self._lines: list[tuple[str, Line]] = []
        self.notes = [NOTE]

    def add(self, row: str, line: Line) -> None:
        self._lines.append((row, line))

    @property
    def missed(self) -> list[str]:
        return [f"{self._published[row].what}, {line.what}" for row, line in self._lines if line.reached is False]

    def print(self) -> None:
        columns = ("what", "public implementation", "closest peer", "reach", "bare loop", "measured here")
        table = Table(*columns, title=self._title)
        before = ""
        for row, line in self._lines:
            published = self._published[row]
            if row != before:
                table.add_section()
                table.add_row(f"[bold]{published.what}", published.implementation, published.peer, published.reach)
            verdict = {True: "[green]{}[/]", False: "[bold red]{} MISSED[/]", None: "{}"}[line.reached]
            table.add_row(f"  {line.what}", "", "", "", line.bare, verdict.format(line.measured))
            before = row
        console = Console(width=None if sys.stdout.isatty() else 160)
        console.print(table)
        for note in self.notes:
            console.print(note, style="dim")

    def as_json(self) -> str:
        lines: list[dict[str, Any]] = [
            {"row": row, "what": line.what, "reached": line.reached, **line.values} for row, line in self._lines
        ]
        return json.dumps({"lines": lines, "notes": self.notes, "missed": self.missed}, indent=2)


def p50_p95(samples: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile (linear interpolation, the samples being all there is)."""
    return statistics.median(samples), statistics.quantiles(samples, n=20, method="inclusive")[-1]


def milliseconds(*seconds: float) -> str:
    return f"{' / '.join(f'{1000 * s:.1f}' if abs(s) < 0.1 else f'{1000 * s:,.0f}' for s in seconds)} ms"
