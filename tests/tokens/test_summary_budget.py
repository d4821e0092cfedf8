"""A summary's budget holds for any script, and without a model."""

from __future__ import annotations

import random
from string import ascii_lowercase, ascii_uppercase, digits

import pytest

from context_builder.session.conversation_context import ConversationContext
from context_builder.settings.settings import Settings
from context_builder.tokens.counter import count_tokens
from context_builder.wiring.analysts import analysts

BASE64 = ascii_uppercase + ascii_lowercase + digits + "+/"


def _hard(kind: str, chosen: random.Random) -> str:
    words = {
        "Amharic": lambda: "".join(chosen.choices("ሀሁሂሃለሉመሙሰሱረሩበቡተቱነኑአኡከኩወዉየዩደዱገጉ", k=6)),
        "tokens of base64": lambda: "".join(chosen.choices(BASE64, k=24)),
        "German compounds": lambda: "".join(chosen.choices(["donau", "dampf", "schiff", "fahrts", "gesell"], k=5)),
        "capitals": lambda: "".join(chosen.choices(ascii_uppercase, k=12)),
    }[kind]
    return f"We measured {' '.join(words() for _ in range(6))}."


@pytest.mark.parametrize("kind", ["Amharic", "tokens of base64", "German compounds", "capitals"])
async def test_a_summary_is_within_its_budget_without_a_model(kind: str) -> None:
    chosen = random.Random(3)
    context = ConversationContext("session-1")
    for number in range(1, 121):
        await context.add_message({"speaker": "Alice", "text": _hard(kind, chosen), "message_number": number})
    await context.update_summary()
    assert 500 < count_tokens(context.rolling_summary["text"]) <= 1000


def test_a_daemon_without_a_model_counts_exactly() -> None:
    *_, count, _ = analysts(Settings())
    assert count("ሀሁሂሃለሉ QXZJVKWP") == count_tokens("ሀሁሂሃለሉ QXZJVKWP")
