"""Where memories are measured: a PostgreSQL of our own, and an embedding model behind a server."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from context_builder.database.migrations import apply
from context_builder.engines.postgres import PostgresEngine
from context_builder.memory.embedder import Embedder
from context_builder.memory.postgres import PostgresMemory
from context_builder.memory.rows import embedding_text
from context_builder.memory.sql_memory import SearchOptions
from scripts.benches.memory.bm25 import Bm25, Bm25AndDense
from scripts.benches.memory.contexts import Way, ranked, stored
from scripts.benches.memory.corpus import Corpus, conversations, passages
from scripts.benches.memory.embeddings import PROGRAM, serve_embeddings
from scripts.benches.memory.vectors import KeptEmbedder
from scripts.benches.prompts.options import Options
from scripts.benches.shared.report import Report

PATIENCE: Final = 60.0
"""Seconds for a statement, or for a query's embedding, on a machine that may be busy."""


@contextmanager
def database(kept: Path | None = None) -> Iterator[str]:
    """The URL of a real PostgreSQL of our own; what it holds stays in the folder ``kept``."""
    with tempfile.TemporaryDirectory(prefix="context-builder-memory-") as folder:
        home = kept or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o755)
        engine = PostgresEngine(home)
        try:
            yield engine.ensure().url
        finally:
            engine.stop()


@dataclass(frozen=True)
class Stage:
    """Memories that are kept at ``url``, each corpus a tenant of its own; found by words alone without an embedder."""

    url: str
    talks: list[Corpus]
    texts: Corpus
    embedder: Embedder | None

    @property
    def asked(self) -> str:
        return f"{sum(len(talk.questions) for talk in self.talks)} questions, {len(self.talks)} conversations"

    def by_words(self) -> Stage:
        return Stage(self.url, self.talks, self.texts, None)

    def store(self, options: SearchOptions | None = None) -> PostgresMemory:
        return PostgresMemory(self.url, self.embedder, options, timeout=PATIENCE, query_time=PATIENCE)

    async def remember(self, corpora: Iterable[Corpus]) -> None:
        store = self.store()
        for corpus in corpora:
            if self.embedder is not None:
                await self.embedder.embed([embedding_text(memory) for memory in corpus.memories])
            await store.remember(corpus.tenant, corpus.memories)

    def ours(self, options: SearchOptions | None = None) -> Way:
        store = self.store(options)
        return Way(lambda corpus: stored(store, corpus))

    async def baseline(self) -> Way:
        """BM25; with the cosine of embeddings, fused by reciprocal rank, where there are any."""
        if (embedder := self.embedder) is None:
            return Way(lambda corpus: ranked(Bm25(corpus.memories)))
        rankings = {
            corpus.tenant: Bm25AndDense(
                corpus.memories, embedder, await embedder.embed([embedding_text(memory) for memory in corpus.memories])
            )
            for corpus in (*self.talks, self.texts)
        }
        return Way(lambda corpus: ranked(rankings[corpus.tenant]))


@asynccontextmanager
async def open_stage(options: Options, report: Report) -> AsyncIterator[Stage | None]:
    """All conversations and passages, remembered; none where they are missing."""
    talks, texts = conversations(options, report), passages(options, report)
    if not talks or not texts.questions:
        yield None
        return
    with database() as url, serve_embeddings() if options.embeddings else nullcontext() as served:
        await apply(url)
        embedder = KeptEmbedder(served, options.cache) if served else None
        if served is None and options.embeddings:
            report.notes.append(f"With embeddings: not measured, {PROGRAM} is not installed.")
        stage = Stage(url, talks, texts, embedder)
        try:
            await stage.remember([*talks, texts])
            yield stage
        finally:
            if embedder is not None:
                await embedder.close()
