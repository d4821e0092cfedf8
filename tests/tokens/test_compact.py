"""Exact counts without tiktoken: the same numbers, in little memory; a summary's budget holds by default."""

from __future__ import annotations

import random
import tracemalloc
from string import ascii_lowercase, ascii_uppercase

import pytest

from context_builder.session.conversation_context import ConversationContext
from context_builder.settings.settings import Settings
from context_builder.tokens import compact as frugal_tokens
from context_builder.tokens.compact import count_tokens_compact
from context_builder.tokens.counter import count_tokens
from context_builder.wiring.analysts import analysts

ALPHABETS = {
    "talk": ascii_lowercase + " " * 6 + ".,?'-",
    "contractions and cases": "sStTdDmlLvVreREſ'’ aAbB",
    "base64": ascii_uppercase + ascii_lowercase + "0123456789+/",
    "blanks and lines": " \t\n\r\x0b\x1c\x85\xa0\u2028\u3000a1!/",
    "marks and letters of many kinds": "aäßǅŁªº\u0301\u0302ʰ中日한ሀሁሂक्ष๑٣Ⅷ²",
    "signs": "😀👍🏽\u200d❤\ufe0f §€#<|>_-/\n",
    "everything in two bytes": "".join(map(chr, range(0x800))),
}


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)
def test_every_text_counts_as_with_tiktoken(alphabet: str) -> None:
    chosen = random.Random(7)
    for length in (1, 2, 3, 5, 8, 30, 300):
        for _ in range(40):
            text = "".join(chosen.choices(alphabet, k=length))
            assert count_tokens_compact(text) == count_tokens(text), repr(text)


@pytest.mark.parametrize("text", ["", "\ud800 lone", "a" * 70_000, " " * 70_000, "中文" * 40_000, "<|endoftext|>"])
def test_odd_texts_count_as_with_tiktoken(text: str) -> None:
    assert count_tokens_compact(text) == count_tokens(text)


def test_every_character_is_of_the_same_kind_as_for_tiktoken() -> None:
    for first in range(0, 0x3000, 16):
        text = "".join(f"a{chr(code)}b {chr(code)}1{chr(code)}" for code in range(first, first + 16))
        assert count_tokens_compact(text) == count_tokens(text), hex(first)


def test_the_vocabulary_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        frugal_tokens._Vocabulary()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 6 * 2**20


def _hard(kind: str, chosen: random.Random) -> str:
    words = {
        "Amharic": lambda: "".join(chosen.choices("ሀሁሂሃለሉመሙሰሱረሩበቡተቱነኑአኡከኩወዉየዩደዱገጉ", k=6)),
        "tokens of base64": lambda: "".join(chosen.choices(ALPHABETS["base64"], k=24)),
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
