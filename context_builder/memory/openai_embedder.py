"""This embedder asks OpenAI, or any server that speaks its API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from context_builder.errors import MemoryRejected, MemoryUnavailable
from context_builder.memory.embedder import Embedding
from context_builder.memory.options import EmbeddingOptions
from context_builder.storage.urls import explain_redirect, is_redirect

if TYPE_CHECKING:
    from openai import AsyncOpenAI


DEFAULT_MODEL: Final = "text-embedding-3-small"

LARGEST_ANSWER: Final = 16_000_000
"""Bytes of an answer that are read: twice what 64 embeddings of 4,096 figures take."""


LARGEST_FIGURE: Final = 65_504.0
"""What a half-precision number holds, as databases keep embeddings; those of models are hardly ever larger than 1."""


class _Embedded(BaseModel):
    index: int
    embedding: list[Annotated[float, Field(ge=-LARGEST_FIGURE, le=LARGEST_FIGURE)]]


class _Answer(BaseModel):
    """What is read of an answer; servers differ in the rest."""

    data: list[_Embedded]


class OpenAIEmbedder:
    """Asks ``/embeddings``, in batches. Implements :class:`~context_builder.memory.embedder.Embedder`.

    The vendor's package, a second's work to import, is loaded in a thread at first use.
    """

    def __init__(self, options: EmbeddingOptions) -> None:
        self._options = options
        self._model = options.model or DEFAULT_MODEL
        self._client: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._model

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
            answer = await client.embeddings.with_raw_response.create(
                model=self._model,
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
        except (openai.OpenAIError, ValueError) as error:  # the latter for a key that no header can hold
            raise MemoryUnavailable(f"{self._where} cannot be asked: {type(error).__name__}") from None
        return self._embeddings(answer.content, len(texts))

    def _embeddings(self, body: bytes, count: int) -> list[Embedding]:
        """The ``count`` embeddings in the body of a response, in the order of the texts."""
        try:
            answer = _Answer.model_validate_json(body)
        except ValidationError:
            raise MemoryUnavailable(f"{self._where} answers with no embeddings") from None
        found = {entry.index: entry.embedding for entry in answer.data}
        is_alike = len(set(map(len, found.values()))) == 1 and all(map(any, found.values()))  # zeros have no direction
        if sorted(found) != list(range(count)) or not is_alike:
            raise MemoryUnavailable(f"{self._where} answers with other embeddings than were asked for")
        return [found[place] for place in range(count)]

    @property
    def _where(self) -> str:
        return urlsplit(self._options.base_url or "//OpenAI").netloc.rpartition("@")[2]

    async def _connected(self) -> AsyncOpenAI:
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(self._new_client)
            return self._client

    def _new_client(self) -> AsyncOpenAI:
        from context_builder.storage.bounded_http import openai_client

        options = self._options
        client = openai_client(
            options.base_url,
            options.api_key.get_secret_value() if options.api_key else None,
            timeout=options.timeout,
            retries=options.retries,
            most_bytes=LARGEST_ANSWER,
        )
        _ = client.embeddings.with_raw_response  # the package loads it at first use: better here than in the loop
        return client
