"""This embedder asks OpenAI, a server that speaks its API, or one that embeds in a form of its own.

Those are Cohere, Text Embeddings Inference, and Ollama. Which one it is, the address says: it ends with ``/embed``,
where those of OpenAI's form have ``/embeddings`` added.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator

from context_builder import metrics
from context_builder.costs import Budget, Prices, Reservation, Usage, charge
from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable, OverBudget
from context_builder.memory.embedder import Embedding
from context_builder.memory.options import EmbeddingOptions
from context_builder.storage.openai_connection import OpenAIConnection, openai_client
from context_builder.storage.refusal import words_of_refusal
from context_builder.storage.urls import explain_redirect, is_redirect

if TYPE_CHECKING:
    from openai import AsyncOpenAI


JsonObject = dict[str, Any]

_COHERE: Final = ("/v1/embed", "/v2/embed")
_OLLAMA: Final = "/api/embed"


def is_own_form(base_url: str | None) -> bool:
    return urlsplit(base_url or "").path.rstrip("/").endswith("/embed")


def body_of(base_url: str, model: str, texts: Sequence[str], input_type: str) -> JsonObject:
    """Return the body of a request: https://docs.cohere.com/reference/embed, https://huggingface.github.io/
    text-embeddings-inference, or https://docs.ollama.com/api/embed; ``input_type`` is ``passage`` or ``query``.
    """
    path = urlsplit(base_url).path.rstrip("/")
    if path.endswith(_COHERE):
        kind = "search_query" if input_type == "query" else "search_document"
        return {"model": model, "texts": [*texts], "input_type": kind, "embedding_types": ["float"], "truncate": "END"}
    if path.endswith(_OLLAMA):
        return {"model": model, "input": [*texts], "truncate": True}
    return {"inputs": [*texts], "truncate": True}


def as_openai(answer: Any) -> Any:
    """Return an answer of any form as OpenAI's: a list of embeddings, or one under ``embeddings``."""
    usage: Any = None
    embeddings = answer
    if isinstance(answer, dict):
        if "embeddings" not in answer:
            return answer
        embeddings = answer["embeddings"]
        meta = answer.get("meta")
        billed = meta.get("billed_units") if isinstance(meta, dict) else None
        tokens = billed.get("input_tokens") if isinstance(billed, dict) else answer.get("prompt_eval_count")
        usage = {"prompt_tokens": int(tokens) if isinstance(tokens, float) and tokens.is_integer() else tokens}
    if isinstance(embeddings, dict):
        embeddings = embeddings.get("float")
    if not isinstance(embeddings, list):
        return answer
    return {"data": [{"embedding": one} for one in embeddings], "usage": usage}


DEFAULT_MODEL: Final = "text-embedding-3-small"

_KEY_REFUSED: Final = 401
_REFUSED: Final = (400, 422)
_ENCODINGS: Final[tuple[str | None, ...]] = ("float", "base64", None)
"""Forms of embeddings to ask for; Voyage's server refuses the first one: https://docs.voyageai.com/reference/embeddings-api."""

LARGEST_ANSWER: Final = 16_000_000
"""Bytes of an answer that are read: twice what 64 embeddings of 4,096 figures take."""


MOST_TOKENS: Final = 10_000_000
"""More than any request has: a server that says that one had more does not know."""


LARGEST_FIGURE: Final = 65_504.0
"""What a half-precision number holds, as databases keep embeddings; those of models are hardly ever larger than 1."""


_Figure = Annotated[float, Field(ge=-LARGEST_FIGURE, le=LARGEST_FIGURE)]


def _floats(value: Any) -> Any:
    """Return the figures of an embedding that comes in Base64, as 32-bit floats, lowest byte first."""
    if not isinstance(value, str):
        return value
    try:
        packed = base64.b64decode(value, validate=True)
        return struct.unpack(f"<{len(packed) // 4}f", packed)
    except (ValueError, struct.error):
        return value


class _Embedded(BaseModel):
    index: int | None = None
    embedding: Annotated[list[_Figure], BeforeValidator(_floats)]


class _Answer(BaseModel):
    """The fields that are read of an answer; servers differ in the rest."""

    data: list[_Embedded]
    usage: Any = None

    @model_validator(mode="before")
    @classmethod
    def _of_any_form(cls, answer: Any) -> Any:
        return as_openai(answer)

    @property
    def prompt_tokens(self) -> int | None:
        """Return the tokens that the server says it embedded; None where it tells no figure that can be true."""
        tokens = self.usage.get("prompt_tokens") if isinstance(self.usage, dict) else None
        return tokens if type(tokens) is int and 0 <= tokens <= MOST_TOKENS else None


class OpenAIEmbedder:
    """Asks ``/embeddings``, in batches. Implements :class:`~context_builder.memory.embedder.Embedder`.

    What calls cost by ``prices`` is charged as the task ``embeddings``; a call that the ``budget`` cannot bear raises
    :class:`~context_builder.errors.DatabaseUnavailable`. The vendor's package, a second's work to import, is loaded in
    a thread at first use.
    """

    def __init__(self, options: EmbeddingOptions, prices: Prices | None = None, budget: Budget | None = None) -> None:
        self._options = options
        self._prices = prices or Prices()
        self._budget = budget
        self._model = options.model or DEFAULT_MODEL
        self._encodings = _ENCODINGS  # of which the server took the first, or may
        self._connection = OpenAIConnection(self._new_client)

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
        await self._connection.close()

    async def _ask(self, input_type: str, texts: Sequence[str]) -> list[Embedding]:
        client = await self._connection.client()
        import openai

        shortened = [text[: self._options.longest] or " " for text in texts]
        with self._held(shortened) as held:
            try:
                content = await self._content(client, input_type, shortened)
            except openai.OpenAIError as error:
                if isinstance(error, openai.APIStatusError):
                    held.dollars = 0.0
                raise self._translated(error, texts) from None
            except ValueError as error:  # for a key that no header can hold
                held.dollars = 0.0
                raise self._translated(error, texts) from None
            return self._read(content, len(texts), held)

    async def _content(self, client: AsyncOpenAI, input_type: str, texts: Sequence[str]) -> bytes:
        """Return what the server answers, in the form that its address tells."""
        url = self._options.base_url
        if url is not None and is_own_form(url):
            address = urlsplit(url)._replace(query="").geturl()
            answer = await client.post(
                address, cast_to=httpx.Response, body=body_of(url, self._model, texts, input_type)
            )
            return answer.content
        import openai

        body: JsonObject = {"model": self._model, "input": [*texts]}
        if self._options.input_types:
            body["input_type"] = input_type
        while True:
            encoding = self._encodings[0]
            form = {} if encoding is None else {"encoding_format": encoding}
            try:
                told = await client.post("/embeddings", cast_to=httpx.Response, body={**body, **form})
            except openai.APIStatusError as error:
                is_refused = error.status_code in _REFUSED and b"encoding_format" in error.response.content
                if not is_refused or encoding is None:
                    raise
                if encoding == self._encodings[0]:  # else another call has learnt it meanwhile
                    self._encodings = self._encodings[1:]
            else:
                return told.content

    @contextmanager
    def _held(self, texts: Sequence[str]) -> Iterator[Reservation]:
        """Set aside what embedding the texts may cost at worst: no token is shorter than a byte."""
        if self._budget is None:
            yield Reservation(0.0)
            return
        worst = self._prices.of(self._model).of(sum(len(text.encode("utf-8", "replace")) for text in texts), 0)
        try:
            with self._budget.hold("embeddings", worst) as held:
                yield held
        except OverBudget as error:
            metrics.OVER_BUDGET.labels("embeddings").inc()
            raise DatabaseUnavailable(str(error)) from None

    def _translated(self, error: Exception, texts: Sequence[str]) -> DatabaseError:
        import openai

        if isinstance(error, openai.APIConnectionError):
            return DatabaseUnavailable(f"{self._where} cannot be reached: {type(error).__name__}")
        if not isinstance(error, openai.APIStatusError):
            return DatabaseUnavailable(f"{self._where} cannot be asked: {type(error).__name__}")
        if is_redirect(error.status_code, error.response.headers):
            redirected = explain_redirect(
                str(error.request.url), error.response.headers, "EMBEDDING_BASE_URL (or OPENAI_BASE_URL)"
            )
            return DatabaseUnavailable(f"{self._where} {redirected}")
        if error.status_code == _KEY_REFUSED:
            key = self._options.api_key.get_secret_value() if self._options.api_key else ""
            words = words_of_refusal(error.response.content, key, "\n".join(texts))
            advice = "check EMBEDDING_API_KEY (or OPENAI_API_KEY)"
            return DatabaseRejected(f"{self._where} refuses the key (401){f': {words}' if words else ''}; {advice}")
        passes = error.status_code in (408, 409, 429) or error.status_code >= 500
        failed = DatabaseUnavailable if passes else DatabaseRejected
        return failed(f"{self._where} answers with status {error.status_code}")

    def _read(self, body: bytes, count: int, held: Reservation) -> list[Embedding]:
        """Return a response's ``count`` embeddings in the order of the texts, once they are charged."""
        try:
            answer = _Answer.model_validate_json(body)
        except ValidationError:
            raise DatabaseUnavailable(f"{self._where} answers with no embeddings") from None
        usage = Usage(model=self._model, prompt_tokens=answer.prompt_tokens or 0, calls=1)
        priced = self._prices.priced(usage)
        if answer.prompt_tokens is not None:
            held.dollars = priced.dollars
        charge("embeddings", priced)
        is_told = any(entry.index is not None for entry in answer.data)  # else they are in the order of the texts
        found = {entry.index if is_told else place: entry.embedding for place, entry in enumerate(answer.data)}
        is_alike = len(set(map(len, found.values()))) == 1 and all(map(any, found.values()))  # zeros have no direction
        if len(answer.data) != count or set(found) != set(range(count)) or not is_alike:
            raise DatabaseUnavailable(f"{self._where} answers with other embeddings than were asked for")
        return [found[place] for place in range(count)]

    @property
    def _where(self) -> str:
        return urlsplit(self._options.base_url or "//OpenAI").netloc.rpartition("@")[2]

    def _new_client(self) -> AsyncOpenAI:
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
