"""How many secrets the redactor masks and how many look-alikes it alters: ``./scripts/bench redaction --data DIR``.

Each ``*.jsonl`` in DIR has a case a line: ``{"text": …, "secret": …}``, the secret null where the text has none.
A secret is masked when it no longer stands in the text; a text without one is altered when a character of it changed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

from context_builder.redaction import SecretRedactor
from scripts.benches.shared.report import Line, Report

LEAST_MASKED: Final = 0.9
MOST_ALTERED: Final = 0.1


class Case(TypedDict):
    text: str
    secret: str | None


class Counts(NamedTuple):
    """Cases with a secret and how many are masked, cases without one and how many are altered."""

    secrets: int = 0
    masked: int = 0
    harmless: int = 0
    altered: int = 0

    def lines(self, what: str) -> list[Line]:
        lines = []
        if self.secrets:
            share = self.masked / self.secrets
            shown = f"{share:.1%} of {self.secrets}"
            lines.append(Line(f"{what}: masked", shown, f"≥ {LEAST_MASKED:.0%}", share >= LEAST_MASKED))
        if self.harmless:
            share = self.altered / self.harmless
            shown = f"{share:.1%} of {self.harmless}"
            lines.append(Line(f"{what}: altered", shown, f"≤ {MOST_ALTERED:.0%}", share <= MOST_ALTERED))
        return lines


def counted(cases: Iterable[Case]) -> Counts:
    """Redact every case, and count."""
    redactor, counts = SecretRedactor(), Counts()
    for case in cases:
        redacted = redactor.redact(case["text"])
        if case["secret"] is None:
            is_altered = redacted != case["text"]
            counts = counts._replace(harmless=counts.harmless + 1, altered=counts.altered + is_altered)
        else:
            is_masked = case["secret"] not in redacted
            counts = counts._replace(secrets=counts.secrets + 1, masked=counts.masked + is_masked)
    return counts


def measured(data: Path) -> Report:
    """Return a report with two lines a file, and two of all."""
    report, everything = Report("redaction"), Counts()
    for path in sorted(data.glob("*.jsonl")):
        cases: list[Case] = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
        counts = counted(cases)
        report.extend(counts.lines(path.stem))
        everything = Counts(*(one + other for one, other in zip(everything, counts, strict=True)))
    report.extend(everything.lines("all"))
    if not report.lines:
        report.missing.append(data / "*.jsonl")
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder of the cases")
    measured(parser.parse_args(arguments).data).print()


if __name__ == "__main__":
    main()
