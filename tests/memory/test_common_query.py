"""Passages are ranked by what a query asks, not by what it has in common with every query."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from importlib import resources
from operator import mul
from pathlib import Path
from typing import Final

import pytest

from context_builder.engines.embeddings import MODEL, EmbeddingEngine, is_available
from context_builder.memory.embedder import mean, without_common
from context_builder.memory.engine_embedder import EngineEmbedder
from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from tests.memory.vectors import LetterEmbedder

ASKED: Final = "mole hills"
"""A query of which no text has a word."""

TEXTS: Final = {"hub": "Anything at all.", "answer": "Talpidae dig heaps."}


def unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [figure / length for figure in vector]


def likeness(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(map(mul, unit(one), unit(other)))


def beside_mean(place: int, share: float) -> list[float]:
    """An embedding with so much of what queries have in common, and the rest in one figure."""
    common = unit(mean())
    return [share * figure + (1 - share) * (at == place) for at, figure in enumerate(common)]


VECTORS: Final = {
    ASKED: beside_mean(7, 0.6),
    TEXTS["hub"]: beside_mean(9, 0.95),
    TEXTS["answer"]: beside_mean(7, 0.1),
}


class CommonEmbedder(LetterEmbedder):
    """Gives embeddings of the shipped model's kind."""

    name = MODEL

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [VECTORS[text] for text in texts]


def test_a_passage_that_is_like_every_query_comes_after_one_that_answers() -> None:
    hub, answer, query = VECTORS[TEXTS["hub"]], VECTORS[TEXTS["answer"]], VECTORS[ASKED]
    assert likeness(query, hub) > likeness(query, answer)
    towards = without_common(MODEL, query)
    assert towards is not None
    assert likeness(towards, hub) < likeness(towards, answer)


@pytest.mark.parametrize("model", ["text-embedding-3-small", "", "multilingual"])
def test_of_another_model_nothing_is_known(model: str) -> None:
    assert without_common(model, [1.0] * len(mean())) is None
    assert without_common(MODEL, [1.0] * 7) is None


@pytest.mark.engines
async def test_a_search_of_passages_ranks_so_and_tells_how_alike_they_are(migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url, CommonEmbedder())
    try:
        await memory.remember("acme", [Memory(name, text, "document") for name, text in TEXTS.items()])
        found = await memory.search("acme", MemoryQuery(ASKED, standalone=True))
        assert [one.memory.id for one in found] == ["answer", "hub"]
        assert found[0].score == pytest.approx(likeness(VECTORS[ASKED], VECTORS[TEXTS["hub"]]), abs=0.01)
        said = await memory.search("acme", MemoryQuery(ASKED))
        assert [one.memory.id for one in said] == ["hub", "answer"]
    finally:
        await memory.close()


@pytest.mark.engines
@pytest.mark.model
async def test_the_mean_is_that_of_the_shipped_model(engine_folder: Path) -> None:
    if not is_available():
        pytest.skip("the embedding engine is not installed")
    engine = EmbeddingEngine(Path(tempfile.mkdtemp(prefix="home-", dir=engine_folder)))
    embedder = EngineEmbedder(MODEL, lambda: engine.ensure().url, lambda: None)
    known = json.loads(resources.files("context_builder.memory").joinpath("common_query.json").read_text("utf-8"))
    try:
        some = [await embedder.embed_query(query) for query in known["queries"][:4]]
    finally:
        engine.stop()
    assert likeness([sum(figures) for figures in zip(*some, strict=True)], mean()) > 0.97
