"""Embeddings from OpenAI, or from any server that speaks its API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from context_builder.errors import MemoryRejected, MemoryUnavailable
from context_builder.memory.embedder import Embedding
from context_builder.redirects import explain_redirect, is_redirect

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """Where embeddings come from.

    Some models tell queries from passages: by a prefix (those of the E5 family by ``query: `` and ``passage: ``), or
    their server adds it and is told by ``input_type``, which ``input_types`` sends.
    """

    model: str = "text-embedding-3-small"
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    query_prefix: str = ""
    passage_prefix: str = ""
    input_types: bool = False
    batch: int = 64
    """Most texts in one request."""
    longest: int = 8_000
    """Characters of a text that are embedded; models refuse more than their window."""
    timeout: float = 10.0
    """Seconds for one request."""
    retries: int = 1


class OpenAIEmbedder:
    """Asks ``/embeddings``, in batches. Implements :class:`~context_builder.memory.embedder.Embedder`.

    The vendor's package, a second's work to import, is loaded in a thread at first use.
    """

    def __init__(self, options: EmbeddingOptions) -> None:
        self._options = options
        self._client: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._options.model

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        embeddings: list[Embedding] = []
        for start in range(0, len(texts), self._options.batch):
            batch = texts[start : start + self._options.batch]
            embeddings += await self._ask("passage", [self._options.passage_prefix + text for text in batch])
        return embeddings

    async def embed_query(self, text: str) -> Embedding:
        return (await self._ask("query", [self._options.query_prefix + text]))[0]

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, input_type: str, texts: Sequence[str]) -> list[Embedding]:
        client = await self._connected()
        import openai

        shortened = [text[: self._options.longest] or " " for text in texts]
        try:
            answer = await client.embeddings.create(
                model=self._options.model,
                input=shortened,
                encoding_format="float",
                extra_body={"input_type": input_type} if self._options.input_types else None,
            )
        except openai.APIConnectionError as error:
            raise MemoryUnavailable(f"{self._where} cannot be reached: {type(error).__name__}") from None
        except openai.APIStatusError as error:
            if is_redirect(error.status_code, error.response.headers):
                redirected = explain_redirect(
                    str(error.request.url), error.response.headers, "EMBEDDING_BASE_URL (or OPENAI_BASE_URL)"
                )
                raise MemoryUnavailable(f"{self._where} {redirected}") from None
            failed = (
                MemoryUnavailable
                if error.status_code in (408, 409, 429) or error.status_code >= 500
                else MemoryRejected
            )
            raise failed(f"{self._where} answers with status {error.status_code}") from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise MemoryUnavailable(f"{self._where} answers with no embeddings: {type(error).__name__}") from None
        found = [list(map(float, item.embedding)) for item in sorted(answer.data, key=lambda item: item.index)]
        if len(found) != len(texts) or not all(found) or len({len(embedding) for embedding in found}) > 1:
            raise MemoryUnavailable(f"{self._where} answers with other embeddings than were asked for")
        return found

    @property
    def _where(self) -> str:
        return urlsplit(self._options.base_url or "//OpenAI").netloc.rpartition("@")[2]

    async def _connected(self) -> AsyncOpenAI:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._new_client)
            return self._client

    def _new_client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        client = AsyncOpenAI(
            api_key=self._options.api_key or "none",
            base_url=self._options.base_url,
            timeout=self._options.timeout,
            max_retries=self._options.retries,
            http_client=DefaultAsyncHttpxClient(timeout=self._options.timeout, follow_redirects=False),
        )
        _ = client.embeddings  # the package loads it at first use: better here than in the loop
        return client
