"""A text that an embedder does not embed costs no other text its embedding, and an embedder that is away costs none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from context_builder.errors import DatabaseRejected, EmbeddingsFailed
from context_builder.memory.embedder import CachedEmbedder, Embedding
from context_builder.memory.sql_memory import SqlEmbeddings
from tests.memory.vectors import LetterEmbedder


def stored_in(waiting: dict[str, str]) -> Callable[..., Awaitable[list[Any]]]:
    """Return a database's functions, for memories by their ids that leave ``waiting`` when they are embedded."""

    async def call(function: str, tenant_id: str, **given: Any) -> list[Any]:
        if function == "context_memory_unembedded":
            return [{"id": i, "digest": i, "text": text, "speaker": "", "said_at": ""} for i, text in waiting.items()]
        for one in given.get("embeddings", ()):
            del waiting[one["id"]]
        return [True]

    return call


@pytest.mark.parametrize("times", [1, 99])
async def test_a_text_that_an_embedder_fails_at_keeps_no_other_from_being_embedded(times: int) -> None:
    class Failing(LetterEmbedder):
        left = times

        async def embed(self, texts: Sequence[str]) -> list[Embedding]:
            if self.left and any("strange" in text for text in texts):
                self.left -= 1
                raise EmbeddingsFailed("it answers with status 500")
            return await super().embed(texts)

    waiting = {f"m-{n}": f"text {n}" for n in range(8)} | {"strange": "strange"}
    embeddings = SqlEmbeddings(CachedEmbedder(Failing()), stored_in(waiting), query_time=1.0)
    assert await embeddings.fill("acme", 64) == 9
    assert not waiting


async def test_an_embedder_that_fails_from_now_on_gives_nothing_up() -> None:
    class Failing(LetterEmbedder):
        away = False

        async def embed(self, texts: Sequence[str]) -> list[Embedding]:
            if self.away or "refused" in texts:
                raise DatabaseRejected("it answers with status 401")
            return await super().embed(texts)

    failing, waiting = Failing(), {"r": "refused"}
    embeddings = SqlEmbeddings(CachedEmbedder(failing), stored_in(waiting), query_time=1.0)
    assert await embeddings.fill("acme", 64) == 1
    failing.away = True
    waiting["later"] = "what was said later"
    assert await embeddings.fill("acme", 64) == 0
    assert waiting, "a probe is not answered by what is remembered of the last one"
