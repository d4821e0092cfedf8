"""What larger fleets need, by made-up points of a worker."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from scripts.benches.harness.report import Report
from scripts.benches.harness.scale import FILE, PARTS, USES, Shares, costs, enough_servers, load, needs, report_sizes

SHARES = Shares(talking=0.1, idle=0.1)
HEARD, TOKENS, THREAD = "what every worker hears of others", "the model's tokens", "one Redis's thread"


def made_up_points(heard: float = 1e-4) -> dict[str, Any]:
    """Points of a machine with nothing else to do."""

    def of(sessions: int, rate: int = 0) -> dict[str, Any]:
        worker, redis = 0.02 + 9e-5 * sessions + 0.002 * rate, 0.004 + 1e-5 * sessions + 4e-4 * rate
        return {**dict.fromkeys(USES, 0.0), "sessions": sessions, "rate": rate, "worker": worker, "redis": redis}

    demo = {"messages": 90, "hours": 0.125, "tokens": 9_900, "rows": 108}
    return {
        "idle": [of(sessions) for sessions in (0, 500, 1000, 2000)],
        "talking": [of(1000, rate) for rate in (20, 40, 80)],
        "beside": [{**of(1000, 40), "worker": 0.02 + 40 * heard}],
        "asleep": [{**of(1000), "redis": 0.024}],
        "demo": [{**demo, "redis_bytes_talking": 100_000, "redis_bytes_asleep": 20_000}],
        "made": {"idle": {"date": "2026-01-31", "machine": "none", "load_average": 0.1, "command": "none"}},
    }


COST = costs(made_up_points())


def test_what_a_worker_costs_is_found_again() -> None:
    assert COST.core(1000, 40) == pytest.approx(0.02 + 0.09 + 0.08)
    assert COST.asleep["redis"] == pytest.approx(2e-5)
    assert COST.heard["worker"] == pytest.approx(1e-4)


def test_a_thousand_sessions_need_one_worker_and_one_redis() -> None:
    found = needs(COST, 1_000, SHARES)
    assert (found["workers"], found["machines of 16 cores"]) == (1, 1)
    assert found["messages a second"] == pytest.approx(20.0)
    assert found["model tokens a minute"] == pytest.approx(60 * 110 * 20)
    assert found["PostgreSQL rows a day"] == pytest.approx(86_400 * 1.2 * 20)
    assert max(load(COST, 1_000, SHARES).values()) < 1
    assert enough_servers(COST, 1_000, SHARES) == 1


def test_each_worker_hears_every_push_until_none_has_room_for_its_own() -> None:
    assert needs(COST, 100_000, SHARES)["workers"] < math.inf
    assert needs(COST, 1_000_000, SHARES)["workers"] == math.inf
    assert load(COST, 1_000_000, SHARES)[HEARD] > 1
    assert needs(costs(made_up_points(heard=0.0)), 1_000_000, SHARES)["workers"] < math.inf


def test_more_redis_servers_share_its_thread_but_not_what_a_worker_hears() -> None:
    one, four = (load(COST, 400_000, SHARES, servers) for servers in (1, 4))
    assert four[THREAD] == pytest.approx(one[THREAD] / 4, rel=0.1)
    assert four[HEARD] == one[HEARD]
    servers = enough_servers(COST, 400_000, SHARES)
    assert load(COST, 400_000, SHARES, servers)[THREAD] <= 1 < load(COST, 400_000, SHARES, servers - 1)[THREAD]


@pytest.mark.parametrize("reproduced", [True, False])
def test_other_sizes_are_told_only_where_the_points_that_were_held_out_are_reproduced(
    tmp_path: Path, *, reproduced: bool
) -> None:
    points = made_up_points()
    points["talking"][2]["worker"] *= 1 if reproduced else 2
    (file := tmp_path / "points.json").write_text(json.dumps(points))
    report_sizes(file, SHARES, report := Report("sizes"))
    assert [line.reached for line in report.lines] == [True, True, reproduced]
    assert len(report.tables) == (3 if reproduced else 0)


def test_the_points_that_are_kept_are_whole() -> None:
    points = json.loads(FILE.read_text("utf-8"))
    assert {*PARTS, "made"} == {*points}
    assert {*PARTS} == {*points["made"]}
    assert costs(points).messages > 0
