"""What it costs to decide which of a package's candidates an agent may read."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from context_builder.knowledge.governance import (
    Access,
    Agent,
    DecisionContext,
    GovernedSource,
    PolicySet,
    decide,
    default_policies,
    parse_policies,
)
from scripts.benches.shared.report import Line, Report, p95

CANDIDATES: Final = 100
SAMPLES: Final = 500
GOAL: Final = 10.0
"""Milliseconds, for all candidates."""

AGENT: Final = Agent("lab", frozenset({"writer"}), "agent-7")
CONTEXT: Final = DecisionContext(
    "Choose a labelling strategy for the hydrophone clips", datetime(2026, 11, 22, tzinfo=UTC)
)
SOURCES: Final = [
    GovernedSource(
        ref=f"artifact:protocol-{place}",
        tenant="lab",
        kind="document",
        sensitivity="restricted",
        status="approved",
        project=f"project-{place % 7}",
        module="acoustics",
        session=f"session-{place}",
        tags=frozenset({"labels", "hydrophones"}),
    )
    for place in range(CANDIDATES)
]
"""No two with equal attributes, and none that the agent may see, so that both actions are asked for each. Those that
are equal in what policies read are decided as one."""

READS_CONTEXT: Final = 'context.intent != "" && context.time > datetime("2026-01-01")'


def measure_policy(report: Report, quick: bool) -> None:  # noqa: FBT001 as every row is called
    (default,) = default_policies().values()
    more = "\n".join(_project_policy(place) for place in range(17))
    reading = "\n".join(_project_policy(place, READS_CONTEXT) for place in range(17))
    apart = "\n".join(_project_policy(place, 'resource.session != ""') for place in range(17))
    for what, text, sources in (
        ("1 policy", default.split(";")[0] + ";", SOURCES),
        ("3 policies, the default", default, SOURCES),
        ("20 policies", default + more, SOURCES),
        ("20 policies, 17 read intent and time", default + reading, SOURCES),
        ("20 policies, 17 of them read projects and sessions", default + apart, SOURCES),
    ):
        times, work = _times(parse_policies({"default": text}), sources, SAMPLES // 10 if quick else SAMPLES)
        report.add(
            Line(
                f"{CANDIDATES} candidates, both actions, {what}, p50 / p95",
                f"{statistics.median(times):.1f} / {p95(times):.1f} ms, CPU {p95(work):.1f} ms",
                goal=f"{GOAL:.0f} ms",
                reached=p95(times) <= GOAL,
            )
        )


def _project_policy(place: int, condition: str = "true") -> str:
    return (
        f'permit (principal, action, resource) when {{ resource.project == "project-{place}" && '
        f'{condition} && principal.roles.contains("owner-{place}") }};'
    )


def _times(policies: PolicySet, sources: Sequence[GovernedSource], samples: int) -> tuple[list[float], list[float]]:
    """Milliseconds on the clock and of the processor; they differ by what others took on a busy machine."""
    times: list[float] = []
    work: list[float] = []
    for _ in range(samples):
        start, began = time.perf_counter(), time.thread_time()
        decisions = decide(policies, AGENT, sources, CONTEXT)
        times.append(1000 * (time.perf_counter() - start))
        work.append(1000 * (time.thread_time() - began))
        assert {decision.access for decision in decisions} == {Access.DENIED}
    return times, work
