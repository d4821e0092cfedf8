"""SomaBrain is asked as documented, again when it fails, and left alone when it keeps failing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from context_builder.errors import DatabaseRejected, DatabaseUnavailable, DataRejected
from context_builder.memory import somabrain as module
from context_builder.memory.options import SomaBrainOptions
from context_builder.memory.somabrain import SomaBrainClient
from context_builder.testing import ManualClock
from tests.services.somabrain import SomaBrainServer

EVALUATE = {"tenant_id": "tenant-123", "session_id": "session-456", "query": "stored memory", "top_k": 8}
REMEMBER = {
    "tenant_id": "tenant-123",
    "memories": [
        {
            "type": "session_summary",
            "text": "user: Hello | assistant: a stored memory",
            "session_id": "session-456",
            "persona_id": "agent_0",
            "tags": ["session_summary", "auto", "context_builder"],
            "metadata": {"trimmed_from": 20, "trimmed_to": 10, "timestamp": "2025-12-10T12:00:00Z"},
        }
    ],
}


@pytest.fixture
async def client(somabrain: SomaBrainServer) -> AsyncIterator[SomaBrainClient]:
    client = SomaBrainClient(SomaBrainOptions(somabrain.url, timeout=0.5, retry_base_ms=1, namespace="universe"))
    yield client
    await client.close()


async def test_what_is_remembered_is_found_as_documented(client: SomaBrainClient, somabrain: SomaBrainServer) -> None:
    await client.remember_batch(REMEMBER)
    answer = await client.context_evaluate(EVALUATE)
    assert answer["candidates"] == [
        {
            "id": "mem-001",
            "score": 1.0,
            "text": REMEMBER["memories"][0]["text"],
            "metadata": REMEMBER["memories"][0]["metadata"],
        }
    ]
    assert await client.recall(EVALUATE | {"persona_id": "agent_0", "threshold": 0.5}) == answer
    assert somabrain.requests[:2] == [("/memory/remember/batch", REMEMBER), ("/context/evaluate", EVALUATE)]
    assert somabrain.headers["x-namespace"] == "universe"
    assert somabrain.headers["x-memory-namespace"] == "wm"


@pytest.mark.parametrize("fault", [500, 503, 429, "nonsense"])
async def test_a_passing_failure_is_tried_again(
    client: SomaBrainClient, somabrain: SomaBrainServer, fault: int | str
) -> None:
    somabrain.misbehaviour = [fault, fault]
    assert await client.context_evaluate(EVALUATE) == {"candidates": []}
    assert len(somabrain.requests) == 3


async def test_a_refusal_is_not_tried_again_and_does_not_open_the_breaker(
    client: SomaBrainClient, somabrain: SomaBrainServer
) -> None:
    somabrain.misbehaviour = [422] * 4
    for _ in range(4):
        with pytest.raises(DatabaseRejected, match="status 422"):
            await client.recall(EVALUATE)
    assert len(somabrain.requests) == 4
    assert await client.recall(EVALUATE) == {"candidates": []}


@pytest.mark.parametrize(
    ("status", "is_for_the_data"), [(400, True), (413, True), (422, True), (401, False), (404, False)]
)
async def test_a_refusal_of_what_is_sent_is_told_from_one_of_who_sends_it(
    client: SomaBrainClient, somabrain: SomaBrainServer, status: int, is_for_the_data: bool
) -> None:
    somabrain.misbehaviour = [status]
    with pytest.raises(DatabaseRejected) as refused:
        await client.remember_batch(REMEMBER)
    assert isinstance(refused.value, DataRejected) is is_for_the_data


async def test_three_failed_calls_open_the_breaker_for_fifteen_seconds(somabrain: SomaBrainServer) -> None:
    clock = ManualClock()
    client = SomaBrainClient(SomaBrainOptions(somabrain.url, retries=0), monotonic=lambda: clock.now().monotonic)
    somabrain.misbehaviour = [500, 500, 500]
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable, match="status 500"):
            await client.context_evaluate(EVALUATE)
    with pytest.raises(DatabaseUnavailable, match="left alone for another 15 s"):
        await client.context_evaluate(EVALUATE)
    assert len(somabrain.requests) == 3
    clock.advance(15.0)
    assert await client.context_evaluate(EVALUATE) == {"candidates": []}
    await client.close()


async def test_a_call_that_its_caller_cuts_off_counts_as_a_failure(
    client: SomaBrainClient, somabrain: SomaBrainServer
) -> None:
    somabrain.misbehaviour = ["hang"] * 3
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.context_evaluate(EVALUATE), 0.05)
    with pytest.raises(DatabaseUnavailable, match="left alone"):
        await client.context_evaluate(EVALUATE)


async def test_a_server_that_is_away_or_silent_is_unavailable(somabrain: SomaBrainServer) -> None:
    client = SomaBrainClient(SomaBrainOptions(somabrain.url, timeout=0.05, retries=0))
    somabrain.misbehaviour = ["hang"]
    with pytest.raises(DatabaseUnavailable, match=r"cannot be reached: (Read|Connect)Timeout"):
        await client.recall(EVALUATE)
    await client.close()
    somabrain.stop()
    with pytest.raises(DatabaseUnavailable, match="cannot be reached: ConnectError"):
        await client.recall(EVALUATE)
    await client.close()


async def test_of_an_answer_that_does_not_end_no_more_is_read_than_there_is_room_for(
    client: SomaBrainClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    await client.remember_batch(REMEMBER)
    with pytest.raises(DatabaseUnavailable, match="no JSON object"):
        await client.context_evaluate(EVALUATE)
