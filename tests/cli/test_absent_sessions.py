"""What every command says of a session that is not there."""

from __future__ import annotations

import json
import time

import pytest
from redis import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.session.store.store import TOMBSTONE
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

TOLD = "context-builder: there is no session nosuch; `context-builder sessions` lists them\n"


@pytest.fixture
def store(redis_server: RedisServer, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Redis:
    """The Redis that the commands find through their settings, empty."""
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    monkeypatch.setenv("CONTEXT_BUILDER_DATABASE_URL", database_url)
    client = Redis.from_url(redis_server.url)
    client.flushall()
    return client


@pytest.mark.parametrize(
    "command",
    [
        "state nosuch",
        "state --conversation nosuch",
        "cost nosuch",
        "explain nosuch",
        "dead nosuch",
        "end nosuch",
        "forget --yes nosuch",
        "watch nosuch",
        "watch nosuch --svg /nowhere/nosuch.svg",
        "correct nosuch 5 Forty.",
        "strike nosuch 5 --yes",
        "rename-speaker nosuch Ida Ada",
    ],
)
def test_it_is_one_line_and_status_1(store: Redis, command: str) -> None:
    if command.startswith("forget"):
        CliRunner().invoke(app, ["migrate"])
    result = CliRunner().invoke(app, command.split(), catch_exceptions=False)
    assert (result.stderr, result.stdout, result.exit_code) == (TOLD, "", 1)


def test_a_session_that_was_forgotten_while_it_ran_is_not_there(store: Redis) -> None:
    store.set("context_builder:nosuch:owner", TOMBSTONE)
    assert CliRunner().invoke(app, ["dead", "nosuch"]).stderr == TOLD


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("state", "session nosuch has no state: it never ran, or its state has expired"),
        ("state --conversation", "session nosuch has no conversation state: nobody runs it"),
        ("cost", "session nosuch has cost nothing: it never ran"),
        ("explain", "nothing summarized yet"),
        ("dead", "Session nosuch has no dead letters."),
    ],
)
def test_one_that_was_only_spoken_to_is_there(store: Redis, command: str, told: str) -> None:
    store.lpush("context_builder:nosuch:input", b"{}")
    assert told in CliRunner().invoke(app, [*command.split(), "nosuch"], catch_exceptions=False).output


def test_nothing_is_deleted_where_nobody_can_be_asked(store: Redis) -> None:
    store.lpush("context_builder:nosuch:input", b"{}")
    result = CliRunner().invoke(app, ["forget", "nosuch"])
    assert "There is no terminal to ask on; add --yes to go ahead" in result.stderr
    assert result.exit_code == 1
    assert store.exists("context_builder:nosuch:input")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_list_of_sessions_fits_the_terminal(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("COLUMNS", str(columns))
    long = "a-very-long-session-identifier-of-a-listener-2026-11-26"
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
        for name in (long, "monday"):
            redis.lpush(f"context_builder:{name}:input", "{}")
    lines = CliRunner().invoke(app, ["sessions"]).output.splitlines()
    assert max(map(len, lines)) <= columns
    assert "…" not in "".join(lines)
    assert "1 unread" in next(line for line in lines if line.startswith("monday"))


@pytest.mark.parametrize(("columns", "most_lines"), [(60, 4), (80, 4), (200, 1)])
def test_an_id_of_the_greatest_length_takes_few_lines(
    store: Redis, monkeypatch: pytest.MonkeyPatch, columns: int, most_lines: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    store.lpush(f"context_builder:{'a' * 64}{'z' * 64}:input", "{}")
    done = CliRunner().invoke(app, ["sessions"])
    _, *lines = done.stdout.splitlines()
    assert len(lines) <= most_lines
    assert (lines[0][0], lines[-1][0]) == ("a", "z" if most_lines > 1 else "a")
    assert ("--json prints them whole" in done.stderr) == ("…" in done.stdout)


def test_in_a_pipe_each_session_is_one_line(store: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    store.lpush(f"context_builder:{'a' * 128}:input", "{}")
    _, *lines = CliRunner().invoke(app, ["sessions"]).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["a" * 128]


def test_the_list_says_which_sessions_sleep_and_of_which_the_summary_fails(store: Redis) -> None:
    failing = {"summary": {"since": 1.0, "tries": 3, "reason": "Incorrect API key provided.", "tokens": 0}}
    for name in ("asleep", "bad", "worse"):
        counters = {"received_messages": 1, "failing": {} if name == "asleep" else failing}
        store.hset(f"context_builder:{name}:checkpoint", "head", json.dumps({"counters": counters}))
        store.zadd("context_builder:sessions", {name: time.time()})
    store.zadd("context_builder_fleet:sleepers", {"asleep": time.time(), "bad": time.time()})
    for name in ("bad", "worse"):
        store.set(f"context_builder:{name}:owner", json.dumps({"host": "here", "pid": 1}))
    done = CliRunner().invoke(app, ["sessions"], env={"COLUMNS": "60"})
    told = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert " asleep " in told["asleep"]
    assert all(" summary fails " in told[name] for name in ("bad", "worse"))
    (why,) = done.stderr.splitlines()
    assert why in [f"session {one} and 1 more: summary fails: Incorrect API key provided" for one in ("bad", "worse")]


def test_the_list_tells_of_each_session_what_the_page_does(store: Redis) -> None:
    spoke = {"live": 1, "idle": 3600, "stopped": 3600, "ended": 3600}
    for name, seconds in spoke.items():
        counters = {"received_messages": 1, "ended_at": 1.0 if name == "ended" else None}
        store.hset(f"context_builder:{name}:checkpoint", "head", json.dumps({"counters": counters}))
        store.zadd("context_builder:sessions", {name: time.time() - seconds})
    for name in ("live", "idle"):
        store.set(f"context_builder:{name}:owner", json.dumps({"host": "here", "pid": 1}))
    _, *lines = CliRunner().invoke(app, ["sessions"]).stdout.splitlines()
    told = {line.split()[0]: line for line in lines}
    assert all(f" {name} " in told[name] for name in ("live", "idle", "ended"))
    assert " not running " in told["stopped"]
