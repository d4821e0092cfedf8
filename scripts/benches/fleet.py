"""Many sessions, in one process and in a fleet: ``./scripts/bench fleet [--sessions N] [--only ROW] [--alone]``.

Workers, a real append-only Redis, PostgreSQL and the load share the machine. With ``--alone`` each session of the rows
of one process does by itself what a host does for all.

``--simulate`` measures nothing: it reproduces points measured before, and tells what other sizes need. With
``--measure`` those points, or some parts of them, are measured anew first (half an hour).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console

from context_builder.errors import ContextBuilderError
from scripts.benches.daemon.processes import BenchError
from scripts.benches.daemon.stage import Stage, open_stage
from scripts.benches.daemon.table import Line, Published, Report
from scripts.benches.hosting import one_process
from scripts.benches.hosting.asleep import asleep
from scripts.benches.hosting.discovery import discovery, scan
from scripts.benches.hosting.machines import Limits, Shares
from scripts.benches.hosting.measuring import PARTS, Measuring, made, measure_part
from scripts.benches.hosting.moving import death, handover
from scripts.benches.hosting.one_process import Load
from scripts.benches.hosting.others import Others
from scripts.benches.hosting.points import FILE, read_points, write_points
from scripts.benches.hosting.rate import rate
from scripts.benches.hosting.simulated import print_simulation

ROWS: Final = {
    "ready": Published("sessions from checkpoint to ready", "–", "–", "5 s for 2,000"),
    "idle": Published("all idle, CPU of one core", "–", "–", "0.25 for 2,000"),
    "fresh": Published("conversation_state older than 1 s", "–", "–", "0"),
    "memory": Published("a further idle session, USS", "–", "–", "0.12 MB"),
    "visible": Published("push → visible at 200 messages/s over all, p50 / p95", "–", "–", "4 / 25 ms"),
    "discovery": Published("first message of an unknown session → visible, p50 / p95", "–", "–", "1 s"),
    "death": Published("a worker's end → each of its sessions visible by another, p50 / p95", "–", "–", "3 / 5 s"),
    "handover": Published("SIGTERM of a worker, 40 messages/s over 200 sessions, p50 / p95", "–", "–", "1 s"),
    "rate": Published("1,000 sessions of one worker, push → visible, p50 / p95", "–", "–", "1,500/s"),
    "asleep": Published("sessions that sleep", "–", "–", "0 MB"),
    "scan": Published("an idle worker", "–", "–", "–"),
}


def measure(stage: Stage, load: Load, rows: Sequence[str]) -> Iterator[tuple[str, Line]]:
    if {*one_process.ROWS} & {*rows}:
        yield from one_process.one_process(stage, load, rows)
    of_fleets: dict[str, Callable[[], Iterator[Line]]] = {
        "discovery": lambda: discovery(stage),
        "death": lambda: death(stage),
        "handover": lambda: handover(stage),
        "rate": lambda: rate(stage, load.seconds),
        "asleep": lambda: asleep(stage, load.sessions, load.seconds),
        "scan": lambda: scan(stage, load.seconds),
    }
    for row, lines in of_fleets.items():
        if row in rows:
            yield from ((row, line) for line in lines())


def simulate(options: argparse.Namespace) -> int:
    """Measure what is wanted, then compare and extrapolate."""
    points = read_points() if FILE.exists() else {}
    try:
        if options.measure is not None:
            progress, command = Console(stderr=True, highlight=False, soft_wrap=True), " ".join(sys.argv[1:])
            with open_stage() as stage:
                for part in options.measure or PARTS:
                    progress.print(f"{part} …")
                    measured = measure_part(part, Measuring(stage, options.seconds, options.patience, progress.print))
                    points = {**(read_points() if FILE.exists() else {}), part: measured}
                    points["made"] = made(f"./scripts/bench fleet {command}", points, part)
                    write_points(points)
        return print_simulation(points, Shares(options.talking, options.idle), Limits(), unchecked=options.unchecked)
    except (BenchError, ContextBuilderError, KeyError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; everything that was started has ended", file=sys.stderr)
        return 130


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=2000, metavar="N", help="live sessions (2000)")
    parser.add_argument("--seconds", type=float, default=15.0, metavar="S", help="length of each measurement (15)")
    parser.add_argument("--rate", type=float, default=200.0, metavar="R", help="messages a second over all (200)")
    parser.add_argument("--alone", action="store_true", help="without a host, as a comparison")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", choices=ROWS, action="append", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    parser.add_argument("--simulate", action="store_true", help="what 1,000, 100,000 and 1,000,000 sessions need")
    parser.add_argument(
        "--measure",
        nargs="*",
        choices=PARTS,
        metavar="PART",
        help=f"measure the points anew, or only {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--patience", type=float, default=30.0, metavar="S", help="how long --measure waits for a quiet machine (30)"
    )
    parser.add_argument("--unchecked", action="store_true", help="with --simulate: report other sizes in any case")
    parser.add_argument("--talking", type=float, default=0.1, metavar="S", help="share of sessions spoken in (0.1)")
    parser.add_argument("--idle", type=float, default=0.1, metavar="S", help="share of others that are awake (0.1)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    if options.simulate or options.measure is not None:
        return simulate(options)
    report = Report(ROWS, "Many sessions, and fleets of workers")
    report.notes = [f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start."]
    progress, status = Console(stderr=True, highlight=False, soft_wrap=True), 0
    load = Load(options.sessions, options.alone, options.seconds, options.rate)
    try:
        with open_stage() as stage:
            others = Others(stage.home)
            for row, line in measure(stage, load, options.only or list(ROWS)):
                used, others = others.cores(), Others(stage.home)
                report.add(row, replace(line, values={**line.values, "others_cores": used}))
                progress.print(
                    f"{ROWS[row].what}, {line.what}: {line.measured}; others used {used:.2f} cores meanwhile"
                )
    except (BenchError, ContextBuilderError) as error:
        print(error, file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        print("stopped; everything that was started has ended", file=sys.stderr)
        status = 130
    print(report.as_json()) if options.json else report.print()
    return status or (1 if report.missed else 0)


if __name__ == "__main__":
    sys.exit(main())
