"""How good and how quick context packages are: ``./scripts/bench packages [--data DIR] [--known DIR] …``.

``DIR`` holds labelled texts: ``hotpot_*_passages.jsonl`` and ``hotpot_*_questions.jsonl``, and the same of ``musique``.
``--known`` names a folder with the documents of projects, and questions about them (``knowledge/known.py``).

What is measured in time should have the machine for itself. Exits with 0 also when goals are missed, which it says.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from scripts.benches.knowledge.audit import measure_audit
from scripts.benches.knowledge.budget import measure_budget
from scripts.benches.knowledge.known import measure_known
from scripts.benches.knowledge.options import Options
from scripts.benches.knowledge.policy import measure_policy
from scripts.benches.knowledge.recall import measure_recall
from scripts.benches.knowledge.speed import measure_speed
from scripts.benches.shared.report import Report

MEASURES: Final[Mapping[str, Callable[[Report, Options], None]]] = {
    "known": measure_known,
    "recall": measure_recall,
    "speed": measure_speed,
    "budget": measure_budget,
    "policy": lambda report, options: measure_policy(report, options.quick),
    "audit": lambda report, options: measure_audit(report, options.quick),
}


def measure(only: Sequence[str], options: Options) -> Report:
    report = Report("Context packages")
    report.notes.append(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start.")
    for name, row in MEASURES.items():
        if not only or name in only:
            print(f"{name} …", file=sys.stderr)
            row(report, options)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the labelled texts")
    parser.add_argument("--known", type=Path, help="folder with projects' documents and questions about them")
    parser.add_argument("--no-embeddings", action="store_true", help="find by words alone")
    parser.add_argument("--static", action="store_true", help="embed by wordllama, which has to be installed")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embeddings there for the next run")
    parser.add_argument("--database", type=Path, metavar="FOLDER", help="keep what speed is measured on there")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples")
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=[], metavar="ROW", help="these rows alone")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    options = Options(
        given.data, given.quick, not given.no_embeddings, given.cache, given.database, given.static, given.known
    )
    try:
        report = measure(given.only, options)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    report.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
