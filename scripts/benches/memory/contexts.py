"""What a turn's context holds of what it should: the same builder, format and limit for every way to find."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from context_builder.assembly import AssemblyConfig, ContextBuilder
from context_builder.clock import Clock, SystemClock
from context_builder.memory.memory import Memory, MemoryQuery, MemoryStore, SearchResult
from context_builder.testing import InMemoryStore, ManualClock
from context_builder.tokens.counter import TokenCounter
from scripts.benches.memory.corpus import AGAIN, Corpus
from scripts.benches.prompts.options import MODEL

BUDGETS: Final = (300, 750, 1500, 3000)
"""Tokens of the whole prompt: the question, the heading, labels and the chat format's overhead count as well."""

RULES: Final = AssemblyConfig(top_k=150, threshold=0.0, deadline=60.0, store_summaries=False)
"""As documented, but for as many memories as fit the largest limit, and time for a busy machine."""

Find = Callable[[MemoryQuery], Awaitable[list[SearchResult]]]

_COUNTER: Final = TokenCounter(MODEL)


class Searched(InMemoryStore):
    """A memory that finds by ``find``, which is asked each query once: a question's turns differ in their limit."""

    def __init__(self, find: Find) -> None:
        super().__init__()
        self._find = find
        self._found: dict[tuple[str, int, float], list[SearchResult]] = {}

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        key = (query.text, query.limit, query.threshold)
        if key not in self._found:
            self._found[key] = await self._find(query)
        return self._found[key]


def stored(store: MemoryStore, corpus: Corpus, remembered_as: str | None = None) -> Find:
    """What ``store`` finds in ``corpus``; shown as it is there, also where it is remembered as something else."""
    originals = {memory.id: memory for memory in corpus.memories}

    async def find(query: MemoryQuery) -> list[SearchResult]:
        found = await store.search(remembered_as or corpus.tenant, query)
        return [replace(one, memory=originals[one.memory.id]) for one in found]

    return find


def ranked(ranking: Callable[[str], Awaitable[list[Memory]]]) -> Find:
    """What a baseline ranks first."""

    async def find(query: MemoryQuery) -> list[SearchResult]:
        best = (await ranking(query.text))[: query.limit]
        return [SearchResult(memory, 1 - place / len(best)) for place, memory in enumerate(best)]

    return find


@dataclass(frozen=True)
class Way:
    """A way to find memories in each corpus, and to make contexts of them."""

    find: Callable[[Corpus], Find]
    rules: AssemblyConfig = RULES
    clock: Callable[[Corpus], Clock] = lambda _: SystemClock()

    def builder(self, corpus: Corpus) -> ContextBuilder:
        store = Searched(self.find(corpus))
        return ContextBuilder(store=store, token_counter=_COUNTER.count, config=self.rules, clock=self.clock(corpus))


def day_after(corpus: Corpus) -> Clock:
    """A day after the last memory; now, where none has a time."""
    times = [memory.time for memory in corpus.memories if memory.time is not None]
    if not times:
        return SystemClock()
    clock = ManualClock()
    clock.set_wall((max(times) + timedelta(days=1)).timestamp() - clock.now().wall)
    return clock


async def held(builder: ContextBuilder, corpus: Corpus, question: str, limit: int) -> list[str]:
    """The ids of the memories that a turn's context holds in full, best first.

    The prompt is made of an empty system prompt, the memories, and the question as the user's message.
    """
    context = await builder.build_for_turn({"user_message": question, "tenant_id": corpus.tenant}, limit)
    if context.debug["memory"] != "ok":
        raise RuntimeError(f"the memory must answer: {context.debug['memory']}")
    texts = {memory.id: memory.text for memory in corpus.memories}
    named = ((snippet["id"].removesuffix(AGAIN), snippet["text"]) for snippet in context.snippets)
    return [name for name, text in named if texts[name] in text]


async def evidence_recall(way: Way, talks: Sequence[Corpus]) -> list[float]:
    """Mean share of the evidence that is in the context, for each limit."""
    shares: list[list[float]] = []
    for talk in talks:
        builder = way.builder(talk)
        for question, evidence in talk.questions:
            contexts = [set(await held(builder, talk, question, limit)) for limit in BUDGETS]
            shares.append([len(evidence & context) / len(evidence) for context in contexts])
    return [statistics.fmean(column) for column in zip(*shares, strict=True)]


async def recall_at_5(way: Way, passages: Corpus) -> float:
    """Mean share of the gold passages among a context's first five, where 4,000 tokens are allowed."""
    builder = way.builder(passages)
    return statistics.fmean(
        [
            len(gold.intersection((await held(builder, passages, question, 4_000))[:5])) / len(gold)
            for question, gold in passages.questions
        ]
    )


async def figures(way: Way, talks: Sequence[Corpus], passages: Corpus) -> list[float]:
    """Evidence recall for each limit, and recall@5."""
    return [*await evidence_recall(way, talks), await recall_at_5(way, passages)]
