"""Chance that is fair: what is to happen comes in an order that dice decide, each as often as it should."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

Card = TypeVar("Card")


class Deck(Generic[Card]):
    """Deals all its cards before it is shuffled anew."""

    def __init__(self, cards: Sequence[Card], seed: str) -> None:
        self._cards = cards
        self._rng = random.Random(seed)
        self._left: list[Card] = []

    def deal(self) -> Card:
        if not self._left:
            self._left = self._rng.sample(self._cards, len(self._cards))
        return self._left.pop()


class Decks(NamedTuple):
    """What befalls the sessions of a lane; ``model_faults`` is shared by all lanes, as the model is."""

    faults: Deck[str]
    model_faults: Deck[str]
