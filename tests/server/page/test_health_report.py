"""The report says what is so, and what is not known; whatever a session published."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from context_builder.engines.redis_launch import SETTINGS
from context_builder.errors import StoreUnavailable
from context_builder.knowledge.governance import Access
from context_builder.memory.memory import MemoryQuery
from context_builder.server.access.caller import local_caller
from context_builder.server.page.health_history import Check, HealthHistory
from context_builder.server.page.views import health as reports
from context_builder.server.page.views.health import HealthReport, HealthWatch, health, health_report
from context_builder.session.keys import RECEIVERS, SESSIONS, Keys, dead_count_field
from context_builder.session.servers import SessionServer, SessionServers
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

KEYS = Keys("monday")
CALLER = local_caller("lab")


async def answers(*_: Any) -> None:
    """A database and a memory that answer."""


async def nothing_stated(*_: Any) -> dict[str, str]:
    return {}


async def all_may_be_read(_: Any, sources: Sequence[Any]) -> list[Access]:
    return [Access.READ for _ in sources]


def services_on(redis: Redis, *, has_model: bool = False) -> Any:
    store = SimpleNamespace(search=answers, ping=answers)
    servers = SessionServers([SessionServer("redis", redis, "lab")])
    sessions = SimpleNamespace(servers=servers, tenant_id="lab")
    knowledge = SimpleNamespace(sensitivities=nothing_stated)
    packages = SimpleNamespace(viewer=SimpleNamespace(access=all_may_be_read))
    return SimpleNamespace(
        sessions=sessions, database=store, memory=store, has_model=has_model, knowledge=knowledge, packages=packages
    )


async def reported(redis: Redis, *, has_model: bool = False, **published: Any) -> HealthReport:
    await redis.zadd(SESSIONS, {"monday": 1})
    await redis.set(KEYS.owner, orjson.dumps({"token": 1, "host": "here", "pid": 1, "since": 1}))
    await redis.set(KEYS.state, orjson.dumps({**published, "revision": 1, "updated_at": 1.0}))
    return await health_report(services_on(redis, has_model=has_model), CALLER)


def told(report: HealthReport, name: str) -> tuple[str, str]:
    return next((one.state, one.found) for one in report.checks if one.name == name)


async def test_an_embedded_redis_which_has_no_config_is_known_by_the_settings_it_was_started_with(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def withheld(*_: Any) -> Any:
        raise ResponseError("unknown command 'CONFIG'")

    monkeypatch.setattr(redis, "config_get", withheld)
    services = services_on(redis)
    for known, is_told in ({}, True), (SETTINGS, False):
        services.sessions.servers = SessionServers([SessionServer("redis", redis, "lab", known)])
        advice = next(one.advice for one in (await health_report(services, CALLER)).checks if one.name == "Redis")
        assert any(one.startswith("could not be checked") and "appendfsync" in one for one in advice) is is_told


async def test_what_redis_does_not_say_is_not_known(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> None:
        raise StoreUnavailable("Redis does not answer")

    monkeypatch.setattr(reports, "_fleet", away)
    report = await reported(redis)
    assert (report.dead, report.fleet, report.has_fleet, report.costs) == (None, None, None, None)
    login = SimpleNamespace(csrf="", caller=SimpleNamespace(sub="ida", tenant_id="lab", may=lambda _: True))
    services = services_on(redis)
    app = SimpleNamespace(state=SimpleNamespace(health=HealthWatch(services)))
    request: Any = SimpleNamespace(scope={"state": {"login": login}, "path": "/ui/health"}, app=app)
    page = bytes((await health(request, services, CALLER)).body).decode()
    assert page.count("Not known: a service above does not answer.") == 4
    assert "No fleet worker is running" not in page


async def test_the_history_is_noted_while_nobody_looks(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "EVERY", 0.01)
    watch = HealthWatch(services_on(redis))
    history = watch.of_tenant("lab")
    async with watch.watching():
        await wait_until(lambda: history.bars("Delivery", time.time()), "a look is noted")


async def test_the_history_of_the_latest_tenants_is_kept_and_always_that_of_its_own(redis: Redis) -> None:
    watch = HealthWatch(services_on(redis))
    own, first = watch.of_tenant("lab"), watch.of_tenant("tenant-0")
    for number in range(1, reports.MOST_WATCHED):
        watch.of_tenant(f"tenant-{number}")
    assert watch.of_tenant("lab") is own
    assert watch.of_tenant("tenant-0") is not first


async def test_looking_at_the_memory_embeds_nothing(redis: Redis) -> None:
    asked: list[str] = []

    async def search(_: str, query: MemoryQuery) -> None:
        asked.append(query.text)

    services = services_on(redis)
    services.memory = SimpleNamespace(search=search)
    await health_report(services, CALLER)
    assert asked == [""]


async def test_a_session_that_the_caller_may_not_see_is_counted_and_not_named(redis: Redis) -> None:
    async def none_may_be_read(_: Any, sources: Sequence[Any]) -> list[Access]:
        return [Access.DENIED for _ in sources]

    failing = {"summary": {"since": 1.0, "tries": 2, "reason": "away", "tokens": 0}}
    assert "monday" in repr(await reported(redis, failing=failing))
    services = services_on(redis)
    services.packages.viewer.access = none_may_be_read
    report = await health_report(services, CALLER)
    assert told(report, "Model")[0] == "bad"
    assert "monday" not in repr(report)


def test_the_history_shows_the_worst_of_each_bar_and_forgets_after_a_day() -> None:
    history = HealthHistory()
    for minute, (state, took) in enumerate((("good", 5.0), ("bad", 10.0), ("good", 0.0), ("warn", 2.5))):
        history.note(60.0 * minute, [Check("Redis", state, "", measured=took, unit="ms")])
    bars = history.bars("Redis", 200.0)
    assert [(one.place - bars[0].place, one.state, one.height) for one in bars] == [
        (0, "good", 0.5),
        (1, "bad", 1.0),
        (2, "good", 0.0),
        (3, "warn", 0.25),
    ]
    (bar,) = history.bars("Redis", 80_000.0)
    assert (bar.state, bar.most, bar.end - bar.begin) == ("bad", 10.0, 1800.0)
    history.note(90_000.0, [Check("Redis", "good", "")])
    assert [one.state for one in history.bars("Redis", 90_000.0)] == ["good"]
    assert history.bars("Memory", 0.0) == []


def test_many_looks_in_a_minute_take_the_room_of_one() -> None:
    history = HealthHistory()
    history.note(60.0, [Check("Redis", "bad", "", measured=5.0, unit="ms")])
    tracemalloc.start()
    for _ in range(5_000):
        history.note(61.0, [Check("Redis", "good", "", measured=1.0, unit="ms")])
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 50_000
    assert [(one.state, one.most) for one in history.bars("Redis", 62.0)] == [("bad", 5.0)]


async def test_a_look_that_fails_ends_neither_the_watch_nor_the_server(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "EVERY", 0.01)
    await redis.zadd(SESSIONS, {"monday": 1})
    looked_at = reports._looked_at

    async def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(reports, "_looked_at", fails)
    watch = HealthWatch(services_on(redis))
    history = watch.of_tenant("lab")
    with capture_logs() as logs:
        async with watch.watching():
            await wait_until(lambda: logs, "a look failed")
            monkeypatch.setattr(reports, "_looked_at", looked_at)
            await wait_until(lambda: history.bars("Delivery", time.time()), "a look is noted")


async def test_plain_text_analysis_that_stands_in_for_a_model_is_told(redis: Redis) -> None:
    both = {"summary": "gpt", "domains": "text", "keywords": "text"}
    found = "plain text analysis in 1 session"
    assert told(await reported(redis, analyst=both, has_model=True), "Model") == ("warn", found)
    assert told(await reported(redis, analyst=both), "Model")[0] == "good"
    failing = {"summary": {"since": 1.0, "tries": 2, "reason": "away", "tokens": 0}}
    report = await reported(redis, failing=failing)
    assert told(report, "Model") == ("bad", "nothing has come of it yet")
    model = next(one for one in report.checks if one.name == "Model")
    assert model.advice == ("summary fails in 1 session; open it to see why",)
    assert model.sessions == ("monday",)


async def test_what_waits_for_the_archive_and_what_it_refused_is_told(redis: Redis) -> None:
    assert told(await reported(redis), "Archive") == ("good", "every summary is in it")
    await redis.lpush(KEYS.outbox, b"1")  # type: ignore[misc]
    assert told(await reported(redis), "Archive") == ("good", "1 summary waits for it")
    await redis.delete(KEYS.outbox)
    await asyncio.gather(
        redis.lpush(KEYS.outbox, b"1", b"2"), redis.hset(KEYS.checkpoint, dead_count_field(RECEIVERS[0]), "3")
    )  # type: ignore[arg-type]
    assert told(await reported(redis), "Archive") == ("warn", "3 summaries were refused for good, 2 wait for it")


@pytest.mark.parametrize(
    "published",
    [
        {"cost": {"tasks": [1], "dollars": "much"}, "analyst": ["text"], "rolling_summary": 1},
        {"cost": {"tasks": {"summary": {"prompt_tokens": None, "completion_tokens": "7"}}}, "last_message_time": "now"},
        {"raw_recent_buffer": [{"buffer_entry_time": "noon", "speaker": None}, 7], "current_domains": "all"},
    ],
)
async def test_whatever_another_program_published_is_shown(redis: Redis, published: dict[str, Any]) -> None:
    await redis.set(KEYS.conversation, orjson.dumps({"last_message_time": "noon"}))
    assert (await reported(redis, **published)).costs is not None


def test_a_bar_names_the_unit_though_the_last_look_measured_nothing() -> None:
    history = HealthHistory()
    history.note(0.0, [Check("Redis", "good", "", measured=5.0, unit="ms")])
    history.note(40.0, [Check("Redis", "bad", "")])
    (bar,) = history.bars("Redis", 50.0)
    assert (bar.state, bar.most, bar.unit) == ("bad", 5.0, "ms")


async def test_dead_letters_of_a_session_that_is_seen_masked_are_counted_and_not_linked(redis: Redis) -> None:
    services = services_on(redis)

    async def masked(_: Any, sources: Sequence[Any]) -> list[Access]:
        return [Access.REDACTED for _ in sources]

    services.packages.viewer.access = masked
    await redis.zadd(SESSIONS, {"monday": 1})
    await redis.set(KEYS.owner, orjson.dumps({"token": 1, "host": "here", "pid": 1, "since": 1}))
    await redis.hset(KEYS.checkpoint, mapping={"head": orjson.dumps({"counters": {"dead_letters": 1}})})
    report = await health_report(services, CALLER)
    assert [(row.session_id, row.dead, row.is_masked) for row in report.dead or ()] == [("monday", 1, True)]
