"""What people say they want is part of their context."""

from __future__ import annotations

from context_builder.assembly import ContextBuilder, UserPreferencesStrategy, stated_preferences
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore


async def test_stated_again_it_takes_the_place_of_the_earlier_one():
    store = InMemoryStore()
    for said in ("I prefer short answers", "call me Ann", "Actually I prefer detailed answers"):
        await store.remember("default", [one.as_memory("ann", source="m1") for one in stated_preferences(said)])
    context = await ContextBuilder.new(store).for_user("ann").with_strategy(UserPreferencesStrategy()).build()
    assert context.user_preferences.splitlines() == ["- Prefers detailed answers", "- Wants to be called Ann"]


async def test_a_turn_sees_its_own_users_memories_and_those_of_nobody(builder):
    store = InMemoryStore()
    preferred = [one.as_memory("alice") for one in stated_preferences("I prefer green tea")]
    kept = [Memory("sage's", "green tea is wise", metadata={"persona_id": "sage"}), Memory("said", "green tea for all")]
    await store.remember("default", [*preferred, *kept])

    async def seen(**turn):
        context = await builder(store=store).build_for_turn({"user_message": "green tea", **turn})
        return {snippet["text"] for snippet in context.snippets}

    assert await seen() == await seen(user_id="bob") == {"green tea for all"}
    assert await seen(user_id="alice") == {"green tea for all", "Prefers green tea"}
    assert await seen(persona_id="sage") == {"green tea for all", "green tea is wise"}
