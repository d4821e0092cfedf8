"""Embeddings that outlast the run: making them is what takes long."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from context_builder.memory.embedder import Embedder, Embedding
from scripts.benches.shared.progress import progress

BATCH: Final = 8


class KeptEmbedder:
    """Keeps every embedding by its content, in ``folder``, or without one as long as it lives.

    Implements :class:`~context_builder.memory.embedder.Embedder`.
    """

    def __init__(self, embedder: Embedder, folder: Path | None) -> None:
        self._embedder = embedder
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(":memory:" if folder is None else folder / "embeddings.sqlite")
        self._kept.execute("CREATE TABLE IF NOT EXISTS embeddings (name TEXT PRIMARY KEY, embedding BLOB)")

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        missing = [text for text in dict.fromkeys(texts) if self._recall("passage", text) is None]
        batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
        for batch in progress(batches, f"embedding {len(missing):,} texts"):
            for text, embedding in zip(batch, await self._embedder.embed(batch), strict=True):
                self._keep("passage", text, embedding)
            self._kept.commit()
        return [found for text in texts if (found := self._recall("passage", text)) is not None]

    async def embed_query(self, text: str) -> Embedding:
        if (kept := self._recall("query", text)) is not None:
            return kept
        embedding = await self._embedder.embed_query(text)
        self._keep("query", text, embedding)
        self._kept.commit()
        return embedding

    async def close(self) -> None:
        self._kept.close()
        await self._embedder.close()

    def _recall(self, kind: str, text: str) -> Embedding | None:
        found = self._kept.execute("SELECT embedding FROM embeddings WHERE name = ?", (self._named(kind, text),))
        row = found.fetchone()
        return None if row is None else array("f", row[0]).tolist()

    def _keep(self, kind: str, text: str, embedding: Embedding) -> None:
        row = (self._named(kind, text), array("f", embedding).tobytes())
        self._kept.execute("INSERT OR REPLACE INTO embeddings VALUES (?, ?)", row)

    def _named(self, kind: str, text: str) -> str:
        return sha256(f"{self._embedder.name}\n{kind}\n{text}".encode()).hexdigest()
