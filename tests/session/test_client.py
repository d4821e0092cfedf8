"""A program outside, on a real Redis."""

from __future__ import annotations

from datetime import datetime

import orjson
import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from context_builder.errors import SessionIdError, StoreError, StoreUnavailable
from context_builder.session.client import SessionClient, contributed, spoken

pytestmark = pytest.mark.engines

AT = datetime(2025, 10, 2, 10, 30, 45, 123456)
INPUT = "context_builder:monday:input"


@pytest.fixture
def client(redis: Redis) -> SessionClient:
    return SessionClient(redis, "monday")


async def test_the_first_message_pushed_is_the_oldest(client: SessionClient, redis: Redis) -> None:
    await client.push({"text": "first"}, {"text": "second"})
    await client.push({"text": "third"})
    queued = await redis.lrange(INPUT, 0, -1)
    assert [orjson.loads(raw)["text"] for raw in reversed(queued)] == ["first", "second", "third"]
    assert await client.waiting() == 3


async def test_pushing_nothing_does_nothing(client: SessionClient) -> None:
    await client.push()
    assert await client.waiting() == 0


async def test_a_session_that_never_ran_shows_nothing(client: SessionClient) -> None:
    snapshot = await client.snapshot()
    assert (snapshot.state, snapshot.conversation, snapshot.owner, snapshot.waiting) == (None, None, None, 0)
    assert await client.state() is None
    assert await client.conversation_state() is None
    assert await client.owner() is None


async def test_a_snapshot_holds_everything_published(client: SessionClient, redis: Redis) -> None:
    await redis.set("context_builder:monday:state", b'{"revision": 3}')
    await redis.set("conversation_state:monday", b'{"silence": true}')
    await redis.set("context_builder:monday:owner", b'{"token": 7, "host": "here", "pid": 1, "since": 2.0}')
    await client.push({"text": "waits"})
    snapshot = await client.snapshot()
    assert snapshot.state == {"revision": 3} == await client.state()
    assert snapshot.conversation == {"silence": True} == await client.conversation_state()
    assert snapshot.owner == await client.owner()
    assert snapshot.waiting == 1


async def test_a_fresh_session_is_numbered_from_one(client: SessionClient) -> None:
    assert await client.next_number() == 1


async def test_numbering_goes_on_from_the_state(client: SessionClient, redis: Redis) -> None:
    await redis.set("context_builder:monday:state", b'{"highest_message_number": 41}')
    assert await client.next_number() == 42


async def test_numbering_goes_on_from_the_checkpoint_when_the_state_has_expired(
    client: SessionClient, redis: Redis
) -> None:
    await redis.hset("context_builder:monday:checkpoint", "head", b'{"highest_message_number": 17}')
    assert await client.next_number() == 18


async def test_numbers_still_in_the_queue_count_but_not_the_assistants(client: SessionClient, redis: Redis) -> None:
    await redis.lpush(INPUT, b"not json", b"[]", b'{"message_number": "12"}')
    await client.push(spoken("monday", 5, "Alice", "five", AT), contributed("From a Biology perspective", AT))
    assert await client.next_number() == 6


async def test_messages_are_what_listener_and_orchestrator_send() -> None:
    assert spoken("monday", 42, "Speaker_0", "How?", AT) == {
        "session_id": "monday",
        "speaker": "Speaker_0",
        "text": "How?",
        "timestamp": "2025-10-02T10:30:45.123456",
        "confidence": 1.0,
        "message_number": 42,
        "_score": 42.0,
    }
    assistant = contributed("From Biology", AT, {"priority": "P0"})
    assert assistant["message_number"] == int(AT.timestamp() * 1000)
    assert (assistant["speaker"], assistant["type"]) == ("Consilience", "consilience")
    assert assistant["metadata"] == {"priority": "P0"}


async def test_an_id_that_could_reach_another_session_is_refused(redis: Redis) -> None:
    with pytest.raises(SessionIdError, match="use 1 to 128"):
        SessionClient(redis, "a b")


async def test_a_key_that_holds_no_json_object_is_named(client: SessionClient, redis: Redis) -> None:
    await redis.set("context_builder:monday:state", b"{")
    with pytest.raises(StoreError, match="context_builder:monday:state: not JSON"):
        await client.state()
    await redis.set("context_builder:monday:state", b"[]")
    with pytest.raises(StoreError, match="not a JSON object"):
        await client.snapshot()


async def test_a_redis_that_does_not_answer_is_our_error() -> None:
    async with Redis(host="127.0.0.1", port=1, retry=Retry(NoBackoff(), 0)) as nobody:
        client = SessionClient(nobody, "monday")
        for call in (client.snapshot, client.state, client.waiting, client.next_number):
            with pytest.raises(StoreUnavailable, match="Redis"):
                await call()
        with pytest.raises(StoreUnavailable):
            await client.push({"text": "lost?"})
