"""``record`` and ``replay-log`` as they are typed."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import orjson
import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner, Result

from context_builder.cli import app
from context_builder.recording.recording import Recording
from context_builder.session.keys import Keys
from tests.recording.witness import Recorded
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until
from tests.session.saying import raw, spoken

pytestmark = pytest.mark.engines

HOSTILE = "\x1b]0;owned\x07\x1b[2JKelp \x9b31mred"


async def invoke(*arguments: str | Path, **env: str) -> Result:
    """Run a command; it has a loop of its own, so in a thread."""
    settings = {"COLUMNS": "120", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": "", **env}
    return await asyncio.to_thread(CliRunner().invoke, app, [*map(str, arguments)], env=settings)


@pytest.fixture
async def recording(live: Recorded) -> Recording:
    """A message at second 0, a hostile one at second 60."""
    session = await live.start(buffer_max=100)
    await live.push(spoken(1, "Helicase unwinds the helix"))
    await live.until("it came", highest_message_number=1)
    live.clock.advance(60)
    await live.push(spoken(2, HOSTILE))
    await live.until("domains came", highest_message_number=2, current_keywords=["topic"])
    live.clock.advance(61)
    await live.until("the first is summarized", message_count=2)
    await live.stop(session)
    await live.writer.close()
    return Recording(live.path)


async def test_the_state_of_an_instant_can_be_read(recording: Recording) -> None:
    result = await invoke("replay-log", recording.path, "--at", "60")
    assert result.exit_code == 0
    assert "as published at 2023-11-14T" in result.output
    assert "Helicase unwinds the helix" in result.output
    assert "Kelp red" in result.output
    assert not {"\x1b", "\x07", "\x9b"} & set(result.output)


async def test_programs_get_the_state_as_it_was_published(recording: Recording, live: Recorded) -> None:
    result = await invoke("replay-log", recording.path, "--json")
    assert orjson.loads(result.stdout) == orjson.loads(live.states[-1][1])
    first = recording.header().at.iso()
    result = await invoke("replay-log", recording.path, "--json", "--at", first)
    assert orjson.loads(result.stdout)["highest_message_number"] == 1


async def test_a_wrong_time_or_file_is_told_in_one_line(recording: Recording, tmp_path: Path) -> None:
    wrong = await invoke("replay-log", recording.path, "--at", "yesterday")
    assert wrong.exit_code == 2
    assert "is not ISO 8601, seconds, or end" in wrong.output
    assert (await invoke("replay-log", recording.path, "--at", "-5")).exit_code == 1
    (tmp_path / "notes.txt").write_text("milk")
    result = await invoke("replay-log", tmp_path / "notes.txt")
    assert (result.exit_code, result.output.count("\n")) == (1, 1)


async def test_a_state_that_comes_out_otherwise_is_told(recording: Recording) -> None:
    lines = recording.path.read_bytes().replace(b"Helicase", b"Helikase")
    recording.path.write_bytes(lines)
    result = await invoke("replay-log", recording.path)
    assert "derives another state from the recording" in result.stderr


@pytest.mark.parametrize("asked_by", ["setting", "command", "command alone"])
async def test_a_run_is_recorded(redis: Redis, redis_server: RedisServer, tmp_path: Path, asked_by: str) -> None:
    path = tmp_path / "monday.jsonl"
    arguments = {
        "setting": ["run", "monday"],
        "command": ["record", "monday", str(path)],
        "command alone": ["record", "monday"],
    }[asked_by]
    settings = {"redis_url": redis_server.url, "database_url": "postgresql://nobody@127.0.0.1:1/none"}
    settings |= {"record_dir": str(tmp_path)} if asked_by == "setting" else {}
    with Daemon(tmp_path, *arguments, **settings) as daemon:
        await redis.lpush("context_builder:monday:input", raw(spoken(1)))
        await wait_until(lambda: redis.exists("context_builder:monday:seen"), "it is taken in")
        await asyncio.to_thread(daemon.stop, signal.SIGINT)
        assert f"Recorded {path.name if asked_by == 'command alone' else path}" in daemon.output
    published = orjson.loads(await redis.get("context_builder:monday:state") or b"{}")
    result = await invoke("replay-log", path, "--json")
    assert orjson.loads(result.stdout) == published


async def test_forgetting_a_session_deletes_its_recording(
    recording: Recording, redis_server: RedisServer, migrated_url: str
) -> None:
    env = {
        "CONTEXT_BUILDER_REDIS_URL": redis_server.url,
        "DATABASE_URL": migrated_url,
        "RECORD_DIR": str(recording.path.parent),
    }
    await invoke("forget", "monday", "--yes", **env)
    assert not recording.path.exists()


async def test_while_the_archive_is_away_nothing_of_a_session_is_forgotten(
    recording: Recording, redis_server: RedisServer, redis: Redis
) -> None:
    await redis.set(Keys("monday").state, b"{}")
    env = {
        "CONTEXT_BUILDER_REDIS_URL": redis_server.url,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "RECORD_DIR": str(recording.path.parent),
    }
    await invoke("forget", "monday", "--yes", **env)
    assert recording.path.exists()
    assert await redis.exists(Keys("monday").state)
