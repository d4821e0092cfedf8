"""The analyst that needs no account: plain text analysis.

Its work is pure and runs in a thread or in another process, a portion at a time, so that the event loop stays free,
a long summary can be cancelled, and many sessions take turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    DomainResult,
    KeywordResult,
    ReadAtOnce,
    SummaryRequest,
    SummaryResult,
)
from context_builder.analysis.text.domains import score_domains
from context_builder.analysis.text.keywords import keywords, read, topic_keywords
from context_builder.analysis.text.summary import Digest, SummarySize
from context_builder.analysis.text.words import Recurrence
from context_builder.concurrency import FairTurns

NAME: Final = "text"

PORTION_CHARACTERS: Final = 8_000
"""Text worked on between two chances to cancel, about 20 ms; a portion is one message at least."""

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class TextAnalyst(Analyst):
    """Analyses plain text.

    Give it the executor that the process has for such work; otherwise it keeps one thread of
    its own, which ``close`` ends. Where the executor ``is_shared`` by many sessions, and in another
    process, they take turns, a portion each and fairly between tenants, with rests in between; it
    takes longer to ask than a short message to read, so these are read at once.
    """

    def __init__(
        self, executor: Executor | None = None, *, size: SummarySize | None = None, is_shared: bool = False
    ) -> None:
        self._own = ThreadPoolExecutor(1, "text-analysis") if executor is None else None
        self._executor = executor or self._own
        self._size = size
        self._reads_at_once = is_shared
        self._turns = FairTurns() if is_shared else None

    @property
    def name(self) -> str:
        return NAME

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        """Return the keywords of each message, preferring terms that recur among ``messages`` or did before."""
        recurring = Recurrence(before=messages[0].recurring if messages else None)
        for portion in _portions(messages):
            recurring = await self._run(_counted, recurring, portion)
        found: list[tuple[str, ...]] = []
        for portion in _portions(messages):
            found += await self._run(_keywords, recurring, portion)
        return KeywordResult(tuple(found), NAME)

    @property
    def read_at_once(self) -> ReadAtOnce | None:
        return ReadAtOnce(_keywords_at_once, _domains) if self._reads_at_once else None

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        """Return the domains and topic keywords of the messages; assistants' words count like people's."""
        return await self._run(_domains, messages)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Return the points worth keeping, each a sentence as it was said, citing its message."""
        digest = Digest(known=request.known, topic_keywords=request.topic_keywords, size=self._size)
        for portion in _portions(request.messages):
            digest = await self._run(_added, digest, portion)
        return SummaryResult(await self._run(Digest.points, digest), NAME)

    async def close(self) -> None:
        """End the analyst's own thread, if it has one; what runs in it is finished first."""
        if self._own is not None:
            await asyncio.to_thread(self._own.shutdown, cancel_futures=True)

    async def _run(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        loop = asyncio.get_running_loop()
        if self._turns is None:
            return await loop.run_in_executor(self._executor, function, *arguments)
        await self._turns.acquire()
        began = loop.time()
        try:
            return await loop.run_in_executor(self._executor, function, *arguments)
        finally:  # it rests for as long as it took, so that what comes of it holds up no messages
            loop.call_later(loop.time() - began, self._turns.release)


def _portions(messages: Sequence[AnalystMessage]) -> Iterator[Sequence[AnalystMessage]]:
    start = length = 0
    for index, said in enumerate(messages):
        if length and length + len(said.text) > PORTION_CHARACTERS:
            yield messages[start:index]
            start, length = index, 0
        length += len(said.text) + 1
    if start < len(messages):
        yield messages[start:]


def _counted(recurring: Recurrence, messages: Sequence[AnalystMessage]) -> Recurrence:
    for said in messages:
        recurring.count(read(said.text).stems)
    return recurring


def _keywords(recurring: Mapping[str, int], messages: Sequence[AnalystMessage]) -> list[tuple[str, ...]]:
    return [keywords(said.text, recurring) for said in messages]


def _keywords_at_once(messages: Sequence[AnalystMessage]) -> KeywordResult:
    here, before = _counted(Recurrence(), messages), messages[0].recurring
    recurring = {found: count + before.get(found, 0) for found, count in here.items()}  # of the rest, nobody asks
    return KeywordResult(tuple(_keywords(recurring, messages)), NAME)


def _added(digest: Digest, messages: Sequence[AnalystMessage]) -> Digest:
    digest.add(messages)
    return digest


def _domains(messages: Sequence[AnalystMessage]) -> DomainResult:
    texts = [said.text for said in messages]
    speakers = {said.speaker for said in messages}
    return DomainResult(score_domains(texts).confidence(), topic_keywords(texts, speakers), NAME)
