"""Saying one thing, and reading what is published."""

from __future__ import annotations

import io

import orjson
import pytest
from redis.asyncio import Redis
from rich.console import Console

from context_builder.cli.send import say
from context_builder.cli.state import overview, published
from context_builder.errors import StoreError
from context_builder.session.client import SessionClient, Snapshot
from tests.cli.publishing import publish
from tests.cli.samples import NOW, sample, sample_conversation, sample_state

pytestmark = pytest.mark.engines


@pytest.fixture
def client(redis: Redis) -> SessionClient:
    return SessionClient(redis, "point-arlen")


def shown(snapshot: Snapshot, *, width: int = 100, conversation: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(overview(snapshot, NOW, width, conversation=conversation))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


async def test_a_message_goes_on_with_the_numbering(client: SessionClient, redis: Redis) -> None:
    await publish(redis, sample())
    assert await say(client, "Hello", "Alice") == "sent as message 43"
    [raw] = await redis.lrange("context_builder:point-arlen:input", 0, -1)
    sent = orjson.loads(raw)
    assert (sent["speaker"], sent["text"], sent["message_number"]) == ("Alice", "Hello", 43)


async def test_a_contribution_is_the_assistants(client: SessionClient, redis: Redis) -> None:
    await publish(redis, sample())
    assert await say(client, "From Law", None) == "sent as Consilience"
    [raw] = await redis.lrange("context_builder:point-arlen:input", 0, -1)
    sent = orjson.loads(raw)
    assert (sent["speaker"], sent["type"]) == ("Consilience", "consilience")


async def test_a_message_to_a_session_that_nobody_runs_says_how_to_run_it(client: SessionClient) -> None:
    assert await say(client, "Hello", "Alice") == (
        "sent as message 1; nobody runs point-arlen now, it waits for: context-builder run point-arlen"
    )


async def test_the_json_is_what_is_published(client: SessionClient, redis: Redis) -> None:
    await publish(redis, sample())
    assert await published(client, conversation=False) == sample_state()
    assert await published(client, conversation=True) == sample_conversation()


async def test_where_nothing_is_published_it_says_so(client: SessionClient) -> None:
    for conversation, told in ((False, "has no state: it never ran"), (True, "nobody runs it")):
        with pytest.raises(StoreError, match=told):
            await published(client, conversation=conversation)
        with pytest.raises(StoreError, match=told):
            shown(Snapshot("point-arlen"), conversation=conversation)


def test_people_read_all_points_and_the_newest_messages() -> None:
    text = shown(sample())
    for expected in ("point-arlen", "88%", "✓ decision", "Kelp canopy", "14 in the buffer", "Barnacle", "messages 43"):
        assert expected in text
    assert "dead letters 0" in shown(sample(), width=80)
    assert "Kelp canopy" not in shown(sample(), conversation=True)
    assert "speaking" in shown(sample(), conversation=True)
