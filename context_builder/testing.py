"""Stand-ins for every protocol, and a clock that moves when told to; for tests of programs that use this package."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from statistics import fmean

from context_builder.analysis.analyst import (
    MIN_KEYWORD_TEXT,
    Analyst,
    AnalystMessage,
    DocumentRequest,
    DocumentResult,
    DomainResult,
    DraftPoint,
    KeywordResult,
    ProjectDocument,
    Quote,
    SummaryRequest,
    SummaryResult,
)
from context_builder.archive.archive import SAME_BY, RevisedSummaryRow, SummaryRow, as_record
from context_builder.clock import Instant, epoch
from context_builder.errors import AnalystError, DatabaseError
from context_builder.memory.memory import (
    Memory,
    MemoryFeedback,
    MemoryFilter,
    MemoryQuery,
    OnEmbedded,
    Rating,
    SearchResult,
)
from context_builder.memory.preferences import KIND as PREFERENCE


class ManualClock:
    """Stands still until it is moved; both clocks start at 1,700,000,000 s and 1,000 s."""

    def __init__(self) -> None:
        self._wall = 1_700_000_000.0
        self._monotonic = 1_000.0

    def now(self) -> Instant:
        return Instant(self._wall, self._monotonic)

    def advance(self, seconds: float) -> Instant:
        """Let time pass."""
        self._wall += seconds
        self._monotonic += seconds
        return self.now()

    def set_wall(self, jump: float) -> Instant:
        """Set the wall clock forward or back, as a time server may; no time passes."""
        self._wall += jump
        return self.now()


class StubAnalyst(Analyst):
    """Answers at once and predictably: long words, one fixed domain, one point a message.

    While ``failure`` is set every call raises it; while ``gate`` is cleared every call waits.
    """

    name = "stub"

    def __init__(self, name: str = "stub", domain: str = "Biology / Life Sciences") -> None:
        self.name = name
        self.domain = domain
        self.failure: AnalystError | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.keyword_calls: list[Sequence[AnalystMessage]] = []
        self.domain_calls: list[Sequence[AnalystMessage]] = []
        self.summary_calls: list[SummaryRequest] = []
        self.document_calls: list[DocumentRequest] = []

    async def _answer(self) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        self.keyword_calls.append(messages)
        await self._answer()
        return KeywordResult(tuple(_long_words(said.text) for said in messages), self.name)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        self.domain_calls.append(messages)
        await self._answer()
        return DomainResult({self.domain: 0.9}, ("topic",), self.name)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        self.summary_calls.append(request)
        await self._answer()
        points = (DraftPoint(said.text, (Quote(said.id, said.text),)) for said in request.messages)
        return SummaryResult(tuple(points), self.name)

    @property
    def project_document(self) -> ProjectDocument:
        return self._project_document

    async def _project_document(self, request: DocumentRequest) -> DocumentResult:
        """Make each passage a statement."""
        self.document_calls.append(request)
        await self._answer()
        return DocumentResult(tuple(request.passages), self.name)

    async def close(self) -> None:
        return None


class InMemoryArchive:
    """An archive in a dictionary, with the rows that a database would have. While ``failure`` is set every call raises
    it."""

    name = "memory"

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], SummaryRow] = {}
        self.superseded_by: dict[tuple[str, int], int] = {}
        self.deliveries = 0
        self.failure: DatabaseError | None = None

    async def deliver(self, row: SummaryRow) -> int:
        self.deliveries += 1
        await self.check()
        seq = self._keep(SummaryRow(**as_record(row)))
        if isinstance(row, RevisedSummaryRow):
            for key in [(name, one) for name, one in self.rows if name == row.session_id and one < seq]:
                if row.strikes and key[1] >= row.supersedes_from:
                    del self.rows[key]
                    self.superseded_by.pop(key, None)
                elif max(key[1], self.superseded_by.get(key, 0)) >= row.supersedes_from:
                    self.superseded_by[key] = seq
        return seq

    def _keep(self, row: SummaryRow) -> int:
        if (row.session_id, row.summary_seq) in self.rows:
            by_seq = {seq: kept for (session_id, seq), kept in self.rows.items() if session_id == row.session_id}
            same = [seq for seq, kept in by_seq.items() if all(getattr(kept, by) == getattr(row, by) for by in SAME_BY)]
            if same:
                return max(same)
            row = row.model_copy(update={"summary_seq": max(by_seq) + 1})
        self.rows[row.session_id, row.summary_seq] = row
        return row.summary_seq

    async def forget(self, session_id: str) -> int:
        await self.check()
        gone = [key for key in self.rows if key[0] == session_id]
        for key in gone:
            del self.rows[key]
        return len(gone)

    async def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    async def applied(self) -> None:
        return None

    async def close(self) -> None:
        return None


class InMemoryStore:
    """A memory in a dictionary, which finds memories by the words they share with the query.

    A memory's score is the fourth root of the share of the query's words that it has, as in SQL. Without a query
    everything counts as found, the newest first. While ``failure`` is set every call raises it; while ``gate`` is
    cleared every call waits.
    """

    name = "memory"
    supports_message_feed = True

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Memory]] = {}
        self.feedback: dict[str, dict[str, MemoryFeedback]] = {}
        self._ratings: dict[tuple[str, str], dict[str | None, Rating]] = {}
        self.searches: list[MemoryQuery] = []
        self.failure: DatabaseError | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def _answer(self) -> None:
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        await self._answer()
        kept = self.kept.setdefault(tenant_id, {})
        kept.update((memory.id, memory) for memory in memories if not _is_outdated(memory, kept.get(memory.id)))

    async def search(self, tenant_id: str, query: MemoryQuery) -> list[SearchResult]:
        self.searches.append(query)
        await self._answer()
        asked = _words(query.text)
        feedback = self.feedback.get(tenant_id, {})
        found = [
            SearchResult(
                memory,
                (len(asked & _words(memory.text)) / len(asked)) ** 0.25 if asked else 1.0,
                ("words",),
                feedback.get(memory.id),
            )
            for memory in [*filter(query.filter.passes, self.kept.get(tenant_id, {}).values())]
        ]
        fits = [one for one in found if one.score > 0 and one.score >= query.threshold]
        times = map(epoch, [one.memory.time for one in fits])
        newest = {one.memory.id: (time or 0.0, one.memory.position or 0) for one, time in zip(fits, times, strict=True)}
        return sorted(fits, key=lambda one: (one.score, newest[one.memory.id]), reverse=True)[: query.limit]

    async def rate(self, tenant_id: str, ratings: Sequence[Rating]) -> None:
        await self._answer()
        feedback, kept = self.feedback.setdefault(tenant_id, {}), self.kept.get(tenant_id, {})
        for rating in ratings:
            if rating.id in kept:
                by_user = self._ratings.setdefault((tenant_id, rating.id), {})
                by_user[rating.user_id] = rating
                mean = fmean(one.score for one in by_user.values())
                feedback[rating.id] = MemoryFeedback(mean, len(by_user), max(one.time for one in by_user.values()))

    async def forget(self, tenant_id: str, *, ids: Sequence[str] = (), filter: MemoryFilter | None = None) -> int:  # noqa: A002
        await self._answer()
        kept = self.kept.get(tenant_id, {})
        gone = [name for name, one in kept.items() if name in ids or (filter is not None and filter.passes(one))]
        for name in gone:
            del kept[name]
            self.feedback.get(tenant_id, {}).pop(name, None)
            self._ratings.pop((tenant_id, name), None)
        return len(gone)

    async def embed_missing(self, tenant_id: str, on_embedded: OnEmbedded | None = None) -> int:
        """Return 0: it is searched by words."""
        return 0

    async def close(self) -> None:
        return None


def _is_outdated(memory: Memory, kept: Memory | None) -> bool:
    """Return whether ``kept`` is a preference that was stated after ``memory``."""
    return kept is not None and kept.kind == PREFERENCE and bool(kept.time and memory.time and kept.time > memory.time)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _long_words(text: str) -> tuple[str, ...]:
    if len(text) < MIN_KEYWORD_TEXT:
        return ()
    return tuple(dict.fromkeys(word for word in text.split() if len(word) > 4))[:10]
