"""Whatever others write into a session's keys, no command lets it act on the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from redis import Redis
from typer.testing import CliRunner

from context_builder.analysis.analyst import PointKind
from context_builder.cli import app
from context_builder.session.store.dead_letters import DeadLetter
from context_builder.session.summary.citation import CitedMessage
from context_builder.session.summary.point import Point, PointQuote
from context_builder.testing import ManualClock
from tests.cli.samples import sample_conversation, sample_state
from tests.services.redis_server import RedisServer
from tests.session.conversation.test_state import lively, written

pytestmark = pytest.mark.engines

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mKelp\x9b2J\x9d0;x\x9c\x7f\r\x08\u202e\u2066\u0085\u2028[red]x[/red]"

OUR_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def poisoned(value: Any) -> Any:
    """The same with every text, names of fields aside, made hostile; what readers choose by is left."""
    match value:
        case str():
            return HOSTILE + value
        case list():
            return [poisoned(item) for item in value]
        case dict():
            kept = {"timestamp", "kind", "type", "time_range_start", "time_range_end"}
            return {name: item if name in kept else poisoned(item) for name, item in value.items()}
    return value


def cost(name: str) -> Mapping[str, Any]:
    task = {"calls": 1, "prompt_tokens": 1, "cached_tokens": 0, "completion_tokens": 1, "dollars": 0.1}
    return {"dollars": 0.1, "unpriced": [name], "tasks": {name: task}, "history": None}


@pytest.fixture(autouse=True)
def store(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Redis:
    """The Redis that the commands find through their settings, with a session that is hostile throughout."""
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    client = Redis.from_url(redis_server.url)
    client.flushall()
    state = sample_state()
    source = CitedMessage(1, 1, HOSTILE, HOSTILE, HOSTILE, consilience=False, clipped=False)
    point = Point(1, HOSTILE, PointKind.CLAIM, (HOSTILE,), (PointQuote(1, 1, HOSTILE, HOSTILE),), 1.0)
    summary = orjson.loads(written(lively(ManualClock()))["summary"]) | {
        "points": [point.wire()],
        "seq": 1,
        "message_count": 1,
    }
    head = {"counters": {"received_messages": 1, "dead_letters": 1, "ended_at": None, "cost": cost(HOSTILE)}}
    prefix = "context_builder:monday"
    client.set(f"{prefix}:state", orjson.dumps(poisoned(state) | {"cost": cost(HOSTILE)}))
    client.set("conversation_state:monday", orjson.dumps(poisoned(sample_conversation())))
    client.set(f"{prefix}:owner", orjson.dumps({"token": 1, "host": HOSTILE, "pid": HOSTILE}))
    client.hset(f"{prefix}:checkpoint", mapping={"head": orjson.dumps(head), "summary": orjson.dumps(summary)})
    client.hset(f"{prefix}:checkpoint", "s:1", source.encode())
    client.zadd("context_builder:sessions", {"monday": 1.0})
    raw = HOSTILE.encode()
    client.lpush(f"{prefix}:dead", DeadLetter(HOSTILE, 1.0, raw, len(raw)).encode())
    return client


@pytest.mark.parametrize("coloured", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        *("sessions", "state monday", "state monday --conversation", "watch monday", "cost monday", "explain monday"),
        *("dead monday", "dead monday show 1"),
        *("sessions --json", "state monday --json", "state monday --json --conversation", "cost monday --json"),
        *("explain monday --json", "dead monday --json"),
    ],
)
def test_only_what_can_be_seen_is_printed(command: str, coloured: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if coloured:
        monkeypatch.setenv("FORCE_COLOR", "1")
    result = CliRunner().invoke(app, command.split(), env={"COLUMNS": "150", "LINES": "40"}, catch_exceptions=False)
    assert result.exit_code == 0
    assert result.output
    assert [char for char in OUR_COLOURS.sub("", result.output) if not char.isprintable() and char != "\n"] == []


def test_a_colour_that_somebody_wrote_is_not_taken_for_ours() -> None:
    output = CliRunner().invoke(app, ["state", "monday"]).output
    assert "Kelp" in output
    assert "\x1b" not in output


@pytest.mark.parametrize("field", ["current_keywords", "current_domains"])
def test_programs_get_the_texts_as_they_are(field: str) -> None:
    state = orjson.loads(CliRunner().invoke(app, ["state", "monday", "--json"]).stdout)
    assert state[field][0].startswith(HOSTILE)
