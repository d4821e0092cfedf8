"""How quick and how small the live side is: ``./scripts/bench live [--quick] [--json] [--only ROW]``.

Every row is measured on the real daemon, a process of its own, with a real append-only Redis and a real PostgreSQL in
a temporary home, once without a model and where it matters once with a local server that answers keywords, domains and
summaries after 150, 400 and 1500 ms. Nothing else should run on the machine meanwhile. Takes some minutes; ``--quick``
about one, with fewer samples.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console

from context_builder.errors import ContextBuilderError
from scripts.benches.daemon.findable import findable
from scripts.benches.daemon.footprint import memory, ready, sessions
from scripts.benches.daemon.keywords import keywords
from scripts.benches.daemon.processes import BenchError
from scripts.benches.daemon.protocol import protocol
from scripts.benches.daemon.quiet import idle, silence
from scripts.benches.daemon.stage import QUICK, Scale, Stage, open_stage
from scripts.benches.daemon.table import Line, Published, Report, milliseconds, p50_p95
from scripts.benches.daemon.traffic import traffic
from scripts.benches.daemon.visibility import backlog, visible

Measure = Callable[[Stage, Scale], Iterator[Line]]

ROWS: Final[Mapping[str, tuple[Measure, Published]]] = {
    "visible": (
        visible,
        Published(
            "push → visible in the state, p50 / p95",
            "608 / 1,017 ms",
            "6.5 / 8.7 ms with 10 messages, 113 / 287 ms with 1,000",
            "2 / 8 ms",
        ),
    ),
    "keywords": (
        keywords,
        Published("push → keywords, p50, beyond the model's own latency", "458 ms", "–", "50 ms"),
    ),
    "findable": (findable, Published("push → found in the memory, p50 / p95", "–", "–", "1 s, by meaning 5 s")),
    "backlog": (
        backlog,
        Published(
            "a backlog, until all are durably taken in and the newest are visible",
            "1.3 messages/s",
            "48–66 messages/s",
            "5,000 messages/s",
        ),
    ),
    "protocol": (
        protocol,
        Published(
            "throughput kept, against the same loop without acknowledgement, fence and identities", "–", "–", "70 %"
        ),
    ),
    "traffic": (traffic, Published("bytes that a message costs on the way to Redis", "–", "–", "16 KB")),
    "silence": (
        silence,
        Published(
            "silence flips after, staleness of time_since_last_message (max)", "4.64 s, 1.55 s", "–", "4.0–4.6 s, 0.6 s"
        ),
    ),
    "idle": (
        idle,
        Published("idle conversation summarized after", "never", "–", "within 1 s of window and model's latency"),
    ),
    "ready": (ready, Published("process ready", "3.9 s", "–", "1.5 s")),
    "memory": (memory, Published("memory", "– / 98 MB", "– / 485 MB", "75 MB / 190 MB")),
    "sessions": (sessions, Published("each further session in the same process", "a process", "–", "0.5 MB")),
}

OWN_COST_SAMPLES: Final = 200


def measure(rows: Sequence[str], scale: Scale, report: Report, progress: Console) -> None:
    began = time.monotonic()
    cores, busy = os.cpu_count() or 1, os.getloadavg()[0]
    report.notes.append(f"{cores} cores, load average {busy:.1f} at the start.")
    progress.print("        starting Redis, PostgreSQL and the model server …")
    with open_stage() as stage:
        with stage.observer(stage.new_session()) as observer:
            own = p50_p95(observer.own_cost(OWN_COST_SAMPLES))
        report.notes.append(f"The measuring client's own part of push → visible, p50 / p95: {milliseconds(*own)}.")
        for row in rows:
            take, published = ROWS[row]
            progress.print(f"[dim]{time.monotonic() - began:4.0f} s[/]  {published.what} …")
            for line in take(stage, scale):
                report.add(row, line)
                progress.print(f"          {line.what}: {line.measured}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer samples, in about a minute")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", choices=ROWS, action="append", metavar="ROW", help=f"one of {', '.join(ROWS)}")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what was started, as Ctrl-C does
    report = Report({row: published for row, (_, published) in ROWS.items()})
    status = 0
    try:
        scale = QUICK if options.quick else Scale()
        measure(options.only or list(ROWS), scale, report, Console(stderr=True, highlight=False, soft_wrap=True))
    except (BenchError, ContextBuilderError) as error:
        print(error, file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        print("stopped; everything that was started has ended", file=sys.stderr)
        status = 130
    if options.json:
        print(report.as_json())
    else:
        report.print()
    return status or (1 if report.missed else 0)


if __name__ == "__main__":
    sys.exit(main())
