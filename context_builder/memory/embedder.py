"""An embedder turns texts into embeddings; a cache stands before it.

What all queries have in common is taken out of a query's embedding, so that passages are ranked by what it asks. The
embeddings of a sentence model share a large mean, and a passage near to it is like every query. Ranked without it,
more of the passages that answer come first (Mu and Viswanath, All-but-the-Top, 2018; ``./scripts/bench packages``).
The mean is that of 32 queries about different things, in ``common_query.json`` beside this module.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final, Protocol

Embedding = list[float]

MOST_DIMENSIONS: Final = 16_000
"""Dimensions of the embeddings that a database can search: those of pgvector's half-precision vectors."""


class Embedder(Protocol):
    """Turns texts into vectors of one length, whose cosine tells how alike the texts are.

    Raises :class:`~context_builder.errors.DatabaseError` when it cannot.
    """

    @property
    def name(self) -> str:
        """Return the model's name: embeddings of different names are never compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding for each text, to be found by queries."""
        ...

    async def embed_query(self, text: str) -> Embedding:
        """Return the embedding of a query."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class CachedEmbedder:
    """Remembers the ``size`` embeddings used last, so that the same text is embedded once.

    Implements :class:`Embedder`. A thousand embeddings of 384 dimensions take about 12 MB.
    """

    def __init__(self, embedder: Embedder, size: int = 1_000) -> None:
        self._embedder = embedder
        self._size = size
        self._kept: OrderedDict[tuple[bool, str], Embedding] = OrderedDict()

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        known = {text: kept for text in texts if (kept := self._recall((False, text))) is not None}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        for text, embedding in zip(missing, await self._embedder.embed(missing) if missing else [], strict=True):
            known[text] = self._keep((False, text), embedding)
        return [known[text] for text in texts]

    async def embed_query(self, text: str) -> Embedding:
        kept = self._recall((True, text))
        return kept if kept is not None else self._keep((True, text), await self._embedder.embed_query(text))

    async def close(self) -> None:
        await self._embedder.close()

    def _recall(self, key: tuple[bool, str]) -> Embedding | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def _keep(self, key: tuple[bool, str], embedding: Embedding) -> Embedding:
        self._kept[key] = embedding
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return embedding


MEAN_MODEL: Final = "multilingual-e5-small"
"""The model that the mean is of, whoever serves it."""

MEAN_SHARE: Final = 0.7
"""Share of the mean that is taken out. From 0.7 to 1, packages of documentation hold about as many answers; on HotpotQA
more than 0.7 finds less."""


def without_common(model: str, embedding: Sequence[float]) -> Embedding | None:
    """Return the embedding that passages are ranked by for a query of this ``embedding``; None for a model whose mean
    is not known."""
    if not model.rpartition("/")[2].startswith(MEAN_MODEL) or len(embedding) != len(mean()):
        return None
    length = math.hypot(*embedding)
    return [round(figure - MEAN_SHARE * length * common, 6) for figure, common in zip(embedding, mean(), strict=True)]


@cache
def mean() -> tuple[float, ...]:
    """Return the mean of the queries' embeddings."""
    known = resources.files("context_builder.memory").joinpath("common_query.json").read_text("utf-8")
    return tuple(map(float, json.loads(known)["mean"]))
