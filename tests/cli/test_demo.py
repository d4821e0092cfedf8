"""The bundled conversation, played into a session that somebody runs."""

from __future__ import annotations

import asyncio
import io
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import typer
from redis.asyncio import Redis
from rich.console import Console
from typer.testing import CliRunner

from context_builder.cli.demo import DemoSighting, closing, demo, play
from context_builder.database.migrations import apply as migrate
from context_builder.demo import load_demo
from context_builder.session.client import SessionClient
from tests.cli.publishing import publish
from tests.cli.samples import ECOLOGY, ROBOTICS, sample, sample_state
from tests.services.postgres_server import PostgresServer
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE

pytestmark = pytest.mark.engines

SPEED = 600.0


def test_the_conversation_is_what_the_demo_needs() -> None:
    said = load_demo()
    assert 75 <= len(said) <= 95
    assert {u.speaker for u in said} == {"Ines", "Kai", "Tomasz", "Jonas", "Amara", "Consilience"}
    times = [u.at for u in said if u.at is not None]
    assert len(times) == len(said)
    assert times == sorted(times)
    assert 420 <= times[-1] <= 500
    contributions = [u.contribution for u in said if u.contribution is not None]
    assert len(contributions) == 3
    assert all({"trigger_type", "priority", "domains", "issue_description"} <= set(c) for c in contributions)


@asynccontextmanager
async def running(redis: Redis) -> AsyncIterator[None]:
    """A session that takes everything in at once and has it summarized."""

    async def take_in() -> None:
        taken = 0
        while True:
            taken += len(await redis.rpop("context_builder:point-arlen:input", 1000) or ())
            domains = [ECOLOGY] if taken < 50 else [ROBOTICS]
            changes = {"raw_recent_buffer": [], "received_messages": taken, "current_domains": domains}
            await publish(redis, sample(state=sample_state(**changes)))
            await asyncio.sleep(0.02)

    task = asyncio.create_task(take_in())
    try:
        yield
    finally:
        task.cancel()


async def test_without_a_terminal_it_tells_in_lines_that_are_not_broken(redis: Redis) -> None:
    console, stop = Console(file=io.StringIO(), width=20), asyncio.Event()
    async with running(redis):
        seen = await play(SessionClient(redis, "point-arlen"), stop=stop, console=console, speed=SPEED)
    text = written(console)
    assert "3 summaries, about: Ecology" in text
    assert "3 summaries, about: Robotics" in text
    assert list(seen.domains) == [ECOLOGY, ROBOTICS]
    assert stop.is_set()


async def test_in_a_terminal_it_shows_the_live_view_and_gives_the_screen_back(redis: Redis) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=30)
    async with running(redis):
        await play(SessionClient(redis, "point-arlen"), stop=asyncio.Event(), console=console, speed=SPEED)
    assert "memory" in written(console)
    assert written(console).endswith("\x1b[?25h\x1b[?1049l")


async def test_a_stop_ends_it_early(redis: Redis) -> None:
    console, stop = Console(file=io.StringIO(), width=110), asyncio.Event()
    asyncio.get_running_loop().call_later(0.1, stop.set)
    async with asyncio.timeout(PATIENCE):
        await play(SessionClient(redis, "point-arlen"), stop=stop, console=console, speed=1)


def test_the_closing_words_tell_what_happened_and_what_to_try() -> None:
    seen = DemoSighting("point-arlen")
    seen.look(sample())
    console = Console(file=io.StringIO(), width=110)
    console.print(closing(seen, "PostgreSQL at localhost"))
    for expected in (
        "43 heard, 29 summarized in 7 points",
        "3, kept in PostgreSQL at localhost",
        "Machine Learning, Ecology, Mathematics",
        "✓ decision",
        "context-builder state point-arlen",
        "context-builder build point-arlen -q permit",
        "context-builder forget point-arlen",
    ):
        assert expected in written(console)


@pytest.mark.parametrize("is_active", [True, False])
def test_the_closing_words_are_whole_commands_for_a_shell_without_the_environment(
    is_active: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my venv"))
    monkeypatch.chdir(tmp_path)
    if is_active:
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "my venv"))
    else:
        monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    seen = DemoSighting("point-arlen")
    seen.look(sample())
    console = Console(file=io.StringIO(), width=70)
    console.print(closing(seen, "PostgreSQL"))
    assert "context-builder build point-arlen -q permit " in written(console)
    assert (". 'my venv/bin/activate' " in written(console)) is not is_active


def written(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.slow
def test_the_whole_command_runs_a_real_session_and_archives_it(
    redis_server: RedisServer, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    monkeypatch.setenv("CONTEXT_BUILDER_DATABASE_URL", postgres_server.url)
    monkeypatch.setattr("context_builder.cli.demo.WINDOW", 2.0)  # after which what was said is summarized
    asyncio.run(migrate(postgres_server.url))
    app = typer.Typer()
    app.command()(demo)
    result = CliRunner().invoke(app, ["--speed", "200"], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"{len(load_demo())} heard, {len(load_demo())} summarized" in result.output
    assert "kept in PostgreSQL" in result.output
    package = result.output.partition("A package of context")[2].partition("That was the demo.")[0]
    first = package.partition("score")[2].strip()
    assert first.startswith("Permits for instruments"), package  # it answers the question
    assert re.search("acoustic beacons|The beacons|protected area|visual tags", package), package  # what was said
    assert "tokens; 0 denied" in package
