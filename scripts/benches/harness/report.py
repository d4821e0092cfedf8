"""The table that a benchmark fills: goals stand beside what was measured, and misses are marked."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
from rich.console import Console
from rich.table import Table

from context_builder.errors import ContextBuilderError

T = TypeVar("T")
Row = Mapping[str, Any]

NONE: Final = "–"
WIDTH: Final = 150
"""Characters of a table that is not printed to a terminal."""

PROGRESS_SECONDS: Final = 10.0


class BenchError(Exception):
    """The benchmark cannot go on: what it waited for, and what the process said last."""


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement.

    ``reached`` says whether the goal was, None where there is none. ``baseline`` is measured in the same run;
    ``values`` are the plain numbers, for JSON.
    """

    what: str
    measured: str
    goal: str = NONE
    reached: bool | None = None
    baseline: str = NONE
    values: Mapping[str, float] = field(default_factory=dict)

    def cells(self) -> tuple[str, ...]:
        return (
            self.what,
            self.goal,
            f"[bold red]{self.measured} MISSED[/]" if self.missed else self.measured,
            self.baseline,
        )

    @property
    def missed(self) -> bool:
        return self.reached is False


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
        print(f"  {line.what}: {line.measured}", file=sys.stderr)

    def extend(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self.add(line)

    def print(self) -> None:
        console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
        lines = Table("what", "goal", "measured", "baseline of the same run", title=self.title)
        for line in self.lines:
            lines.add_row(*line.cells())
        for table in (lines, *self.tables):
            console.print(table)
        for note in self.notes:
            console.print(note, style="dim")
        for path in dict.fromkeys(self.missing):
            console.print(f"[bold red]not measured:[/] {path} is missing", soft_wrap=True)
        goals, missed = sum(one.reached is not None for one in self.lines), sum(one.missed for one in self.lines)
        console.print(f"{goals - missed} of {goals} goals reached, {missed} missed")

    def as_json(self) -> str:
        lines = [
            {"what": line.what, "measured": line.measured, "goal": line.goal, "reached": line.reached, **line.values}
            for line in self.lines
        ]
        return json.dumps({"lines": lines, "notes": self.notes}, indent=2, ensure_ascii=False)


def parser(doc: str | None, rows: Mapping[str, object] | None = None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark, with the options that all have, and ``--only`` for one of several ``rows``."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", action="store_true", help="print JSON instead of the table")
    if rows is not None:
        said = f"of {', '.join(rows)}"
        made.add_argument("--only", nargs="+", action="extend", choices=list(rows), metavar="ROW", help=said)
    return made


def run(title: str, measure: Callable[[Report], None], *, as_json: bool) -> int:
    """Measure and print; return 0, 1 if a goal was missed or a file is missing, 2 if it could not go on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    report, status = Report(title), 0
    report.notes.append(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start.")
    try:
        measure(report)
    except (BenchError, ContextBuilderError) as error:
        print(error, *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        print("stopped; everything that was started has ended", file=sys.stderr)
        status = 130
    finally:  # whatever ended it, what was measured is shown
        print(report.as_json()) if as_json else report.print()
    return status or int(bool(report.missing) or any(line.missed for line in report.lines))


def p50_p95(samples: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile (linear interpolation, the samples being all there is)."""
    return statistics.median(samples), statistics.quantiles(samples, n=20, method="inclusive")[-1]


def milliseconds(*seconds: float) -> str:
    return f"{' / '.join(f'{1000 * s:.1f}' if abs(s) < 0.1 else f'{1000 * s:,.0f}' for s in seconds)} ms"


def timing(what: str, times: Sequence[float], goals: tuple[float, float] | None = None, digits: int = 1) -> Line:
    """Return a line with p50 and p95 of times in milliseconds, which ``goals`` limit."""
    p50, p95 = p50_p95(times)
    shown, values = f"{p50:.{digits}f} / {p95:.{digits}f} ms", {"p50_ms": p50, "p95_ms": p95}
    if goals is None:
        return Line(f"{what}, p50 / p95 of {len(times)}", shown, values=values)
    reached = p50 <= goals[0] and p95 <= goals[1]
    goal = " / ".join(NONE if limit == float("inf") else f"{limit:g}" for limit in goals)
    return Line(f"{what}, p50 / p95 of {len(times)}", shown, f"{goal} ms", reached, values=values)


def progress(steps: Sequence[T], what: str) -> Iterator[T]:
    """The steps, and a line now and then about how long the rest will take."""
    began = told = time.monotonic()
    for done, step in enumerate(steps):
        if (now := time.monotonic()) - told > PROGRESS_SECONDS:
            told = now
            rest = (now - began) / done * (len(steps) - done)
            print(f"  {what}: {done / len(steps):.0%}, {rest:.0f} s to go", file=sys.stderr)
        yield step


def rows_of(data: Path, kind: str, report: Report, part: str = "") -> list[Row]:
    """Rows of all JSON lines files of a kind (``domains_dev.jsonl``), or of a part (``locomo_dev_questions``).

    Without any such file the report says that it is missing.
    """
    pattern = f"{kind}_*_{part}.jsonl" if part else f"{kind}_*.jsonl"
    files = [path for path in sorted(data.glob(pattern)) if part or not path.stem.endswith("_refs")]
    if not files:
        report.missing.append(data / pattern)
    lines = (line for path in files for line in path.read_text("utf-8").split("\n"))
    return [json.loads(line) for line in lines if line.strip()]
