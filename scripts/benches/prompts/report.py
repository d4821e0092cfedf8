"""What a benchmark is asked for, and the table it fills; no benchmark itself."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

MODEL: Final = "gpt-4o"


@dataclass
class Report:
    """The table, filled line by line; ``missing`` names the files that were not there."""

    lines: list[tuple[str, str, str, str]] = field(default_factory=list)
    missing: list[Path] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def add(self, what: str, measured: str, *, reach: str = "–", baseline: str = "–", ok: bool | None = None) -> None:
        """One line; ``ok`` says whether what is to be reached was, None where there is nothing to reach."""
        mark = "" if ok is None else " ✓" if ok else " ✗"
        self.lines.append((what, baseline, reach, measured + mark))
        if ok is False:
            self.missed.append(what)

    def print(self) -> None:
        table = Table("what", "baseline", "reach", "measured here", title="Assembly: prompts that fit")
        for line in self.lines:
            table.add_row(*line)
        console = Console(width=None if sys.stdout.isatty() else 120)
        console.print(table)
        for path in self.missing:
            console.print(f"[bold red]not measured:[/] {path} is missing", soft_wrap=True)
        for what in self.missed:
            console.print(f"[bold red]not reached:[/] {what}")


@dataclass(frozen=True)
class Options:
    """``data`` is the folder of texts; ``quick`` measures a tenth."""

    data: Path
    quick: bool = False

    def count(self, full: int) -> int:
        return max(1, full // 10) if self.quick else full

    def rows_of(self, kind: str, report: Report) -> list[Mapping[str, Any]]:
        """The rows of all files of a kind, such as ``pii_dev.jsonl``."""
        files = sorted(self.data.glob(f"{kind}_*.jsonl"))
        if not files:
            report.missing.append(self.data / f"{kind}_*.jsonl")
        lines = (line for path in files for line in path.read_text("utf-8").split("\n"))
        return [json.loads(line) for line in lines if line.strip()]


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
