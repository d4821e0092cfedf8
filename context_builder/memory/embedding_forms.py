"""Requests of servers that embed in a form of their own: Cohere, Text Embeddings Inference, and Ollama.

Which one it is, the address says: it ends with ``/embed``, where those of OpenAI's form have ``/embeddings`` added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

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
