"""What turns and strategies share: one deadline, one health, the same signals, metrics and cache."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

import pytest
from prometheus_client import CollectorRegistry

from context_builder.assembly import (
    AssemblyConfig,
    Candidate,
    ContextBuilderMetrics,
    SemanticSearchStrategy,
    UserPreferencesStrategy,
    select,
)
from context_builder.errors import DatabaseRejected, DatabaseUnavailable, StrategyError
from context_builder.memory.memory import Memory
from context_builder.memory.preferences import stated_preferences
from context_builder.testing import InMemoryStore
from tests.services.waiting import wait_until

TURN = {"user_message": "And the waves?", "user_id": "ann", "preferences": True}


@pytest.fixture
async def store() -> InMemoryStore:
    kept = InMemoryStore()
    (stated,) = stated_preferences("I prefer tea")
    waves = Memory("waves", "the waves are high", user_id="ann", time=datetime(2025, 1, 1, tzinfo=UTC))
    await kept.remember("default", [stated.as_memory("ann", time=datetime(2025, 1, 1, tzinfo=UTC)), waves])
    return kept


async def test_memories_and_preferences_are_asked_side_by_side(builder, store) -> None:
    store.gate.clear()
    under_way = asyncio.create_task(builder(store=store).build_for_turn(TURN))
    await wait_until(lambda: len(store.searches) == 3, "the turn's memories, stored preferences, and what was said")
    store.gate.set()
    context = await under_way
    assert context.debug["snippet_ids"] == ["waves"]
    assert "- ann: Prefers tea" in str(context.messages)
    assert context.token_counts["preferences"] > 0


async def test_a_store_that_hangs_is_one_failure_and_says_what_is_missing(builder, store, clock) -> None:
    store.gate.clear()
    told: list[float] = []
    context = await builder(store=store, on_degraded=told.append, config=AssemblyConfig(deadline=0.02)).build_for_turn(
        TURN
    )
    late = "no answer within 20 ms"
    assert context.debug["memory"] == f"memory: {late}; preferences: {late}"
    assert told == [15.0]


async def test_strategies_leave_alone_a_store_that_is_down(builder, store, clock) -> None:
    store.failure = DatabaseUnavailable("no route")
    told: list[float] = []
    asking = builder(store=store, on_degraded=told.append).for_user("ann").with_query("waves")
    asking = asking.with_strategy(SemanticSearchStrategy())
    for _ in range(5):
        with pytest.raises(StrategyError, match="no route"):
            await asking.build()
        clock.advance(0.1)
    assert told == [15.0, 60.0]
    store.failure = None
    searched = len(store.searches)
    with pytest.raises(StrategyError, match="memory is not asked: it failed too often"):
        await asking.build()
    assert len(store.searches) == searched
    clock.advance(60)
    assert (await asking.build()).relevant == ["the waves are high"]


async def test_a_refused_search_and_a_strategys_own_fault_say_nothing_of_the_stores_health(builder, store) -> None:
    class Broken:
        async def candidates(self, request: object) -> list[Candidate]:
            raise ValueError("of its own")

    made = builder(store=store)
    for _ in range(5):
        with pytest.raises(StrategyError):
            await made.with_strategy(Broken()).build()
    store.failure = DatabaseRejected("too long")
    for _ in range(5):
        with pytest.raises(StrategyError):
            await made.with_query("waves").with_strategy(SemanticSearchStrategy()).build()
    store.failure = None
    assert (await made.build_for_turn(TURN)).debug["somabrain_state"] == "normal"


async def test_memories_of_strategies_are_ranked_by_the_same_signals(builder, clock) -> None:
    now = datetime.fromtimestamp(clock.now().wall, UTC)

    class Notes:
        async def candidates(self, request: object) -> list[Candidate]:
            old = Candidate("old", "noted long ago", base_score=0.6, metadata={"timestamp": "2001-01-01T00:00:00Z"})
            new = Candidate("new", "noted now", base_score=0.5, metadata={"timestamp": now.isoformat()})
            return [old, new]

    context = await builder().with_strategy(Notes()).build()
    assert context.relevant == ["noted now", "noted long ago"]
    (first, *_) = context.receipts
    assert {one.name: round(one.score, 2) for one in first.signals} == {"similarity": 0.5, "recency": 1.0}
    assert first.score == pytest.approx(0.7 * 0.5 + 0.3 * 1.0)


@dataclass(frozen=True)
class Length:
    """Worth more the longer it is."""

    weight: float = 1.0
    name: ClassVar[str] = "length"

    def score(self, candidate: Candidate, query: select.RankingQuery) -> float:
        return min(1.0, len(candidate.text) / 100)


async def test_a_signal_that_is_listed_ranks_and_is_told_everywhere(builder, store, monkeypatch) -> None:
    await store.remember("default", [Memory("long", "the waves " * 8)])
    listed = select.ranking_signals
    monkeypatch.setattr("context_builder.assembly.select.ranking_signals", lambda config: (*listed(config), Length()))
    context = await builder(store=store).build_for_turn({"user_message": "waves", "user_id": "ann"})
    assert context.debug["snippet_ids"][0] == "long"
    assert context.snippets[0]["signals"]["length"] == pytest.approx(0.8, abs=0.01)
    assert context.receipts[0].signal("length") == context.snippets[0]["signals"]["length"]


async def test_a_context_of_strategies_is_told_of_in_the_metrics_and_comes_from_the_cache(builder, store) -> None:
    registry = CollectorRegistry()
    made = builder(store=store, metrics=ContextBuilderMetrics(registry), config=AssemblyConfig(cache_seconds=10))
    asking = made.for_user("ann").with_query("waves").with_strategy(SemanticSearchStrategy())
    first, again = await asking.build(), await asking.build()
    assert first.messages == again.messages
    assert first.messages is not again.messages
    assert registry.get_sample_value("context_builder_prompt_total") == 1.0
    assert registry.get_sample_value("thinking_total_seconds_count") == 1.0
    assert registry.get_sample_value("context_prompt_tokens") == first.metadata.total_tokens
    searched = len(store.searches)
    await asking.with_strategy(UserPreferencesStrategy()).build()
    assert len(store.searches) > searched


async def test_a_preference_that_a_memory_tells_too_is_told_as_a_preference(builder, store) -> None:
    asking = builder(store=store).for_user("ann").with_query("tea or waves?")
    context = await asking.with_strategy(SemanticSearchStrategy()).with_strategy(UserPreferencesStrategy()).build()
    assert context.user_preferences == "- Prefers tea"
    assert {one.section for one in context.receipts} == {"memory", "preferences"}
