"""How many secrets the redactor masks and how many look-alikes it alters: ``./scripts/bench redaction --data DIR``.

Each ``*.jsonl`` in DIR has a case a line: ``{"text": …, "secret": …}``, the secret null where the text has none.
A secret is masked when it no longer stands in the text; a text without one is altered when a character of it changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypedDict

from context_builder.redaction import SecretRedactor
from scripts.benches.harness.report import Line, Report, parser, run

LEAST_MASKED: Final = 0.9
MOST_ALTERED: Final = 0.1


class Case(TypedDict):
    text: str
    secret: str | None


def lines(what: str, cases: Sequence[Case]) -> list[Line]:
    """Redact every case; return the share of secrets masked and that of harmless texts altered, where there are any."""
    redactor = SecretRedactor()
    masked = [case["secret"] not in redactor.redact(case["text"]) for case in cases if case["secret"] is not None]
    altered = [redactor.redact(case["text"]) != case["text"] for case in cases if case["secret"] is None]
    found = []
    if masked:
        share = sum(masked) / len(masked)
        shown = f"{share:.1%} of {len(masked)}"
        found.append(Line(f"{what}: masked", shown, f"≥ {LEAST_MASKED:.0%}", share >= LEAST_MASKED))
    if altered:
        share = sum(altered) / len(altered)
        shown = f"{share:.1%} of {len(altered)}"
        found.append(Line(f"{what}: altered", shown, f"≤ {MOST_ALTERED:.0%}", share <= MOST_ALTERED))
    return found


def measure(report: Report, data: Path) -> None:
    """Add two lines a file, and two of all."""
    every: list[Case] = []
    for path in sorted(data.glob("*.jsonl")):
        cases: list[Case] = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
        report.extend(lines(path.stem, cases))
        every += cases
    report.extend(lines("all", every))
    if not report.lines:
        report.missing.append(data / "*.jsonl")


def main() -> int:
    asked = parser(__doc__)
    asked.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder of the cases")
    options = asked.parse_args()
    return run("Redaction", lambda report: measure(report, options.data), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
