"""Replaying a transcript into the queue of a real Redis."""

from __future__ import annotations

import asyncio
import io
from datetime import datetime
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis
from rich.console import Console

from context_builder.cli.replay import _lines, _with_bar, replay, schedule
from context_builder.client import SessionClient
from context_builder.transcript import Utterance
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


async def test_a_terminal_sees_a_bar_and_a_log_sees_lines(client: SessionClient) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    assert await _with_bar(client, talk(5), 0, terminal) == 5
    assert "5/5" in terminal.file.getvalue()  # type: ignore[attr-defined]
    log = Console(file=io.StringIO(), width=100)
    tell = _lines(log)
    for done in range(1, 41):
        tell(done, 40)
    lines = log.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(lines) == 10
    assert lines[-1] == "40 of 40 messages pushed"
