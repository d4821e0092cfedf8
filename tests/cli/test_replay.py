"""Replaying a transcript into the queue of a real Redis."""

from __future__ import annotations

import asyncio
import io
import shlex
import signal
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from rich.console import Console

from context_builder.cli.replay import moments, progress, replay, schedule
from context_builder.session.client import SessionClient
from context_builder.transcript import Transcript, Utterance
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture
def client(redis: Redis) -> SessionClient:
    return SessionClient(redis, "monday")


async def queued(redis: Redis) -> list[dict[str, Any]]:
    """What waits in the session's queue, oldest first."""
    return [orjson.loads(raw) for raw in reversed(await redis.lrange("context_builder:monday:input", 0, -1))]


def talk(count: int, apart: float = 1.0) -> list[Utterance]:
    return [Utterance(f"Speaker_{i % 3}", f"message {i}", i * apart) for i in range(count)]


async def test_messages_arrive_in_order_as_a_listener_numbers_them(client: SessionClient, redis: Redis) -> None:
    assert await replay(client, talk(1200), speed=0) == 1200
    messages = await queued(redis)
    assert [message["message_number"] for message in messages] == list(range(1, 1201))
    assert [message["text"] for message in messages] == [f"message {i}" for i in range(1200)]
    assert set(messages[0]) == {
        "session_id", "speaker", "text", "timestamp", "confidence", "message_number", "_score"
    }  # fmt: skip
    assert datetime.fromisoformat(messages[0]["timestamp"]).tzinfo is None


def test_times_are_the_files_own_and_what_has_none_was_said_when_the_one_before_had_been() -> None:
    started = datetime.fromisoformat("2023-05-03T09:00:00+02:00")
    said = [Utterance("A", "x" * 30, 10.0), Utterance("B", "y"), Utterance("A", "z", 60.0)]
    told = moments(Transcript(said, started))
    assert told is not None
    assert [one.isoformat() for one in told] == [
        "2023-05-03T09:00:10+02:00", "2023-05-03T09:00:12+02:00", "2023-05-03T09:01:00+02:00",
    ]  # fmt: skip
    assert moments(Transcript(said)) is None


async def test_the_messages_bear_the_times_at_which_they_were_said(client: SessionClient, redis: Redis) -> None:
    started = datetime.fromisoformat("2023-05-03T09:00:00+02:00")
    said = [Utterance("A", "one", 0.0), Utterance("Consilience", "two", 5.0, {})]
    await replay(client, said, said_at=moments(Transcript(said, started)), speed=0)
    first, second = await queued(redis)
    assert first["timestamp"] == "2023-05-03T09:00:00+02:00"
    assert (second["timestamp"], second["message_number"]) == ("2023-05-03T09:00:05+02:00", 1_683_097_205_000)


async def test_a_second_replay_continues_the_numbering(client: SessionClient, redis: Redis) -> None:
    await replay(client, talk(3), speed=0)
    await replay(client, talk(2), speed=0)
    assert [message["message_number"] for message in await queued(redis)] == [1, 2, 3, 4, 5]


async def test_the_assistants_contributions_take_no_number_of_the_listeners(
    client: SessionClient, redis: Redis
) -> None:
    utterances = [
        Utterance("A", "one"),
        Utterance("Consilience", "From Law", None, {"priority": "P0"}),
        Utterance("B", "two"),
    ]
    await replay(client, utterances, speed=0)
    first, assistant, second = await queued(redis)
    assert (first["message_number"], second["message_number"]) == (1, 2)
    assert assistant["message_number"] > 10**12
    assert (assistant["type"], assistant["metadata"]) == ("consilience", {"priority": "P0"})


async def test_distances_in_time_are_kept_divided_by_the_speed(client: SessionClient, redis: Redis) -> None:
    clock = asyncio.get_running_loop().time
    arrivals: list[float] = []
    start = clock()
    await replay(client, talk(4), speed=20, on_progress=lambda done, of: arrivals.append(clock() - start))
    assert len(arrivals) == 4
    assert all(at >= due - 0.002 for at, due in zip(arrivals, (0.0, 0.05, 0.1, 0.15), strict=True))


async def test_a_stop_ends_it_between_two_messages(client: SessionClient, redis: Redis) -> None:
    stop = asyncio.Event()
    pushed = await replay(client, talk(3, apart=3600), speed=1, on_progress=lambda done, of: stop.set(), stop=stop)
    assert pushed == 1 == len(await queued(redis))


async def test_cancellation_leaves_what_was_pushed(client: SessionClient, redis: Redis) -> None:
    task = asyncio.create_task(replay(client, talk(3, apart=3600), speed=1))
    await wait_until(client.waiting, "the first message is pushed")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await queued(redis)) == 1


def test_what_has_no_time_comes_when_the_one_before_has_been_spoken() -> None:
    assert schedule([Utterance("A", "x" * 30), Utterance("A", "y" * 15), Utterance("B", "z")]) == [0.0, 2.0, 3.0]


def test_time_counts_from_the_first_and_never_goes_back() -> None:
    times = [100.0, 101.5, 101.0, None, 140.0]
    due = schedule([Utterance("A", "x" * 15, at) for at in times])
    assert due == [0.0, 1.5, 1.5, 2.5, 40.0]
    assert schedule([]) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_sees_a_bar_and_a_log_sees_lines(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with progress(console, 40) as tell:
        for done in range(1, 41):
            tell(done, 40)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert ("40/40" in written, "\x1b" in written) == (terminal, terminal)
    if not terminal:
        assert len(written.splitlines()) == 10
        assert written.splitlines()[-1] == "40 of 40 messages pushed"


async def test_ctrl_c_says_how_far_it_came_and_what_it_says_goes_on(
    redis: Redis, redis_server: RedisServer, tmp_path: Path
) -> None:
    lines = [orjson.dumps({"speaker": "A", "text": f"message {i}", "t_est": 0 if i < 3 else 60}) for i in range(5)]
    (tmp_path / "my talk.jsonl").write_bytes(b"\n".join(lines))
    with Daemon(tmp_path, "replay", "my talk.jsonl", "monday", "--speed", "2", redis_url=redis_server.url) as replaying:
        await wait_until(lambda: "messages pushed" in replaying.output, "it begins")
        status = replaying.stop(signal.SIGINT)
        told = replaying.output.splitlines()
    assert status == 130
    assert "3 of 5 pushed to monday" in told
    again = "context-builder replay 'my talk.jsonl' monday --speed=2 --skip=3"
    assert f"To go on from there: {again}" in told
    assert "Traceback" not in "".join(told)
    with Daemon(tmp_path, *shlex.split(again)[1:], redis_url=redis_server.url) as going_on:
        assert going_on.wait() == 0
        assert going_on.output.splitlines()[-1] == "5 of 5 pushed to monday"
    assert [message["text"] for message in await queued(redis)] == [f"message {i}" for i in range(5)]
    assert [message["message_number"] for message in await queued(redis)] == [1, 2, 3, 4, 5]
