"""The campaign's dice are fair: nothing comes again before everything has come."""

from __future__ import annotations

from collections import Counter

from scripts.campaign.deck import Deck
from scripts.campaign.faults import decks


def test_every_card_comes_as_often_as_it_is_in_the_deck() -> None:
    deck = Deck(["kill", "kill", "stall"], "seed")
    assert Counter(deck.deal() for _ in range(9)) == {"kill": 6, "stall": 3}


def test_the_seed_decides_the_order() -> None:
    one, same, other = (Deck(range(20), seed) for seed in ("1", "1", "2"))
    dealt = [[deck.deal() for _ in range(20)] for deck in (one, same, other)]
    assert dealt[0] == dealt[1] != dealt[2]


def test_lanes_share_the_models_faults_and_nothing_else() -> None:
    first, second = decks("seed", 2)
    assert first.model_faults is second.model_faults
    assert first.faults is not second.faults
    kinds = Counter(lane.model_faults.deal() for _ in range(7) for lane in (first, second))
    assert kinds["rate-limit"] == 1
    assert set(kinds.values()) == {1}
