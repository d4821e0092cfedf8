"""What helped before is ranked higher, where that is set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from context_builder.assembly import AssemblyConfig, Candidate
from context_builder.assembly.select import Helpfulness, RankingQuery
from context_builder.errors import NoMemoryStore
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain, memories

TURN = {"tenant_id": "lab", "user_message": "boat noise"}
NOW = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture
async def store() -> InMemoryStore:
    kept = InMemoryStore()
    await kept.remember("lab", [Memory("a", "boat noise at dawn"), Memory("b", "boat noise at dusk")])
    return kept


@pytest.mark.parametrize(("weight", "first"), [(0.0, "a"), (0.2, "b")])
async def test_what_helped_comes_first_only_where_that_is_set(builder, store, weight, first):
    made = builder(store=store, config=AssemblyConfig(feedback_weight=weight))
    context = await made.build_for_turn(TURN)
    assert context.debug["snippet_ids"] == ["a", "b"]
    await made.feedback(context, {"b": 1.0, "a": 0.0})
    again = await made.build_for_turn(TURN)
    assert again.debug["snippet_ids"][0] == first
    told = {one.id: (one.signal("feedback"), one.score) for one in again.receipts}
    assert told["b"] == (pytest.approx((1.0, 0.85 + weight), abs=0.001) if weight else (None, pytest.approx(0.85)))


def test_feedback_fades_like_memories_do():
    def at(score: object, days: float) -> float:
        rated = {"feedback": {"score": score, "timestamp": NOW - timedelta(days=days)}}
        return Helpfulness(0.2).score(Candidate("m", "text", metadata=rated), RankingQuery("", NOW))

    unrated = Helpfulness(0.2).score(Candidate("m", "text"), RankingQuery("", NOW))
    assert [at(1.0, 0), at(0.0, 0), at(0.5, 0)] == [1.0, 0.0, 0.5]
    assert at(1.0, 30) == pytest.approx(0.5 + 0.5 * 0.368, abs=0.001)
    assert [unrated, at("high", 0), at(7, 0), at(None, 0)] == [0.5] * 4


async def test_the_latest_ratings_of_all_users_come_to_their_mean(builder, store):
    made = builder(store=store)
    for user, score in ((None, 1.0), ("ann", 0.0), ("ann", 0.0), ("ann", 0.5)):
        context = await made.build_for_turn({**TURN, "user_id": user})
        await made.feedback(context, {"a": score})
    assert (store.feedback["lab"]["a"].score, store.feedback["lab"]["a"].count) == (0.75, 2)


async def test_wrong_feedback_is_refused(builder, store):
    context = await builder(store=store).build_for_turn(TURN)
    with pytest.raises(ValueError, match="not among the context's snippets: other"):
        await builder(store=store).feedback(context, {"other": 1.0})
    with pytest.raises(ValueError, match="the rating of a must be from 0 to 1"):
        await builder(store=store).feedback(context, {"a": 2.0})
    with pytest.raises(NoMemoryStore):
        await builder(somabrain=Brain(memories(1))).feedback(context, {"a": 1.0})
