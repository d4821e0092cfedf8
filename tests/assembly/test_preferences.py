"""What people say they want."""

from __future__ import annotations

import pytest

from context_builder.assembly import ContextBuilder, UserPreferencesStrategy, stated_preferences
from context_builder.testing import MemoryMemory


@pytest.mark.parametrize(
    ("said", "topic", "text"),
    [
        ("Well, I prefer short answers.", "length", "Prefers short answers"),
        ("Please call me Ann, thanks", "name", "Wants to be called Ann"),
        ("please always cite the paper!", "always cite the paper", "Always cite the paper"),
        ("I don't like surprises", "dislikes surprises", "Dislikes surprises"),
        ("Could you reply in German?", "language", "Wants replies in German"),
    ],
)
def test_a_stated_preference_is_found(said, topic, text):
    assert [(one.topic, one.text) for one in stated_preferences(said)] == [(topic, text)]


@pytest.mark.parametrize(
    "said", ["call me back tomorrow", "they preferred tea", "What do you prefer?", "I answer in a minute"]
)
def test_talk_is_no_preference(said):
    assert list(stated_preferences(said)) == []


async def test_stated_again_it_takes_the_place_of_the_earlier_one():
    store = MemoryMemory()
    for said in ("I prefer short answers", "call me Ann", "Actually I prefer detailed answers"):
        await store.remember("default", [one.as_memory("ann", source="m1") for one in stated_preferences(said)])
    context = await ContextBuilder.new(store).for_user("ann").with_strategy(UserPreferencesStrategy()).build()
    assert context.user_preferences.splitlines() == ["- Prefers detailed answers", "- Wants to be called Ann"]
