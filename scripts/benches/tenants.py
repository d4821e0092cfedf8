"""Whether a large tenant slows a small one: ``./scripts/bench tenants [--quick] [--rows N] [--json]``.

A tenant with 1,000 memories is searched alone in one database, and in another of the same server beside a tenant with
1,000,000, each question in one and then in the other. A ratio is that of beside to alone. Loading takes a quarter of
an hour; exits with 0 also when goals are missed, which it says.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from scripts.benches.memory.stage import database
from scripts.benches.memory.tenant_searches import (
    SEARCHES,
    Question,
    Stores,
    opened,
    questions,
    searched_meanwhile,
    timed,
)
from scripts.benches.memory.two_tenants import LARGE, MEMORIES, SMALL, Tenants, prepared
from scripts.benches.shared.report import Line, Report, p95

GOALS: Final = (1.2, 1.5)
"""How much longer a search may take at the median and at the 95th percentile beside the large tenant."""

WARM_UP: Final = 20


async def measure(report: Report, kept: Path | None, rows: int, vectors: int, count: int) -> None:
    with database(kept) as url:
        tenants = await prepared(url, rows, vectors)
        asked = await questions(WARM_UP + count, seed=8)
        async with opened(tenants.alone) as alone, opened(tenants.beside) as beside:
            for name in SEARCHES:  # as a server's connections do, which keep plans, these serve both tenants
                for question in asked[:WARM_UP]:
                    await timed(beside, name, LARGE, question)
            for name in SEARCHES:
                report.add(await compared(name, name, alone, beside, asked))
            with searched_meanwhile(tenants.beside, LARGE):
                for name in SEARCHES:
                    report.add(await compared(f"{name}; the large one is searched", name, alone, beside, asked))
            for name in SEARCHES:
                report.add(await of_the_large(name, beside, asked, tenants))
    report.notes += [
        f"The large tenant has {tenants.rows:,} memories, embeddings of {tenants.vectors:,} of them, "
        f"{rows // 10:,} artifacts and {rows // 2:,} edges.",
        f"The small one has {MEMORIES:,} memories, all embedded, as many artifacts and {5 * MEMORIES:,} edges.",
        f"Load average {os.getloadavg()[0]:.1f} at the end.",
    ]


async def compared(what: str, name: str, alone: Stores, beside: Stores, asked: Sequence[Question]) -> Line:
    """Search the small tenant where it is alone and where it is not, in turns, so that what else the machine does
    slows both."""
    before, after, different = [], [], 0
    for place, question in enumerate(asked):
        both = [(alone, before), (beside, after)]
        answers = []
        for stores, times in both if place % 2 else reversed(both):
            taken, found = await timed(stores, name, SMALL, question)
            times.append(taken)
            answers.append(found)
        different += answers[0] != answers[1]
    (half, most), (of_half, of_most) = half_and_most(before), half_and_most(after)
    ratios = of_half / half, of_most / most
    other = f", {different} ANSWERS DIFFER" if different else ""
    return Line(
        f"{what}, p50 / p95",
        f"× {ratios[0]:.2f} / {ratios[1]:.2f} ({of_half:.1f} / {of_most:.1f} ms{other})",
        goal=f"× {GOALS[0]:g} / {GOALS[1]:g}",
        reached=ratios[0] <= GOALS[0] and ratios[1] <= GOALS[1] and not different,
        baseline=f"alone {half:.1f} / {most:.1f} ms",
        values={
            "p50_ms": of_half,
            "p95_ms": of_most,
            "alone_p50_ms": half,
            "alone_p95_ms": most,
            "p50_ratio": ratios[0],
            "p95_ratio": ratios[1],
            "different": different,
        },
    )


async def of_the_large(name: str, beside: Stores, asked: Sequence[Question], tenants: Tenants) -> Line:
    times = [(await timed(beside, name, LARGE, question))[0] for question in asked]
    half, most = half_and_most(times)
    what = f"the large tenant itself, {name}, p50 / p95"
    return Line(what, f"{half:.1f} / {most:.1f} ms", values={"p50_ms": half, "p95_ms": most, "rows": tenants.rows})


def half_and_most(times: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile of all but the first."""
    return statistics.median(times[WARM_UP:]), p95(times[WARM_UP:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, metavar="N", help="memories of the large tenant (1000000)")
    parser.add_argument("--vectors", type=int, metavar="N", help="how many of them have an embedding (100000)")
    parser.add_argument("--count", type=int, default=300, metavar="N", help="searches of each kind (300)")
    parser.add_argument("--quick", action="store_true", help="a tenth of rows and vectors")
    parser.add_argument("--database", type=Path, metavar="FOLDER", help="keep the databases there for the next run")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    report = Report("A small tenant beside a large one")
    report.notes.append(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start.")
    rows, vectors = (100_000, 10_000) if options.quick else (1_000_000, 100_000)
    try:
        asyncio.run(measure(report, options.database, options.rows or rows, options.vectors or vectors, options.count))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    if options.json:
        print(report.as_json())
    else:
        report.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
