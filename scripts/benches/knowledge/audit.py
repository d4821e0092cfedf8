"""What it costs to record a package, and to verify the chain of its audit."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from datetime import UTC, date, datetime
from typing import Any, Final

import asyncpg

from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.knowledge.audit_chain import verify
from context_builder.knowledge.governance import Access, AccessDecision
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.revision import CandidateVerdict, PackageRevision, PolicyDecision, RecordedCaller
from scripts.benches.memory.stage import database
from scripts.benches.shared.report import Line, Report, p95

ROWS: Final = 1_000_000
GOAL: Final = 30.0
"""Seconds to verify so many rows."""

SAMPLES: Final = 500
CANDIDATES: Final = 100
SOURCES: Final = 30
AT_ONCE: Final = 1_000
"""Rows that are appended by one statement."""

CALLER: Final = RecordedCaller("agent-7", ("writer",))


def measure_audit(report: Report, quick: bool) -> None:  # noqa: FBT001 as every row is called
    with database() as url:
        asyncio.run(_measure(url, report, 10 if quick else 1))


async def _measure(url: str, report: Report, part: int) -> None:
    await apply(url)
    functions = PostgresDatabase(url, timeout=60.0)
    try:
        report.add(await _recording(PackageRecord(functions), SAMPLES // part))
        rows = ROWS // part
        await _filled(url, rows)
        start = time.perf_counter()
        found = await verify(functions, "lab", oldest=date(2000, 1, 1))
        took = time.perf_counter() - start
        assert (found.rows, found.is_intact) == (rows, True), found
        what = f"audit chain: verify {rows:,} rows"
        report.add(Line(what, f"{took:.1f} s", goal=f"{GOAL:.0f} s", reached=took * part <= GOAL))
    finally:
        await functions.close()


async def _recording(record: PackageRecord, samples: int) -> Line:
    """Milliseconds that the record of a package takes: its request before, and the rest after."""
    times = []
    for number in range(samples):
        revision = _revision(number)
        start = time.perf_counter()
        await record.begin(
            "packages",
            revision.request_id,
            caller=CALLER,
            request={"intent": "Choose a strategy", "tokenBudget": 4_000},
            trace_id="4bf92f3577b34da6a3ce929d0e0e4736",
            traceparent="",
            task_id=f"task-{number}",
            package_id=revision.package_id,
        )
        await record.finish("packages", revision)
        times.append(1000 * (time.perf_counter() - start))
    return Line(
        f"record a package of {SOURCES} sources and {CANDIDATES} candidates, p50 / p95",
        f"{statistics.median(times):.1f} / {p95(times):.1f} ms",
    )


def _revision(number: int) -> PackageRevision:
    refs = [f"artifact:{(7 * number + place) % 1_000}" for place in range(CANDIDATES)]
    sources = [
        {"ref": ref, "version": 1, "title": f"Title of {ref}", "content": f"{ref} says a word. " * 30, "tokens": 130}
        for ref in refs[:SOURCES]
    ]
    body: dict[str, Any] = {"contextPackageId": f"cpk_{number}", "tokenBudget": 4_000, "sources": sources}
    verdicts = [
        CandidateVerdict(
            ref, 1, "included" if place < SOURCES else "excluded", "", 0.5, {"semantic": 0.5}, 130, ("semantic",)
        )
        for place, ref in enumerate(refs)
    ]
    decisions = [AccessDecision(ref, Access.READ, ("default#1",), "policy default#1 permits read") for ref in refs]
    return PackageRevision(
        package_id=f"cpk_{number}",
        request_id=f"cbr_{number}",
        created_at=datetime.now(UTC),
        body=body,
        candidates=tuple(verdicts),
        decision=PolicyDecision(f"pdn_{number}", "sha256:0", CALLER.sub, CALLER.roles, {}, tuple(decisions)),
        governance_version="1",
    )


async def _filled(url: str, rows: int) -> None:
    """Append rows to the chain of tenant ``lab``, as packages do."""
    entry = {
        "decision_id": "pdn_01KAR2M3X5Q8J4YV7T9ZB6WCDE",
        "package_id": "cpk_01KAR2M3X5Q8J4YV7T9ZB6WCDE",
        "revision": 1,
        "policy_version": "sha256:" + "0" * 64,
        "caller": "agent-7",
        "version": 1,
        "access": "read",
        "policies": "default#1",
        "reason": "policy default#1 permits read",
        "content_digest": "0" * 64,
    }
    connection = await asyncpg.connect(url)
    await connection.execute("SELECT context_package_partitions(current_date, current_date + 1)")
    for first in range(0, rows, AT_ONCE):
        entries = json.dumps([entry | {"ref": f"artifact:{first + place}"} for place in range(AT_ONCE)])
        appended = "ARRAY(SELECT jsonb_populate_recordset(NULL::policy_audit, $1))"
        await connection.execute(f"SELECT context_package_append('lab', now(), {appended})", entries)
    await connection.close()
