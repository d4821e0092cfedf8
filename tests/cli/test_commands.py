"""The commands as they are typed, against a real Redis."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
from redis import Redis
from typer.testing import CliRunner, Result

from context_builder.cli.replay import replay_command
from context_builder.cli.send import send
from context_builder.cli.state import state
from context_builder.cli.watch import watch
from tests.cli.samples import sample_conversation, sample_state
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

app = typer.Typer()
for name, command in (("replay", replay_command), ("send", send), ("state", state), ("watch", watch)):
    app.command(name)(command)


@pytest.fixture
def store(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Redis:
    """The Redis that the commands find through their settings, empty."""
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    client = Redis.from_url(redis_server.url)
    client.flushall()
    return client


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "100"}, catch_exceptions=False)


def queued(store: Redis) -> list[dict[str, Any]]:
    waiting: Any = store.lrange("context_builder:monday:input", 0, -1)
    return [orjson.loads(raw) for raw in reversed(waiting)]


def test_send_and_replay_share_one_numbering(store: Redis, tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nIda: Hello\n", encoding="utf-8")
    assert "sent as message 1;" in invoke("send", "monday", "Hi", "--speaker", "Alice").output
    replayed = invoke("replay", str(tmp_path / "talk.srt"), "monday", "--speed", "0")
    assert "1 of 1 pushed to monday" in replayed.output
    assert "sent as Consilience" in invoke("send", "monday", "From Law", "--consilience").output
    assert [(m["speaker"], m["text"]) for m in queued(store)] == [
        ("Alice", "Hi"),
        ("Ida", "Hello"),
        ("Consilience", "From Law"),
    ]
    assert [m["message_number"] for m in queued(store)][:2] == [1, 2]


def test_state_is_for_people_or_for_programs(store: Redis) -> None:
    store.set("context_builder:monday:state", orjson.dumps(sample_state(session_id="monday")))
    store.set("conversation_state:monday", orjson.dumps(sample_conversation()))
    assert orjson.loads(invoke("state", "monday", "--json").output) == sample_state(session_id="monday")
    assert orjson.loads(invoke("state", "monday", "--json", "--conversation").output) == sample_conversation()
    assert "✓ decision" in invoke("state", "monday").output
    assert "✓ decision" not in invoke("state", "monday", "--conversation").output


def test_without_a_terminal_watch_shows_the_session_once(store: Redis) -> None:
    store.set("context_builder:monday:state", orjson.dumps(sample_state()))
    result = invoke("watch", "monday")
    assert result.exit_code == 0
    assert "Barnacle" in result.output


def test_watch_makes_a_picture(store: Redis, tmp_path: Path) -> None:
    store.set("context_builder:monday:state", orjson.dumps(sample_state()))
    assert "written to" in invoke("watch", "monday", "--svg", str(tmp_path / "a.svg")).output
    assert "Barnacle" in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "told", "status"),
    [
        (("state", "monday"), "context-builder: there is no session monday; `context-builder sessions` lists them", 1),
        (("state", "a b"), "context-builder: session id 'a b': use 1 to 128 letters", 1),
        (("replay", "none.srt", "monday"), "context-builder: none.srt: there is no such file", 1),
        (("replay", "none", "monday"), "context-builder: none: there is no such file", 1),
    ],
)
def test_what_is_wrong_is_one_line_and_a_status(
    store: Redis, arguments: tuple[str, ...], told: str, status: int
) -> None:
    result = invoke(*arguments)
    assert result.stderr.startswith(told)
    assert result.stderr.count("\n") == 1
    assert result.exit_code == status


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"text": "one"}\n\n{"text": \n', ":3: not JSON: "),
        ('{"text": "one"}\n{"speaker": "A"}\n', ':2: no "text"'),
        ("", ": holds nothing that anybody said"),
    ],
)
def test_a_transcript_that_cannot_be_read_is_named_with_the_line_and_nothing_is_pushed(
    store: Redis, tmp_path: Path, content: str, told: str
) -> None:
    (tmp_path / "talk.jsonl").write_text(content)
    result = invoke("replay", str(tmp_path / "talk.jsonl"), "monday", "--speed", "0", "--strict")
    assert result.stderr.startswith(f"context-builder: {tmp_path / 'talk.jsonl'}{told}")
    assert (result.stderr.count("\n"), result.exit_code, queued(store)) == (1, 1, [])


def test_what_cannot_be_read_is_named_and_the_rest_is_pushed(store: Redis, tmp_path: Path) -> None:
    lines = '{"text": "one", "timestamp": "2023-05-03T09:00:00Z"}\n{"speaker": "A"}\n{"text": "two"}\n'
    (tmp_path / "talk.jsonl").write_text(lines)
    result = invoke("replay", str(tmp_path / "talk.jsonl"), "monday", "--speed", "0")
    assert result.stderr == f'not read: {tmp_path / "talk.jsonl"}:2: no "text"\n'
    assert [message["text"] for message in queued(store)] == ["one", "two"]
    assert queued(store)[0]["timestamp"] == "2023-05-03T09:00:00+00:00"


def test_a_recording_without_dates_is_of_the_moment_that_is_told(store: Redis, tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text("1\n00:00:05,000 --> 00:00:06,000\none\n")
    replay = ("replay", str(tmp_path / "talk.srt"), "monday", "--speed", "0")
    assert "has no dates, so it counts as said now" in invoke(*replay).stderr
    assert invoke(*replay, "--started-at", "2023-05-03T09:00Z").stderr == ""
    assert queued(store)[-1]["timestamp"] == "2023-05-03T09:00:05+00:00"
    assert invoke(*replay, "--as-now").stderr == ""
    assert not queued(store)[-1]["timestamp"].startswith("2023")
    assert invoke(*replay, "--as-now", "--started-at", "2023-05-03").exit_code == 2
    assert "is not ISO 8601" in invoke(*replay, "--started-at", "soon").stderr


def test_a_replay_may_leave_out_the_beginning(store: Redis, tmp_path: Path) -> None:
    (tmp_path / "talk.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    replay = ("replay", str(tmp_path / "talk.jsonl"), "monday", "--speed", "0", "--as-now", "--skip")
    assert invoke(*replay, "1").output == "2 of 2 messages pushed\n2 of 2 pushed to monday\n"
    assert [message["text"] for message in queued(store)] == ["two"]
    assert "has 2 messages only" in " ".join(invoke(*replay, "2").output.replace("│", " ").split())


def test_a_wrong_setting_ends_with_status_2(store: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BUILDER_POLL_INTERVAL", "often")
    result = invoke("state", "monday")
    assert result.stderr.startswith("context-builder: CONTEXT_BUILDER_POLL_INTERVAL: ")
    assert result.exit_code == 2


def test_ctrl_c_is_an_orderly_end(store: Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(_: asyncio.Runner, work: Any) -> None:
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio.Runner, "run", interrupted)
    assert invoke("watch", "monday").exit_code == 0
    assert invoke("replay", str(tmp_path / "talk.srt"), "monday").exit_code == 130
