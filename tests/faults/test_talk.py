"""The campaign's talk is all that a listener may send: each message is one, each poison is none, each found again."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from context_builder.clock import Instant
from context_builder.errors import MessageError
from context_builder.session.messages.message import decode
from scripts.campaign.hostile_text import cased, lookalikes
from scripts.campaign.talk import POISONS, Delivery, Talk
from scripts.campaign.tokens import tokens_in

NOW = datetime(2026, 3, 1, 12, 0, 0, 5, UTC)
MAX_BYTES = 262_144
MESSAGES = 1_500

FOLDED = "ıİſK"
"""Characters that regular expressions without regard to case take for i, s or k; lower() does not make them so."""


def talk(seed: str) -> Talk:
    return Talk("monday", random.Random(seed), lambda: NOW)


def messages(*seeds: str) -> list[Delivery]:
    return [each.message() for each in map(talk, seeds) for _ in range(MESSAGES)]


def test_the_seed_decides_every_byte() -> None:
    first, same, other = (messages(seed) for seed in ("1", "1", "2"))
    assert first == same != other


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_every_message_is_taken_in_and_has_its_token(seed: str) -> None:
    for delivery in messages(seed):
        message = decode(delivery.raw, Instant(1_000.0, 1.0), max_bytes=MAX_BYTES)
        assert tokens_in(message.text) == [delivery.token]


def test_a_message_is_recognizable_if_it_is_the_same_when_it_comes_again() -> None:
    sent = messages("4")
    for delivery in sent:
        once, again = (decode(delivery.raw, Instant(at, at), max_bytes=MAX_BYTES) for at in (1.0, 2.0))
        assert (once.identity == again.identity != b"") == delivery.recognizable
    assert 0.1 < sum(not delivery.recognizable for delivery in sent) / len(sent) < 0.25


def test_half_of_the_messages_have_no_number() -> None:
    decoded = [decode(delivery.raw, Instant(1.0, 1.0), max_bytes=MAX_BYTES) for delivery in messages("5")]
    assert 0.4 < sum(message.number is None for message in decoded) / len(decoded) < 0.6


def test_all_of_unicode_is_said() -> None:
    said = "".join(decode(each.raw, Instant(1.0, 1.0), max_bytes=MAX_BYTES).text for each in messages(*"6789"))
    assert {ord(char) >> 16 for char in said} == {*range(17)}
    assert set(FOLDED) <= set(said)
    assert len(set(said) & set(cased())) > len(cased()) * 0.9
    assert {"\x00", "\u202e", "\u2028", "\u0301", "\u200d"} <= set(said)


def test_every_disguise_is_equal_to_a_letter_without_regard_to_case() -> None:
    assert set(FOLDED) <= {twin for twins in lookalikes().values() for twin in twins}
    assert set("abcdefghijklmnopqrstuvwxyz") <= set(lookalikes())


def test_some_messages_are_nearly_as_long_as_they_may_be() -> None:
    sizes = [len(delivery.raw) for delivery in messages(*"abcd")]
    assert 200_000 < max(sizes) <= MAX_BYTES


@pytest.mark.parametrize("poison", POISONS)
def test_every_poison_is_refused_and_has_its_token(poison: object) -> None:
    assert callable(poison)
    raw = poison("p000001")
    assert tokens_in(raw.decode(errors="replace")) == ["p000001"]
    with pytest.raises(MessageError):
        decode(raw, Instant(1.0, 1.0), max_bytes=MAX_BYTES)
