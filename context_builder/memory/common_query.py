"""What all queries have in common is taken out of a query's embedding, so that passages are ranked by what it asks.

The embeddings of a sentence model share a large mean, and a passage near to it is like every query. Ranked without it,
more of the passages that answer come first (Mu and Viswanath, All-but-the-Top, 2018; ``./scripts/bench packages``).
The mean is that of 32 queries about different things, in ``common_query.json`` beside this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from context_builder.memory.embedder import Embedding

MODEL: Final = "multilingual-e5-small"
"""The model that the mean is of, whoever serves it."""

SHARE: Final = 0.7
"""Share of the mean that is taken out. From 0.7 to 1, packages of documentation hold about as many answers; on HotpotQA
more than 0.7 finds less."""


def without_common(model: str, embedding: Sequence[float]) -> Embedding | None:
    """Return the embedding that passages are ranked by for a query of this ``embedding``; None for a model whose mean
    is not known."""
    if not model.rpartition("/")[2].startswith(MODEL) or len(embedding) != len(mean()):
        return None
    length = math.hypot(*embedding)
    return [round(figure - SHARE * length * common, 6) for figure, common in zip(embedding, mean(), strict=True)]


@cache
def mean() -> tuple[float, ...]:
    """Return the mean of the queries' embeddings."""
    return tuple(map(float, _known()["mean"]))


def queries() -> list[str]:
    """Return the queries that the mean is of."""
    return list(_known()["queries"])


@cache
def _known() -> dict[str, list[str]]:
    found = resources.files("context_builder.memory").joinpath("common_query.json").read_text("utf-8")
    known: dict[str, list[str]] = json.loads(found)
    return known
