"""The prompt of a session, for a user whose preferences are known."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest
from fakeredis import FakeAsyncRedis

from context_builder import ContextBuilder, HealthState, SessionClient, build_for_session
from context_builder.memory.preferences import stated_preferences
from context_builder.testing import InMemoryStore
from tests.assembly.test_session_state import STATE


@pytest.fixture
async def client() -> SessionClient:
    redis = FakeAsyncRedis()
    await redis.set("context_builder:monday:state", orjson.dumps(STATE))
    return SessionClient(redis, "monday")


@pytest.fixture
async def store() -> InMemoryStore:
    store = InMemoryStore()
    for day, said in enumerate(("I prefer tea", "Please call me Ann", "I prefer coffee"), 1):
        (stated,) = stated_preferences(said)
        await store.remember("default", [stated.as_memory("ann", time=datetime(2025, 1, day, tzinfo=UTC))])
    return store


def builder(store: InMemoryStore | None) -> ContextBuilder:
    return ContextBuilder(store=store, token_counter=lambda text: len(text.split()))


async def test_what_the_user_prefers_is_told_last_and_only_when_space_permits(
    client: SessionClient, store: InMemoryStore
) -> None:
    context = await build_for_session(client, builder(store), "And the waves?", user_id="ann")
    known = next(message["content"] for message in context.messages if message.get("name") == "preferences")
    assert known.endswith("\n- ann: Prefers coffee\n- ann: Wants to be called Ann")
    assert "tea" not in known
    short = await build_for_session(client, builder(store), "And the waves?", user_id="ann", max_prompt_tokens=30)
    assert "ann:" not in str(short.messages)


async def test_nobody_elses_preferences_are_told_and_none_to_nobody(
    client: SessionClient, store: InMemoryStore
) -> None:
    for named in ({"user_id": "bob"}, {"user_id": "ann", "tenant_id": "another"}, {}):
        context = await build_for_session(client, builder(store), "And the waves?", **named)
        assert "coffee" not in str(context.messages)


async def test_a_memory_that_is_down_is_not_asked(client: SessionClient, store: InMemoryStore) -> None:
    made = ContextBuilder(
        store=store, token_counter=lambda text: len(text.split()), health_provider=lambda: HealthState.DOWN
    )
    await build_for_session(client, made, "And the waves?", user_id="ann")
    assert store.searches == []


async def test_without_a_store_or_with_one_that_hangs_the_prompt_comes_all_the_same(
    client: SessionClient, store: InMemoryStore
) -> None:
    store.gate.clear()
    for given in (None, store):
        context = await build_for_session(client, builder(given), "And the waves?", user_id="ann")
        assert context.messages[-1] == {"role": "user", "content": "And the waves?"}
