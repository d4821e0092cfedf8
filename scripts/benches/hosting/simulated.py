"""``bench fleet --simulate`` reproduces points that it was not calibrated on, and then reports other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from scripts.benches.hosting.machines import (
    CALIBRATED_IDLE,
    CALIBRATED_RATE,
    Costs,
    Limits,
    Needs,
    Shares,
    calibrated,
    costs,
    enough_servers,
    measured,
    needs,
    reached_at,
)
from scripts.benches.hosting.points import Points
from scripts.benches.hosting.simulation import waiting

MOST_ERROR: Final = 0.25
QUIET_ENOUGH: Final = 0.5
"""Cores that others may have used where it is compared how soon something was visible: a worker that waits for its
core is late by what others do, not by what the model knows of."""

CORE: Final = "of a core"

SIZES: Final = (1_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Reproduced:
    """Compares one figure of a point that the model was not calibrated on."""

    what: str
    measured: float
    simulated: float
    unit: str

    @property
    def error(self) -> float:
        return abs(self.simulated / self.measured - 1)

    @property
    def is_extrapolated(self) -> bool:
        """Return whether what larger fleets need is made from such a figure."""
        return self.unit == CORE


def reproduced(points: Points) -> list[Reproduced]:
    """Return the figures of the points that were held out, measured and simulated; see :func:`not_compared`."""
    model, disturbed = calibrated(points), not_compared(points)
    found = []
    for one in points["idle"]:
        if one["sessions"] not in CALIBRATED_IDLE:
            core = model.core(one["sessions"], 0.0)
            found.append(Reproduced(f"{one['sessions']:,} idle sessions", one["worker"], core, CORE))
    for one in points["talking"]:
        if one["rate"] != CALIBRATED_RATE:
            real = measured(points, "talking", rate=one["rate"])
            what = f"{one['rate']} messages/s in {one['sessions']:,} sessions"
            found.append(Reproduced(what, real.core, model.core(real.sessions, real.rate), CORE))
            if {one["rate"], CALIBRATED_RATE} & {*disturbed}:
                continue
            p50, p95 = waiting(model, real.sessions, real.rate)
            found += [
                Reproduced(what, 1000 * real.p50, 1000 * p50, "ms, p50"),
                Reproduced(what, 1000 * real.p95, 1000 * p95, "ms, p95"),
            ]
    return found


def not_compared(points: Points) -> dict[int, float]:
    """Return by rate what others used where that was so much that waiting is not compared."""
    return {one["rate"]: one["others"] for one in points["talking"] if one["others"] > QUIET_ENOUGH}


def print_simulation(points: Points, shares: Shares, limits: Limits, *, unchecked: bool = False) -> int:
    """Print all of it; return 1 when something was not reproduced.

    Then nothing is told of other sizes, unless ``unchecked``.
    """
    console = Console(width=150, highlight=False)
    checks = reproduced(points)
    console.print(_checks(checks))
    for rate, others in not_compared(points).items():
        console.print(f"[bold]others used {others:.1f} cores at {rate} messages/s:[/] p50 and p95 are not compared")
    for part, of in points["made"].items():
        console.print(f"{part}: {of['date']}, {of['machine']}, load {of['load_average']}, {of['command']}", style="dim")
    off = [one for one in checks if one.error > MOST_ERROR]
    for one in off:
        if not one.is_extrapolated:
            console.print(
                f"[bold]off by more than {MOST_ERROR:.0%}:[/] {one.what}, {one.unit}; nothing below is made from it"
            )
    if wrong := [one for one in off if one.is_extrapolated]:
        console.print(f"[bold red]{len(wrong)} of {len(checks)} figures are off by more than {MOST_ERROR:.0%}[/]")
        if not unchecked:
            return 1
        console.print("[bold red]what follows is made from points that were not reproduced[/]")
    cost = costs(points)
    console.print(_a_session(cost))
    enough = [enough_servers(cost, size, shares, limits) or 1 for size in SIZES]
    for servers in ([1] * len(SIZES), enough):
        found = [needs(cost, size, shares, limits, many) for size, many in zip(SIZES, servers, strict=True)]
        console.print(_sizes(found, shares))
    console.print(_limits(cost, shares, limits))
    return 1 if wrong else 0


def _checks(checks: Iterable[Reproduced]) -> Table:
    idle = ", ".join(f"{sessions:,}" for sessions in CALIBRATED_IDLE)
    table = Table(
        *("not calibrated on", "figure", "measured", "simulated", "error"),
        title=f"One worker, calibrated by {idle} idle sessions and by {CALIBRATED_RATE} messages/s",
    )
    for one in checks:
        wrong = "bold red" if one.error > MOST_ERROR else ""
        table.add_row(
            one.what, one.unit, f"{one.measured:.3g}", f"{one.simulated:.3g}", f"{one.error:.0%}", style=wrong
        )
    return table


def _a_session(cost: Costs) -> Table:
    """What a session costs, by what it does."""
    table = Table("a session", "asleep", "idle", "talking", title="What a session costs")
    rate, worker = cost.messages, cost.worker
    idle, talking = worker.awake, worker.awake + rate * worker.message
    rows = (
        ("worker's core, µs a second", 0.0, 1e6 * idle, 1e6 * talking),
        ("text analysis's core, µs a second", 0.0, 0.0, 1e6 * rate * cost.analysis_message),
        (
            "Redis's thread, µs a second",
            1e6 * cost.redis_asleep,
            1e6 * cost.redis_awake,
            1e6 * (cost.redis_awake + rate * cost.redis_message),
        ),
        (
            "Redis commands a second",
            cost.commands_asleep,
            cost.commands_awake,
            cost.commands_awake + rate * cost.commands_message,
        ),
        (
            "Redis's network, bytes a second",
            0.0,
            cost.bytes_awake,
            cost.bytes_awake + rate * cost.bytes_message,
        ),
        ("bytes in Redis", cost.stored_asleep, cost.stored_asleep, cost.stored_talking),
        ("messages an hour", 0.0, 0.0, 3600 * rate),
        ("model tokens an hour", 0.0, 0.0, 3600 * rate * cost.tokens),
        ("PostgreSQL rows an hour", 0.0, 0.0, 3600 * rate * cost.rows),
        ("PostgreSQL's core, µs a second", 0.0, 0.0, 1e6 * rate * cost.postgres_message),
    )
    for what, *figures in rows:
        table.add_row(what, *(_short(figure) for figure in figures))
    return table


def _sizes(found: Sequence[Needs], shares: Shares) -> Table:
    table = Table(
        "sessions",
        *(f"{one.sessions:,}" for one in found),
        title=f"{shares.talking:.0%} talk, {shares.idle:.0%} are idle, the rest sleeps",
    )
    rows = (
        ("Redis servers", [f"{one.servers:,}" for one in found]),
        ("messages a second", [_short(one.messages) for one in found]),
        ("workers", ["none are enough" if one.workers is None else f"{one.workers:,}" for one in found]),
        ("machines", ["–" if one.machines is None else f"{one.machines:,}" for one in found]),
        ("each Redis's thread", [f"{one.redis_core:.2f}" for one in found]),
        ("Redis commands a second, all", [_short(one.commands) for one in found]),
        ("Redis's network, all", [f"{_short(one.bytes_a_second)}B/s" for one in found]),
        ("Redis's memory, all", [f"{_short(one.stored)}B" for one in found]),
        ("model tokens a minute", [_short(one.tokens_a_minute) for one in found]),
        ("PostgreSQL rows a day", [_short(one.rows_a_day) for one in found]),
        ("PostgreSQL's cores", [_short(one.postgres_cores) for one in found]),
        ("nearest to its limit", [f"{one.too_small_first}, {max(one.load.values()):.0%}" for one in found]),
    )
    for what, cells in rows:
        table.add_row(what, *cells)
    return table


def _limits(cost: Costs, shares: Shares, limits: Limits) -> Table:
    table = Table("what is too small", "from so many sessions on", title="On one Redis, each by itself")
    named = needs(cost, 1, shares, limits).load
    for what, sessions in sorted(
        ((what, reached_at(cost, what, shares, limits)) for what in named), key=lambda p: p[1]
    ):
        table.add_row(what, _short(sessions))
    return table


def _short(figure: float) -> str:
    for unit, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(figure) >= size:
            return f"{figure / size:.3g} {unit}"
    return f"{figure:.3g}"
