"""How good and how quick prompts are: ``./scripts/bench assembly --data DIR [--only ROW …] [--cache FOLDER]``.

``DIR`` holds labelled texts: ``locomo_*_messages.jsonl`` and ``locomo_*_questions.jsonl`` (long conversations, and
questions with the turns that answer them), ``musique_*_passages.jsonl`` and ``musique_*_questions.jsonl`` (passages,
and questions that need several), ``pii_*.jsonl``. What is measured in time should have the machine for itself.

Exits with 0 also when goals are missed, which it says; with 1 when a file is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import structlog

from scripts.benches.memory.recall import measure_ablations, measure_recall
from scripts.benches.memory.turn_time import measure_turns
from scripts.benches.prompts.budget import measure_budget, measure_hanging
from scripts.benches.prompts.options import Options
from scripts.benches.prompts.pii import measure_pii
from scripts.benches.prompts.pure import measure_choice, measure_pure
from scripts.benches.shared.report import Report

MEASURES: Final[Mapping[str, Callable[[Options, Report], Awaitable[None]]]] = {
    "recall": measure_recall,
    "ablations": measure_ablations,
    "turns": measure_turns,
    "pure": measure_pure,
    "choice": measure_choice,
    "budget": measure_budget,
    "hanging": measure_hanging,
    "pii": measure_pii,
}


async def measure(options: Options, only: Sequence[str]) -> Report:
    report = Report("Assembly: prompts that fit")
    report.notes.append(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start.")
    for name, row in MEASURES.items():
        if not only or name in only:
            print(f"{name} …", file=sys.stderr)
            await row(options, report)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the labelled texts")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, 10,000 memories at most")
    parser.add_argument("--only", nargs="+", choices=list(MEASURES), default=[], metavar="ROW", help="these rows alone")
    parser.add_argument("--conversations", type=int, metavar="N", help="recall in the first N conversations alone")
    parser.add_argument("--no-embeddings", action="store_true", help="find by words alone")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep embeddings there for the next run")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    options = Options(
        given.data,
        quick=given.quick,
        conversations=given.conversations,
        embeddings=not given.no_embeddings,
        cache=given.cache,
    )
    try:
        report = asyncio.run(measure(options, given.only))
    except KeyboardInterrupt:
        print("stopped; everything that was started has ended", file=sys.stderr)
        return 130
    report.print()
    return 1 if report.missing else 0


if __name__ == "__main__":
    sys.exit(main())
