"""A short conversation, as its two producers push it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from redis.asyncio import Redis

from context_builder.session.client import SessionClient, contributed, spoken
from tests.services.waiting import wait_until
from tests.session.schemas import conforms

BEGAN: Final = datetime(2025, 10, 2, 10, 30)

SAID: Final = (
    ("Alice", "How does DNA replication start at the origin in bacteria?"),
    ("Bob", "Helicase unwinds the double helix, and then DNA polymerase copies both strands."),
    ("Alice", "Okay."),
    ("Chen", "The lagging strand is copied in Okazaki fragments, which DNA ligase joins."),
    ("Bob", "We decided to sequence the TP53 gene in 48 samples next week."),
)
ADVICE: Final = "From a Chemistry perspective, the phosphodiester bond is what ligase closes."


class Talk:
    """Session ``monday`` as the programs around it see it."""

    def __init__(self, redis: Redis) -> None:
        self._client = SessionClient(redis, "monday")

    async def happens(self) -> None:
        """Everybody speaks, and then the assistant."""
        for number, (speaker, text) in enumerate(SAID, start=1):
            at = BEGAN + timedelta(milliseconds=300 * number)
            await self._client.push(spoken("monday", number, speaker, text, at))
        await self._client.push(contributed(ADVICE, BEGAN + timedelta(seconds=2), {"priority": "P0"}))

    async def state(self) -> dict[str, Any]:
        """What is published, which is as it is documented."""
        state = await self._client.state() or {}
        assert not state or conforms("state", state)
        return state

    async def is_visible(self) -> list[dict[str, Any]]:
        """The published buffer, once everything said is in it."""

        async def seen() -> Any:
            buffer = (await self.state()).get("raw_recent_buffer", [])
            return buffer if len(buffer) == len(SAID) + 1 else None

        return await wait_until(seen, "everything said is visible")

    async def is_understood(self) -> dict[str, Any]:
        """The state, once keywords are there and the domains were asked about (a small model may find none)."""

        async def seen() -> Any:
            state = await self.state()
            read = state["analyst"].get("domains") and all(e["analyst"] for e in long_ones(state))
            return state if read else None

        return await wait_until(seen, "keywords and domains are there", 180)

    async def is_silent(self) -> Any:
        return (await self._client.conversation_state() or {}).get("silence")


def long_ones(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Buffered messages that are long enough for keywords."""
    return [entry for entry in state["raw_recent_buffer"] if len(entry["text"]) >= 10]
