"""The bench's model of a worker and of larger fleets: pure, so measured points may be made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scripts.benches.hosting.machines import Costs, Limits, Shares, costs, enough_servers, needs, reached_at
from scripts.benches.hosting.measuring import PARTS
from scripts.benches.hosting.points import read_points
from scripts.benches.hosting.simulated import not_compared, print_simulation, reproduced
from scripts.benches.hosting.simulation import Measured, WorkerModel, calibrate, waiting

MODEL = WorkerModel(alone=0.02, awake=9e-5, message=0.002, latency=0.003, tail=0.002)


def measured(model: WorkerModel, sessions: int, rate: float) -> Measured:
    p50, p95 = waiting(model, sessions, rate) if rate else (0.0, 0.0)
    return Measured(sessions, rate, model.core(sessions, rate), p50, p95)


def test_a_model_is_found_again_by_what_it_makes() -> None:
    idle = [measured(MODEL, sessions, 0.0) for sessions in (0, 500, 2000)]
    found = calibrate(idle, measured(MODEL, 1000, 100.0))
    for name in ("alone", "awake", "message", "latency", "tail"):
        assert getattr(found, name) == pytest.approx(getattr(MODEL, name), rel=0.15)


def test_a_message_waits_for_refreshes_and_for_the_work_before_it() -> None:
    p95 = [waiting(MODEL, sessions, 40)[1] - MODEL.latency - MODEL.tail for sessions in (0, 500, 2000)]
    assert p95[0] == pytest.approx(0.4 * MODEL.message)
    assert sorted(p95) == p95
    assert p95[2] > 3 * p95[0]
    overloaded = MODEL.highest_rate(1000, 1.1)
    assert waiting(MODEL, 1000, overloaded)[0] > 0.1


def test_the_rate_that_fills_a_core() -> None:
    rate = MODEL.highest_rate(1000, 0.7)
    assert MODEL.core(1000, rate) == pytest.approx(0.7)
    assert MODEL.highest_rate(100_000, 0.7) == 0.0


COST = Costs(
    worker=MODEL,
    analysis_message=1e-4,
    redis_worker=0.004,
    redis_awake=1e-5,
    redis_asleep=2e-5,
    redis_message=4e-4,
    redis_heard=1e-5,
    worker_heard=1e-4,
    commands_worker=50.0,
    commands_awake=20.0,
    commands_asleep=4.0,
    commands_message=60.0,
    postgres_message=1e-3,
    bytes_message=20_000.0,
    bytes_awake=2_000.0,
    stored_talking=100_000.0,
    stored_asleep=20_000.0,
    messages=0.2,
    tokens=150.0,
    rows=1.2,
)
SHARES, LIMITS = Shares(talking=0.1, idle=0.1), Limits()


def test_a_thousand_sessions_need_one_worker_and_one_redis() -> None:
    found = needs(COST, 1_000, SHARES, LIMITS)
    assert (found.workers, found.machines) == (1, 1)
    assert found.messages == pytest.approx(20.0)
    assert found.tokens_a_minute == pytest.approx(60 * 150 * 20)
    assert found.rows_a_day == pytest.approx(86_400 * 1.2 * 20)
    assert max(found.load.values()) < 1
    assert enough_servers(COST, 1_000, SHARES, LIMITS) == 1


def test_each_worker_hears_every_push_until_none_has_room_for_its_own() -> None:
    assert needs(COST, 100_000, SHARES, LIMITS).workers is not None
    crowded = needs(COST, 1_000_000, SHARES, LIMITS)
    assert (crowded.workers, crowded.machines) == (None, None)
    assert crowded.load["what every worker hears of others"] > 1
    deaf = replace(COST, worker_heard=0.0)
    assert needs(deaf, 1_000_000, SHARES, LIMITS).workers is not None


def test_more_redis_servers_share_its_thread_but_not_what_a_worker_hears() -> None:
    one, four = (needs(COST, 400_000, SHARES, LIMITS, servers) for servers in (1, 4))
    assert four.redis_core == pytest.approx(one.redis_core / 4, rel=0.1)
    heard = "what every worker hears of others"
    assert four.load[heard] == one.load[heard]
    servers = enough_servers(COST, 400_000, SHARES, LIMITS)
    assert needs(COST, 400_000, SHARES, LIMITS, servers).load["one Redis's thread"] <= 1
    assert needs(COST, 400_000, SHARES, LIMITS, servers - 1).load["one Redis's thread"] > 1


def test_where_a_limit_is_reached() -> None:
    tokens = "the model's tokens"
    sessions = reached_at(COST, tokens, SHARES, LIMITS)
    assert needs(COST, sessions, SHARES, LIMITS).load[tokens] == pytest.approx(1.0, rel=0.01)


def made_up_points() -> dict[str, Any]:
    """Points of a machine with nothing else to do, as the model makes them."""
    nothing = dict.fromkeys(("analysis", "redis", "postgres", "commands", "bytes_in", "bytes_out", "others"), 0.0)

    def of(sessions: int, rate: float) -> dict[str, Any]:
        one = measured(MODEL, sessions, rate)
        return {**nothing, "sessions": sessions, "rate": rate, "worker": one.core, "p50": one.p50, "p95": one.p95}

    demo = {"messages": 90, "hours": 0.13, "redis_bytes_talking": 70_000, "redis_bytes_asleep": 50_000}
    tasks = {"keywords": {"prompt_tokens": 9_000, "completion_tokens": 900}}
    return {
        "idle": [of(sessions, 0) for sessions in (0, 500, 1000, 2000)],
        "talking": [of(1000, rate) for rate in (20, 40, 80)],
        "beside": [{**of(1000, 40), "worker": 0.1}],
        "asleep": [{**of(1000, 0), "redis": 0.02}],
        "demo": [{**demo, "tasks": tasks, "rows": {"context_memories": {"rows": 120}}}],
        "made": {"idle": {"date": "2026-01-31", "machine": "none", "load_average": 0.1, "command": "none"}},
    }


def test_what_was_held_out_is_reproduced_and_then_extrapolated(capsys: pytest.CaptureFixture[str]) -> None:
    points = made_up_points()
    checks = reproduced(points)
    assert [one.unit for one in checks] == ["of a core", *["of a core", "ms, p50", "ms, p95"] * 2]
    assert all(one.error < 0.1 for one in checks)
    assert costs(points).redis_asleep == pytest.approx(2e-5)
    assert print_simulation(points, SHARES, LIMITS) == 0
    assert "1,000,000" in capsys.readouterr().out


def test_what_is_not_reproduced_is_not_extrapolated(capsys: pytest.CaptureFixture[str]) -> None:
    points = made_up_points()
    points["talking"][2]["worker"] *= 2
    assert print_simulation(points, SHARES, LIMITS) == 1
    assert "1,000,000" not in capsys.readouterr().out
    assert print_simulation(points, SHARES, LIMITS, unchecked=True) == 1
    assert "1,000,000" in capsys.readouterr().out


def test_how_soon_something_is_visible_is_compared_but_nothing_is_made_from_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    points = made_up_points()
    points["talking"][2]["p95"] *= 2
    assert print_simulation(points, SHARES, LIMITS) == 0
    told = capsys.readouterr().out
    assert "1,000,000" in told
    assert "nothing below is made from" in told


def test_waiting_is_not_compared_where_others_used_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    points = made_up_points()
    points["talking"][2] |= {"others": 1.5, "p95": 9.0}
    assert not_compared(points) == {80: 1.5}
    assert [one.unit for one in reproduced(points)].count("ms, p95") == 1
    assert print_simulation(points, SHARES, LIMITS) == 0
    assert "others used 1.5 cores at 80 messages/s" in capsys.readouterr().out
    points["talking"][1] |= {"others": 1.5}  # what it is calibrated by
    assert {one.unit for one in reproduced(points)} == {"of a core"}


def test_the_points_that_are_kept_are_whole() -> None:
    points = read_points()
    assert {*PARTS, "made"} == {*points}
    assert {*PARTS} == {*points["made"]}
    assert costs(points).tokens > 0
