"""What the tests of assembly ask with: a SomaBrain that answers what it is told to, and a count of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Counter = Callable[[str], int]


class Brain:
    """Gives ``answer`` to every question; raises ``failure`` while it is set."""

    def __init__(self, answer: Mapping[str, Any] | None = None) -> None:
        self.answer = answer or {}
        self.failure: Exception | None = None
        self.asked: list[dict[str, Any]] = []
        self.remembered: list[dict[str, Any]] = []

    async def context_evaluate(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        self.asked.append(payload)
        if self.failure is not None:
            raise self.failure
        return self.answer

    async def remember_batch(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        self.remembered.append(payload)
        if self.failure is not None:
            raise self.failure
        return {"ok": True}


def memories(count: int, text: str = "memory") -> dict[str, Any]:
    """An answer with so many memories, the best first."""
    return {
        "candidates": [
            {"id": f"m{place}", "score": 1 - place / 100, "text": f"{text} {place}", "metadata": {"source": "talk"}}
            for place in range(count)
        ]
    }


def recount(messages: list[dict[str, Any]], count: Counter) -> int:
    """The tokens of messages after the OpenAI cookbook, written down a second time, for messages of text."""
    total = 3
    for message in messages:
        total += 3
        for key, value in message.items():
            total += count(value)
            total += key == "name"
    return total
