"""What memories are measured against: BM25, alone and with the cosine of embeddings."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from operator import mul

from context_builder.memory.embedder import Embedder
from context_builder.memory.memory import Memory


def shown(memory: Memory) -> str:
    """A memory as the context shows it; the baseline's are shown alike."""
    said = f"{memory.speaker}: {memory.text}\n" if memory.speaker else f"{memory.text}\n"
    return f"[{memory.time:%I:%M %p on %d %B, %Y}] {said}" if memory.time else said


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
        deduplicate: dict[int, float] = defaultdict(float)
        for ranking in (self.places(query), sorted(range(len(alike)), key=lambda place: -alike[place])):
            for rank, place in enumerate(ranking, 1):
                deduplicate[place] += 1 / (60 + rank)
        return [self._memories[place] for place in sorted(deduplicate, key=lambda place: -deduplicate[place])]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector]
