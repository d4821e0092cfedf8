"""Contexts asked for again."""

from __future__ import annotations

from context_builder.assembly import AssemblyConfig, added
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain, memories

TURN = {"user_message": "what is it", "history": [{"role": "user", "content": "Hello"}]}


async def test_a_context_is_kept_for_its_time_when_set(builder, clock):
    brain = Brain(memories(1))
    build = builder(somabrain=brain, config=AssemblyConfig(cache_seconds=10)).build_for_turn
    first = await build(TURN)
    again = await build(TURN)
    assert again.messages == first.messages
    assert again.debug["cached"]
    await build(TURN, 50)
    await build(TURN | {"user_message": "another"})
    assert len(brain.asked) == 3
    clock.advance(10)
    await build(TURN)
    assert len(brain.asked) == 4


async def test_what_a_caller_does_to_a_context_is_not_kept(builder):
    build = builder(somabrain=Brain(memories(1)), config=AssemblyConfig(cache_seconds=10)).build_for_turn
    for context in [await build(TURN), await build(TURN)]:
        context.messages[0]["content"] = "changed"
        context.snippets[0]["metadata"]["source"] = "changed"
        context.debug["snippet_ids"].append("changed")
    again = await build(TURN)
    assert again.debug["snippet_ids"] == ["m0"]
    assert (again.messages[0]["content"], again.snippets[0]["metadata"]["source"]) == ("", "talk")


async def test_what_a_context_is_not_made_from_does_not_count(builder):
    brain = Brain(memories(1))
    build = builder(somabrain=brain, config=AssemblyConfig(cache_seconds=10)).build_for_turn
    for number in range(2):
        await build(TURN | {"request_id": number})
    await build(TURN | {"query_embedding": [0.1, 0.2]})
    await build(TURN | {"summary": "more is known"})
    assert len(brain.asked) == 3


async def test_a_context_that_lacks_its_memories_is_not_kept(builder):
    brain = Brain(memories(1))
    brain.failure = ConnectionError("gone")
    build = builder(somabrain=brain, config=AssemblyConfig(cache_seconds=10)).build_for_turn
    await build(TURN)
    brain.failure = None
    assert (await build(TURN)).snippets


async def test_what_is_told_or_forgotten_through_the_builder_counts_at_once(builder):
    store = InMemoryStore()
    await store.remember("default", [Memory("a", "what is it now"), Memory("b", "what is it then")])
    made = builder(store=store, config=AssemblyConfig(cache_seconds=10, feedback_weight=0.2))
    first = await made.build_for_turn(TURN)
    await made.feedback(first, {"b": 1.0})
    assert (await made.build_for_turn(TURN)).debug["snippet_ids"] == ["b", "a"]
    assert await made.forget(ids=["b"]) == 1
    assert (await made.build_for_turn(TURN)).debug["snippet_ids"] == ["a"]


async def test_without_the_setting_every_turn_is_built_anew(builder):
    brain = Brain(memories(1))
    build = builder(somabrain=brain).build_for_turn
    await build(TURN)
    await build(TURN)
    assert len(brain.asked) == 2


async def test_a_warmed_up_builder_has_counted_and_redacted_once(builder):
    class Recording:
        seen: list[str] = []  # noqa: RUF012 the test's own

        def redact(self, text: str) -> str:
            self.seen.append(text)
            return text

    await builder(redactor=Recording()).preload()
    assert Recording.seen == ["warm"]


async def test_what_a_larger_limit_would_add_can_be_told(builder):
    build = builder(somabrain=Brain(memories(5))).build_for_turn
    small, large = await build(TURN, 40), await build(TURN, 45)
    assert [one.id for one in added(small.receipts, large.receipts)] == [
        one["id"] for one in large.snippets[len(small.snippets) :]
    ] + ["history-0"] * (len(large.history) - len(small.history))
