"""This embedder asks OpenAI, a server that speaks its API, or one that embeds in a form of its own.

Those are Cohere, Text Embeddings Inference, and Ollama. Which one it is, the address says: it ends with ``/embed``,
where those of OpenAI's form have ``/embeddings`` added.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import from_json

from context_builder import metrics
from context_builder.costs import Budget, Prices, Reservation, Usage, charge
from context_builder.errors import (
    DatabaseError,
    DatabaseRejected,
    DatabaseUnavailable,
    EmbeddingsFailed,
    OverBudget,
)
from context_builder.memory.embedder import Embedding
from context_builder.memory.options import EmbeddingOptions
from context_builder.storage.openai_connection import OpenAIConnection, openai_client
from context_builder.storage.refusal import words_of_refusal
from context_builder.storage.urls import explain_redirect, is_redirect

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from context_builder.analysis.openai.refusals import ServerError

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

_FAILED: Final = 500
_UNKNOWN: Final = 404
_TOO_MANY: Final = frozenset({400, 413, 422})
_BATCH: Final = re.compile(r"\b(?:batch|inputs?|texts|items)\b")
_AT_MOST: Final = re.compile(r"(?:larger than|fewer than|at most|up to|limit|max\w*|exceed\w*|>)\D{0,60}?(\d{1,4})\b")
_SHORTEST: Final = 200
"""Characters; a server that finds even these too long is not asked for fewer."""

LARGEST_ANSWER: Final = 16_000_000
"""Bytes of an answer that are read: twice what 64 embeddings of 4,096 figures take."""


MOST_TOKENS: Final = 10_000_000
"""More than any request has: a server that says that one had more does not know."""


LARGEST_FIGURE: Final = 65_504.0
"""What a half-precision number holds, as databases keep embeddings; those of models are hardly ever larger than 1."""


_Figure = Annotated[float, Field(ge=-LARGEST_FIGURE, le=LARGEST_FIGURE)]


def _floats(value: Any) -> Any:
    """Return the figures of an embedding: of one in Base64, 32-bit floats, lowest byte first; of a list in a list,
    as of a server that might send one for each token, those of the only one.
    """
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        return value[0]
    if not isinstance(value, str):
        return value
    try:
        packed = base64.b64decode(value, validate=True)
        return struct.unpack(f"<{len(packed) // 4}f", packed)
    except (ValueError, struct.error):
        return value


def _smaller_batch(refusal: str, count: int) -> int | None:
    """Return the most texts of one request that a refusal of ``count`` names, if it is about their number."""
    if count < 2 or not _BATCH.search(refusal):
        return None
    numbers = map(int, _AT_MOST.findall(refusal))
    return max((number for number in numbers if 0 < number < count), default=None)


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


class _TooMuch(DatabaseRejected):
    """Raised when a server takes no request of this size; ``most_texts`` is how many it takes, where it says so.

    ``passes`` tells that it may take a larger one later, as when another program used its memory.
    """

    def __init__(self, message: str, most_texts: int | None, *, passes: bool = False) -> None:
        super().__init__(message)
        self.most_texts = most_texts
        self.passes = passes


class OpenAIEmbedder:
    """Asks ``/embeddings``, in batches. Implements :class:`~context_builder.memory.embedder.Embedder`.

    What calls cost by ``prices`` is charged as the task ``embeddings``; a call that the ``budget`` cannot bear raises
    :class:`~context_builder.errors.DatabaseUnavailable`. The vendor's package, a second's work to import, is loaded in
    a thread at first use. Texts too long for the model are embedded by their beginnings, and batches too large for the
    server are made smaller, from then on if it says how many texts it takes.
    """

    def __init__(self, options: EmbeddingOptions, prices: Prices | None = None, budget: Budget | None = None) -> None:
        self._options = options
        self._prices = prices or Prices()
        self._budget = budget
        self._model = options.model or DEFAULT_MODEL
        self._batch = options.batch
        self._encodings = _ENCODINGS  # of which the server took the first, or may
        self._connection = OpenAIConnection(self._new_client)

    @property
    def name(self) -> str:
        return self._model

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return await self._embedded("passage", [self._options.passage_prefix + text for text in texts])

    async def embed_query(self, text: str) -> Embedding:
        return (await self._embedded("query", [self._options.query_prefix + text]))[0]

    async def close(self) -> None:
        await self._connection.close()

    async def _embedded(self, input_type: str, texts: Sequence[str]) -> list[Embedding]:
        embeddings: list[Embedding] = []
        while len(embeddings) < len(texts):
            batch = texts[len(embeddings) : len(embeddings) + self._batch]
            try:
                embeddings += await self._ask(input_type, batch)
            except _TooMuch as error:
                if error.most_texts is not None:
                    self._batch = error.most_texts
                    continue
                half = min(len(batch[0]), self._options.longest) // 2
                if len(batch) == 1 and half < _SHORTEST:
                    raise (DatabaseUnavailable(str(error)) if error.passes else error) from None
                parts = [batch[: len(batch) // 2], batch[len(batch) // 2 :]] if len(batch) > 1 else [[batch[0][:half]]]
                for part in parts:
                    embeddings += await self._embedded(input_type, part)
        return embeddings

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
        from context_builder.analysis.openai.refusals import ServerError

        if (explained := self._explained(ServerError.of_response(error.response, ""), len(texts))) is not None:
            return explained
        told = f"{self._where} answers with status {error.status_code}"
        if error.status_code == _FAILED:
            return EmbeddingsFailed(told)
        passes = error.status_code in (408, 409, 429) or error.status_code > _FAILED
        return DatabaseUnavailable(told) if passes else DatabaseRejected(told)

    def _explained(self, error: ServerError, count: int) -> DatabaseError | None:
        """Return this package's error for a server's about ``count`` texts, if it says something that is understood."""
        where, status = self._where, error.status
        if error.is_unpaid:
            return DatabaseUnavailable(f"{where} has no quota left for this key; check the account's plan and billing")
        if status in _TOO_MANY and (fewer := _smaller_batch(error.text, count)) is not None:
            return _TooMuch(f"{where} takes {fewer} texts at once ({status})", fewer)
        if error.is_too_long:
            return _TooMuch(f"{where} finds the text too long ({status})", None)
        if error.is_out_of_memory:
            return _TooMuch(f"{where} has too little memory ({status})", None, passes=True)
        if status in _REFUSED and "input_type" in error.text and not self._options.input_types:
            return DatabaseRejected(f"{where} wants an input_type ({status}); set EMBEDDING_INPUT_TYPES=true")
        if error.is_about_model or status == _UNKNOWN:
            advice = "check EMBEDDING_MODEL and EMBEDDING_BASE_URL"
            return DatabaseRejected(f"{where} does not know {self._model} ({status}); {advice}")
        return None

    def _read(self, body: bytes, count: int, held: Reservation) -> list[Embedding]:
        """Return a response's ``count`` embeddings in the order of the texts, once they are charged."""
        try:
            answer = _Answer.model_validate_json(body)
        except ValidationError:
            raise self._no_embeddings(body, count) from None
        usage = Usage(model=self._model, prompt_tokens=answer.prompt_tokens or 0, calls=1)
        priced = self._prices.priced(usage)
        if answer.prompt_tokens is not None:
            held.dollars = priced.dollars
        charge("embeddings", priced)
        is_told = any(entry.index is not None for entry in answer.data)  # else they are in the order of the texts
        found = {entry.index if is_told else place: entry.embedding for place, entry in enumerate(answer.data)}
        is_alike = len(set(map(len, found.values()))) == 1 and all(map(any, found.values()))  # zeros have no direction
        if len(answer.data) != count or set(found) != set(range(count)) or not is_alike:
            raise EmbeddingsFailed(f"{self._where} answers with other embeddings than were asked for")
        return [found[place] for place in range(count)]

    def _no_embeddings(self, body: bytes, count: int) -> DatabaseError:
        """Return the error for an answer without embeddings, which may hold the server's own."""
        from context_builder.analysis.openai.refusals import ServerError

        try:
            said = from_json(body)
        except ValueError:
            said = None
        told = self._explained(ServerError.of_body(said), count) if isinstance(said, dict) else None
        return told or EmbeddingsFailed(f"{self._where} answers with no embeddings")

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
