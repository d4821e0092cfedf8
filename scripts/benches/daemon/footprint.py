"""Rows: how soon the process is ready, what memory it takes, and what each further session takes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from typing import Final

import psutil

from scripts.benches.daemon.observer import paced
from scripts.benches.daemon.processes import output_of
from scripts.benches.daemon.stage import Scale, Stage
from scripts.benches.daemon.table import Line

READY: Final = 1.5
MEGABYTE: Final = 2**20
TEXT_MEMORY: Final = 75
MODEL_MEMORY: Final = 190
SESSION_MEMORY: Final = 0.5

MESSAGES: Final = 20


def ready(stage: Stage, scale: Scale) -> Iterator[Line]:
    """From the start of the process to its ``session.ready``."""
    taken = []
    for model in (False, True):
        for _ in range(scale.starts):
            with stage.starting_daemon(stage.new_session(), model=model) as daemon:
                taken.append(daemon.wait_for("session.ready") - daemon.started)
    median, slowest = statistics.median(taken), max(taken)
    values = {"median_s": median, "max_s": slowest}
    yield Line(f"median of {len(taken)}", f"{median:.2f} s (slowest {slowest:.2f} s)", median <= READY, values=values)


def memory(stage: Stage, scale: Scale) -> Iterator[Line]:
    """After keywords, domains and a summary that is archived: everything that is loaded lazily is loaded."""
    del scale
    for model, limit in ((False, TEXT_MEMORY), (True, MODEL_MEMORY)):
        session = stage.new_session()
        with (
            stage.observer(session) as observer,
            stage.daemon(session, model=model, raw_buffer_time_window=2.0) as daemon,
        ):
            for _ in paced(MESSAGES, 20.0):
                observer.push()
            daemon.wait_for("summary.archived")
            used = psutil.Process(daemon.pid).memory_full_info()
        rss, uss = used.rss / MEGABYTE, used.uss / MEGABYTE
        what = "with client and tokenizer" if model else "without a model"
        values = {"rss_mb": rss, "uss_mb": uss}
        yield Line(f"{what}, RSS (USS)", f"{rss:.0f} MB ({uss:.0f} MB)", rss <= limit, values=values)


def sessions(stage: Stage, scale: Scale) -> Iterator[Line]:
    """A process with one session against a process with many, each with some messages, without a model."""
    one, many = (_hosting(stage, count) for count in (1, 1 + scale.sessions))
    each = {kind: (many[kind] - one[kind]) / scale.sessions / MEGABYTE for kind in ("rss", "uss")}
    yield Line(
        f"mean of {scale.sessions}, {MESSAGES} messages each",
        f"{each['rss']:.2f} MB",
        each["rss"] <= SESSION_MEMORY,
        values={"rss_mb": each["rss"], "uss_mb": each["uss"]},
    )


def _hosting(stage: Stage, count: int) -> dict[str, int]:
    arguments = (str(count), str(MESSAGES))
    printed = output_of("scripts.benches.daemon.hosted_sessions", arguments, stage.surroundings())
    return {str(kind): int(used) for kind, used in json.loads(printed).items()}
