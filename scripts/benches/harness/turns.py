"""Turns of every shape, made from a seed; and a SomaBrain that answers what it is told to."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

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
    """Gives ``answer`` to every question, and forgets what it is to remember."""

    def __init__(self) -> None:
        self.answer: Mapping[str, Any] = {}

    async def context_evaluate(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        return self.answer

    async def remember_batch(self, payload: dict[str, Any]) -> Mapping[str, Any]:
        return {"ok": True}


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
