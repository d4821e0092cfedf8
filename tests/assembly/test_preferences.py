"""What people say they want is part of their context."""

from __future__ import annotations

from context_builder.assembly import ContextBuilder, UserPreferencesStrategy, stated_preferences
from context_builder.testing import MemoryMemory


async def test_stated_again_it_takes_the_place_of_the_earlier_one():
    store = MemoryMemory()
    for said in ("I prefer short answers", "call me Ann", "Actually I prefer detailed answers"):
        await store.remember("default", [one.as_memory("ann", source="m1") for one in stated_preferences(said)])
    context = await ContextBuilder.new(store).for_user("ann").with_strategy(UserPreferencesStrategy()).build()
    assert context.user_preferences.splitlines() == ["- Prefers detailed answers", "- Wants to be called Ann"]
