"""What a session's memories cost to embed is part of what the session costs."""

from __future__ import annotations

import pytest

from context_builder.session.store.registry import SessionRegistry
from tests.session.live import Live
from tests.session.memories import PricedMemory

pytestmark = pytest.mark.engines


async def test_embeddings_are_in_the_sessions_cost_also_after_it_has_ended(live: Live) -> None:
    live.memory = memory = PricedMemory()
    memory.supports_message_feed = False
    session = await live.start()
    await live.say(1, 2)
    await live.shows(1, 2)
    assert await SessionRegistry(live.redis).request_end("monday")
    await live.gone(session)
    cost = (await live.state())["cost"]
    assert cost["tasks"]["embeddings"] == {
        "calls": 1, "prompt_tokens": 7, "cached_tokens": 0, "completion_tokens": 0, "dollars": 0.25
    }  # fmt: skip
    assert cost["dollars"] >= 0.25
