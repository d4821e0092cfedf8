"""A static embedding model, a mean of vectors of words, in this process: to be compared with the embedded engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from context_builder.memory.embedder import Embedding


class StaticEmbedder:
    """Embeds by WordLlama (``pip install wordllama``, MIT), whose 256 dimensions and tokenizer are in its wheel.

    Implements :class:`~context_builder.memory.embedder.Embedder`.
    """

    name = "wordllama"

    def __init__(self) -> None:
        import wordllama

        # It looks for its own tokenizer in the cache alone.
        wheel = Path(wordllama.__file__).parent
        self._model: Any = wordllama.WordLlama.load(dim=256, cache_dir=wheel, disable_download=True)

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        embeddings: list[Embedding] = self._model.embed(list(texts), norm=True).tolist()
        return embeddings

    async def embed_query(self, text: str) -> Embedding:
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        """Nothing is open."""
