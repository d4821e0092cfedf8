"""A conversation that a daemon runs at this moment is part of a context, newest messages included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson
import pytest
from redis import Redis

from context_builder.assembly import RecentMessagesStrategy
from context_builder.engines.engine import free_port
from context_builder.memory.memory import Memory
from context_builder.settings.settings import load_settings
from context_builder.testing import InMemoryStore
from context_builder.wiring.builders import open_builder
from context_builder.wiring.part_description import PartDescription
from tests.services.redis_server import RedisServer

BUFFERED = [
    {"id": 3, "speaker": "Ann", "text": "Are the clips labelled?", "timestamp": "2025-01-01T09:02:00+00:00"},
    {"id": 4, "speaker": "Bob", "text": "Half of them.", "timestamp": "2025-01-01T09:03:00+00:00"},
]


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> InMemoryStore:
    """Remembers what was summarized: messages 1 to 3."""
    kept = InMemoryStore()
    said = ("Good morning.", "We count the clips.", "Are the clips labelled?")
    memories = [
        Memory(
            f"m{n}", text, session_id="monday", speaker="Ann", position=n, time=datetime(2025, 1, 1, 9, n, tzinfo=UTC)
        )
        for n, text in enumerate(said, 1)
    ]
    await kept.remember("default", memories)
    monkeypatch.setattr("context_builder.wiring.stores.memory_of", lambda *_: (kept, PartDescription("memory")))
    return kept


@pytest.fixture
def redis(redis_server: RedisServer) -> Iterator[Redis]:
    with Redis.from_url(redis_server.url) as client:
        client.set("context_builder:monday:state", orjson.dumps({"raw_recent_buffer": BUFFERED}))
        yield client
        client.flushall()


async def history(url: str, tenant: str = "default", conversation: str = "monday") -> list[str]:
    async with open_builder(load_settings({"REDIS_URL": url, "EMBEDDED_EMBEDDINGS": "false"}, env_file=None)) as (
        builder,
        _,
    ):
        asking = builder.with_system_message("Be kind.").with_strategy(RecentMessagesStrategy())
        return (await asking.for_tenant(tenant).for_conversation(conversation).build()).conversation_history


async def test_the_newest_two_minutes_come_after_what_is_remembered(
    store: InMemoryStore, redis: Redis, redis_server: RedisServer
) -> None:
    assert await history(redis_server.url) == [
        "Ann: Good morning.",
        "Ann: We count the clips.",
        "Ann: Are the clips labelled?",
        "Bob: Half of them.",
    ]


async def test_other_tenants_and_conversations_of_other_programs_have_no_session(
    store: InMemoryStore, redis: Redis, redis_server: RedisServer
) -> None:
    assert await history(redis_server.url, tenant="lab") == []
    assert await history(redis_server.url, conversation="no session's id") == []


async def test_without_redis_there_is_what_is_remembered(store: InMemoryStore) -> None:
    assert len(await history(f"redis://127.0.0.1:{free_port()}")) == 3
