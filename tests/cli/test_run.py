"""What goes on beside a session: it is watched, and ends with it."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest
import typer

from context_builder.cli.command import run
from context_builder.cli.run import banner, beside
from context_builder.cli.signals import within_grace
from context_builder.errors import SessionOwned, SettingError
from context_builder.wiring.part_description import PartDescription


def printed(memory: str) -> list[str]:
    """The banner of a session whose memory is described so."""
    parts = {
        "redis_is": PartDescription("Redis at cache:6379"),
        "model_is": PartDescription("gpt-4o", "set OPENAI_API_KEY"),
    }
    app = Mock(**parts, archive_is=PartDescription("PostgreSQL at db:5432"), memory_is=PartDescription(memory))
    return banner("monday", app).splitlines()


def test_the_banner_says_what_the_parts_are_and_how_memories_are_found() -> None:
    assert printed("PostgreSQL at db:5432, found by words alone") == [
        "context-builder · listeners push to context_builder:monday:input · Ctrl-C stops",
        "  Redis    Redis at cache:6379",
        "  Model    gpt-4o  (set OPENAI_API_KEY)",
        "  Archive  PostgreSQL at db:5432",
        "  Memory   found by words alone",
    ]
    assert printed("SomaBrain at soma:9696")[4:] == ["  Memory   SomaBrain at soma:9696"]


def test_a_line_below_the_redis_gives_what_listeners_need_to_log_in() -> None:
    app = Mock(**{f"{part}_is": PartDescription(part) for part in ("model", "archive", "memory")})
    app.redis_is = PartDescription(
        "embedded Redis at 127.0.0.1:6379", "set REDIS_URL for your own", "export REDIS_PASSWORD=…"
    )
    assert banner("monday", app).splitlines()[1:3] == [
        "  Redis    embedded Redis at 127.0.0.1:6379  (set REDIS_URL for your own)",
        "           listeners need: export REDIS_PASSWORD=…",
    ]


def test_an_error_of_one_of_several_tasks_is_told_as_any(capsys: pytest.CaptureFixture[str]) -> None:
    async def fails() -> None:
        raise SettingError("HTTP_PORT: is taken")

    async def work() -> None:
        async with asyncio.TaskGroup() as inner:
            inner.create_task(fails())

    with pytest.raises(typer.Exit) as ended:
        run(work())
    assert (ended.value.exit_code, capsys.readouterr().err) == (2, "context-builder: HTTP_PORT: is taken\n")


class AnalysisTask:
    """Goes on until it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = False

    async def go_on(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def failing() -> None:
    raise ZeroDivisionError


async def done() -> None:
    return None


async def test_what_goes_on_beside_is_cancelled_in_the_end() -> None:
    work = AnalysisTask()
    async with beside(work.go_on(), done()):
        await work.begun.wait()
    assert work.cancelled


async def test_work_that_is_done_ends_nothing() -> None:
    async with beside(done()):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        at_the_end = True
    assert at_the_end


@pytest.mark.timeout(10)
async def test_work_that_fails_ends_the_session_in_order_and_is_told() -> None:
    session, other = AnalysisTask(), AnalysisTask()
    with pytest.raises(ZeroDivisionError):
        async with beside(failing(), other.go_on()):
            await within_grace(session.go_on(), asyncio.Event())
    assert (session.cancelled, other.cancelled) == (True, True)


async def test_what_the_session_raises_comes_through_as_it_is() -> None:
    with pytest.raises(SessionOwned, match="run by"):
        async with beside(AnalysisTask().go_on()):
            raise SessionOwned("run by process 1")
