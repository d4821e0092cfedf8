"""What the tests of assembly ask with: turns of every shape, a SomaBrain that answers as it is told, and a count."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

Counter = Callable[[str], int]

WORDS: Final = "the cell divides when replication is done and each daughter keeps one strand of DNA".split()
ODD: Final = (
    "",
    " ",
    "\n\n",
    "🧬🧬",
    "ДНК",
    "複製は",
    "a" * 300,
    "<|im_start|>",
    "\ud800",
    "§§secret(KEY)",
    "x\u0301" * 40,
)


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


def generated(seed: int) -> tuple[dict[str, Any], Mapping[str, Any], int]:
    """A turn, its memory's answer, and a token limit: short and long, empty, odd and huge."""
    random_ = random.Random(seed)
    history = [_message(random_) for _ in range(random_.choice((0, 1, 2, 5, 30, 120)))]
    turn = {
        "tenant_id": "tenant",
        "session_id": f"session-{seed}",
        "system_prompt": _text(random_, 40),
        "user_message": _text(random_, 60),
        "history": history,
    }
    if seed % 3 == 0:
        points = random.Random(seed)
        turn["summary"] = [_text(points, 60) for _ in range(points.choice((1, 4, 30)))]
    return turn, _answer(random_), random_.choice((0, 10, 60, 120, 300, 800, 4096, 100_000))


def _answer(random_: random.Random) -> dict[str, Any]:
    entries = [
        {
            "id": random_.choice((place, f"m{place}", None, "same")),
            "text": _text(random_, 200),
            "score": random_.choice((random_.random(), 1, None, "0.4", "high", float("nan"), float("inf"))),
            "metadata": random_.choice(
                ({}, None, {"timestamp": "2025-01-01"}, {"timestamp": "soon"}, {"source": _text(random_, 30)})
            ),
        }
        for place in range(random_.choice((0, 1, 3, 8, 20)))
    ]
    return {random_.choice(("candidates", "results")): entries}


def _message(random_: random.Random) -> dict[str, Any]:
    message: dict[str, Any] = {"role": random_.choice(("user", "assistant", "tool")), "content": _text(random_, 80)}
    if random_.random() < 0.1:
        message["name"] = random_.choice(("Alice", "tool_1"))
    if random_.random() < 0.05:
        message["content"] = random_.choice((None, [{"type": "text", "text": _text(random_, 20)}]))
    if random_.random() < 0.05:
        message["tool_calls"] = [{"id": "call_1", "function": {"name": "look", "arguments": '{"q": "DNA"}'}}]
    return message


def _text(random_: random.Random, longest: int) -> str:
    if random_.random() < 0.1:
        return random_.choice(ODD)
    length = int(longest * random_.random() ** 2) * (20 if random_.random() < 0.03 else 1)
    return " ".join(random_.choices((*WORDS, *ODD) if random_.random() < 0.1 else WORDS, k=length))
