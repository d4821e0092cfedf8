"""Row: push → found in the long-term memory, by words and by meaning, long before anything is summarized."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Final

from context_builder.assembly.turn import DEFAULT_TENANT
from context_builder.demo import load_demo
from context_builder.engines.embeddings import MODEL, EmbeddingEngine
from context_builder.memory.engine_embedder import EngineEmbedder
from context_builder.memory.memory import MemoryFilter, MemoryQuery
from context_builder.memory.postgres import PostgresMemory
from context_builder.wiring.embedded import embedded_database
from scripts.benches.daemon.observer import Observer
from scripts.benches.daemon.processes import PATIENCE, BenchError
from scripts.benches.daemon.stage import Scale, Stage
from scripts.benches.daemon.table import Line, milliseconds, p50_p95

BY_WORDS: Final = "full_text"
BY_MEANING: Final = "vector"
GOALS: Final = {BY_WORDS: 1.0, BY_MEANING: 5.0}
"""Seconds, of 95 messages in 100."""

SPOKEN_RATE: Final = 2.0
CROWD_RATE: Final = 200.0
"""Messages a second."""

CROWD_SAMPLE: Final = 50
"""Of so many messages of a crowd, one is looked for."""

LOOK_EVERY: Final = 0.02
MANY: Final = 100


def findable(stage: Stage, scale: Scale) -> Iterator[Line]:
    """The embedded engine embeds beside it, on the same cores."""
    with _embedding_engine(stage):
        found = asyncio.run(_found(stage, scale.conversations, SPOKEN_RATE, sample=1, by=(BY_WORDS, BY_MEANING)))
        yield _line("by words, one session", BY_WORDS, found)
        yield _line("by meaning, one session", BY_MEANING, found)
        crowd = asyncio.run(_found(stage, scale.conversations, CROWD_RATE, sample=CROWD_SAMPLE, by=(BY_WORDS,)))
        yield _line(f"by words, {CROWD_RATE:.0f} messages/s", BY_WORDS, crowd)


def _line(what: str, origin: str, found: dict[str, list[float]]) -> Line:
    samples = found[origin]
    p50, p95 = p50_p95(samples)
    values = {"p50_s": p50, "p95_s": p95}
    return Line(f"{what} (n={len(samples)})", milliseconds(p50, p95), p95 <= GOALS[origin], values=values)


@contextmanager
def _embedding_engine(stage: Stage) -> Iterator[None]:
    engine = EmbeddingEngine(stage.home)
    engine.ensure()
    try:
        yield
    finally:
        engine.stop()


async def _found(stage: Stage, samples: int, rate: float, *, sample: int, by: Sequence[str]) -> dict[str, list[float]]:
    """Seconds from the push of every ``sample``-th message until a search finds it ``by`` each of these."""
    url, session = await embedded_database(stage.home).start(), stage.new_session()
    embedder = EngineEmbedder(MODEL, lambda: EmbeddingEngine(stage.home).ensure().url, lambda: None)
    stores = {BY_WORDS: PostgresMemory(url), BY_MEANING: PostgresMemory(url, embedder)}
    try:
        with stage.observer(session) as observer, stage.daemon(session, embedded_embeddings=True):
            speech = _Speech(observer, stores, embedder)
            await speech.said_and_found(by)  # everything is loaded, which is not measured
            looking: list[asyncio.Task[list[float]]] = []
            due = time.monotonic()
            for turn in range(samples * sample):
                if turn % sample == 0:
                    looking.append(asyncio.create_task(speech.said_and_found(by)))
                else:
                    speech.say()
                due += 1 / rate
                await asyncio.sleep(due - time.monotonic())
            taken = await asyncio.gather(*looking)
    finally:
        for store in stores.values():
            await store.close()
    return {origin: list(seconds) for origin, seconds in zip(by, zip(*taken, strict=True), strict=True)}


class _Speech:
    """Says the demo's talk in a session, each message with a word of its own, and looks for what was said."""

    def __init__(self, observer: Observer, stores: Mapping[str, PostgresMemory], embedder: EngineEmbedder) -> None:
        self._observer = observer
        self._stores = stores
        self._embedder = embedder
        self._texts = cycle(said.text for said in load_demo())

    def say(self) -> str:
        """Push the next message; return its word."""
        word = f"sample{self._observer.number + 1:06}"
        self._observer.text = f"{next(self._texts)} {word}"
        self._observer.push()
        return word

    async def said_and_found(self, by: Sequence[str]) -> list[float]:
        """Push the next message; return the seconds until it is found by each of these."""
        pushed = time.monotonic()
        word, text = self.say(), self._observer.text or ""
        return list(await asyncio.gather(*(self._found(origin, word, text, pushed) for origin in by)))

    async def _found(self, origin: str, word: str, text: str, pushed: float) -> float:
        where = MemoryFilter(session_id=self._observer.session_id)
        query = MemoryQuery(word, filter=where)
        if origin == BY_MEANING:  # much of what is said is alike
            query = MemoryQuery("", MANY, filter=where, embedding=await self._embedder.embed_query(text))
        while not any(
            word in hit.memory.text and origin in hit.origins
            for hit in await self._stores[origin].search(DEFAULT_TENANT, query)
        ):
            if time.monotonic() > pushed + PATIENCE:
                raise BenchError(f"waited {PATIENCE:g} s until {word} was found by {origin}")
            await asyncio.sleep(LOOK_EVERY)
        return time.monotonic() - pushed
