"""What a session's memories cost to embed is part of what the session costs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_builder.costs import Usage, charge
from context_builder.memory.memory import Memory
from context_builder.session.store.registry import SessionRegistry
from context_builder.testing import InMemoryStore
from tests.session.live import Live

pytestmark = pytest.mark.engines


class Embedding(InMemoryStore):
    """Embeds what it remembers, at a price, however often it is told."""

    supports_message_feed = False

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        charge("embeddings", Usage(model="e5", prompt_tokens=7, calls=1, dollars=0.25))
        await super().remember(tenant_id, memories)


async def test_embeddings_are_in_the_sessions_cost_also_after_it_has_ended(live: Live) -> None:
    live.memory = Embedding()
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
