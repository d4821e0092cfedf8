"""The kind of query chooses weights, order and strategies, where that is set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from context_builder.assembly import (
    AssemblyConfig,
    ContextBuilder,
    QueryKind,
    QueryStrategy,
    kind_of,
    session_turn,
    window_of,
)
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore
from tests.assembly.test_session_state import STATE
from tests.assembly.turns import Brain


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("Can you summarise this?", QueryKind.SUMMARY),
        ("What did we decide about the boat?", QueryKind.SUMMARY),
        ("Catch me up, please", QueryKind.SUMMARY),
        ("Which tea does Ann like best?", QueryKind.PREFERENCE),
        ("What is my favourite colour?", QueryKind.PREFERENCE),
        ("What did she just say?", QueryKind.RECENT),
        ("What was the last question?", QueryKind.RECENT),
        ("How loud is the boat noise?", QueryKind.FACT),
        ("What is preferential attachment?", QueryKind.FACT),
        ("", QueryKind.FACT),
    ],
)
def test_a_query_is_of_one_kind(query: str, kind: QueryKind) -> None:
    assert kind_of(query) is kind


def dated(clock_now: float) -> Brain:
    """An old memory that fits well, and a fresh one that fits less."""
    now = datetime.fromtimestamp(clock_now, UTC)
    return Brain(
        {
            "candidates": [
                {"id": "old", "text": "old one", "score": 0.9, "metadata": {"timestamp": now - timedelta(days=90)}},
                {"id": "new", "text": "new one", "score": 0.6, "metadata": {"timestamp": now}},
            ]
        }
    )


async def test_what_happened_lately_is_ranked_by_time_and_a_fact_by_similarity(builder, clock):
    brain = dated(clock.now().wall)
    build = builder(somabrain=brain, config=AssemblyConfig(by_query=True)).build_for_turn
    first = [
        (await build({"user_message": text})).debug["snippet_ids"][0] for text in ("Who is it?", "What is latest?")
    ]
    assert first == ["old", "new"]


async def test_what_is_kept_first_is_what_was_asked_for(builder):
    kept = []
    build = builder(config=AssemblyConfig(by_query=True)).build_for_turn
    for query in ("Please recap", "Said just now?"):
        context = await build(session_turn(STATE, query), 34)
        kept.append([message.get("name") or message["role"] for message in context.messages[1:-1]])
    assert kept == [["summary"], ["user"]]


async def test_a_memory_that_the_summary_tells_too_is_told_once(builder):
    brain = Brain({"candidates": [{"id": "m", "text": "First point", "score": 0.9}]})
    build = builder(somabrain=brain, config=AssemblyConfig(by_query=True)).build_for_turn
    context = await build(session_turn(STATE, "Please recap"))
    assert context.snippets == []
    assert "First point" in str(context.messages[1])


async def test_the_strategies_are_those_that_serve_the_query():
    store = InMemoryStore()
    liked = Memory("p", "Prefers tea", kind="preference", user_id="ann")
    await store.remember("default", [liked, Memory("m", "Ann had tea", session_id="monday", user_id="ann")])
    builder = ContextBuilder.new(store).for_user("ann").with_strategy(QueryStrategy(STATE))
    preferred = await builder.with_query("Which tea does Ann like best?").build()
    assert preferred.user_preferences == "- Prefers tea"
    assert preferred.summary is None
    overview = await builder.with_query("Summary?").build()
    assert (overview.user_preferences, overview.summary) == (None, "- First point\n- Second")


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-mini", 128_000),
        ("gpt-4", 8_192),
        ("openai/gpt-4.1-nano", 1_047_576),
        ("o1-preview-2024-09-12", 128_000),
        ("gpt-5-chat-latest", 128_000),
        ("my-own", None),
    ],
)
def test_the_windows_of_known_models(model: str, window: int | None) -> None:
    assert window_of(model) == window


async def test_the_limit_is_what_the_window_leaves_and_never_more(builder):
    build = builder(config=AssemblyConfig(window=2000, reply_tokens=500)).build_for_turn
    limits = [(await build({"user_message": "Hi"}, asked)).debug["max_prompt_tokens"] for asked in (None, 100, 9000)]
    assert limits == [1500, 100, 1500]
    assert (await builder().build_for_turn({"user_message": "Hi"})).debug["max_prompt_tokens"] == 4000


async def test_warming_up_connects_to_the_memory_and_waits_no_longer_than_a_turn(builder):
    store = InMemoryStore()
    store.gate.clear()
    warmed = builder(store=store, config=AssemblyConfig(deadline=0.02))
    await warmed.preload()
    assert len(store.searches) == 1
    store.gate.set()
    assert (await warmed.build_for_turn({"user_message": "Hi"})).debug["somabrain_state"] == "normal"
