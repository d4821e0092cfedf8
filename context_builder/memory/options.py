"""Options tell where embeddings and SomaBrain are, and how they are asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, HttpUrl, ModelName, Seconds, setting


@dataclass(frozen=True, slots=True, config=CONFIG)
class EmbeddingOptions:
    """Where embeddings come from.

    Some models tell queries from passages: by a prefix (those of the E5 family by ``query: `` and ``passage: ``), or
    their server adds it and is told by ``input_type``, which ``input_types`` sends.
    """

    model: ModelName | None = setting(
        None,
        "EMBEDDING_MODEL",
        "Embedding model that finds memories by meaning; without one, see EMBEDDED_EMBEDDINGS. name",
    )
    base_url: HttpUrl | None = setting(
        None,
        "EMBEDDING_BASE_URL",
        (
            "Base URL of the server of EMBEDDING_MODEL; default: OPENAI_BASE_URL. "
            "One that ends with /embed is asked as Cohere, Text Embeddings Inference or Ollama. URL"
        ),
    )
    api_key: SecretStr | None = setting(
        None,
        "EMBEDDING_API_KEY",
        "API key for EMBEDDING_BASE_URL; OPENAI_API_KEY is only sent to the server at OPENAI_BASE_URL. key",
    )
    query_prefix: str = setting(
        "", "EMBEDDING_QUERY_PREFIX", "Text that EMBEDDING_MODEL expects before a query, e.g. `query: ` for E5. text"
    )
    passage_prefix: str = setting(
        "",
        "EMBEDDING_PASSAGE_PREFIX",
        "Text that EMBEDDING_MODEL expects before a passage to be found, e.g. `passage: ` for E5. text",
    )
    input_types: bool = setting(
        False,
        "EMBEDDING_INPUT_TYPES",
        "Send input_type (query or passage) to the embedding server, for one that adds prefixes itself. true or false",
    )
    batch: int = 64
    """Most texts in one request."""
    longest: int = 8_000
    """Characters of a text that are embedded; models refuse more than their window."""
    timeout: float = 10.0
    """Seconds for one request."""
    retries: int = 1


@dataclass(frozen=True, slots=True, config=CONFIG)
class SomaBrainOptions:
    """Where SomaBrain is; the defaults are the documented ones.

    ``timeout`` is for one request, in seconds, ``retry_base_ms`` the first wait between tries, which doubles.
    ``namespace`` is the universe that memories live in, and ``memory_namespace`` the part of it;
    both are sent as headers, because the documented bodies have no place for them.
    """

    base_url: HttpUrl | None = setting(
        None, "SA01_SOMA_BASE_URL", "Base URL of a SomaBrain server that keeps the memories, instead of a database. URL"
    )
    timeout: Seconds = setting(30.0, "SA01_SOMA_TIMEOUT_SECONDS", "Timeout of a SomaBrain request. seconds")
    retries: Annotated[int, Field(ge=0)] = setting(
        2, "SA01_SOMA_MAX_RETRIES", "Retries of a failed SomaBrain request. number"
    )
    retry_base_ms: Annotated[float, Field(gt=0, le=60000, allow_inf_nan=False)] = setting(
        150.0,
        "SA01_SOMA_RETRY_BASE_MS",
        "First wait between attempts of a SomaBrain request; it doubles each time. milliseconds",
    )
    namespace: str | None = setting(None, "SA01_NAMESPACE", "SomaBrain universe that holds the memories. name")
    memory_namespace: str = setting(
        "wm", "SA01_MEMORY_NAMESPACE", "Part of the SomaBrain universe that holds the memories. name"
    )
    failures_until_open: int = 3
    open_for: float = 15.0
