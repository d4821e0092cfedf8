"""Messages that no longer fit the history are summarized in the background, and kept for later turns."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog

from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import WITHHELD, RedactionPolicy
from context_builder.assembly.metrics import Metrics
from context_builder.assembly.section import ChatMessage, plain
from context_builder.assembly.sources import MemoryRecord, RecordStore
from context_builder.assembly.turn import Turn
from context_builder.concurrency import Background
from context_builder.quoting import quoted_line
from context_builder.tracing import span

log = structlog.get_logger(__name__)

KIND: Final = "session_summary"
TAGS: Final = ("session_summary", "auto", "context_builder")

_BETWEEN: Final = " | "


def extract(messages: Iterable[Mapping[str, Any]], longest: int = 1024) -> tuple[str, int]:
    """Return ``role: content | role: content …`` of the first messages, and their number, in ``longest`` characters.

    A message that would be cut is left to the next extract, unless it is too long for one by itself.
    """
    parts: list[str] = []
    length = taken = 0
    for message in messages:
        if words := words_of(message):
            part = f"{_unmarked(str(message.get('role', 'user')))}: {_unmarked(words)}"
            if parts and length + len(part) > longest:
                break
            parts.append(part)
            length += len(part) + len(_BETWEEN)
        taken += 1
    return _BETWEEN.join(parts)[:longest], taken


def _unmarked(text: str) -> str:
    """Return ``text`` on one line, in which nothing looks like the beginning of another message."""
    return quoted_line(text).replace(_BETWEEN.strip(), "¦")


def words_of(message: Mapping[str, Any]) -> str:
    """Return a message's text: its content, or the texts among the parts of it."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def memory_record(turn: Turn, text: str, *, trimmed_from: int, trimmed_to: int, now: datetime) -> MemoryRecord:
    """Return the summary with the tags and metadata it is stored under."""
    return MemoryRecord(
        text=text,
        kind=KIND,
        tags=TAGS,
        metadata={"trimmed_from": trimmed_from, "trimmed_to": trimmed_to, "timestamp": now.isoformat()},
        tenant_id=turn.tenant_id,
        session_id=turn.session_id,
        persona_id=turn.persona_id,
        user_id=turn.user_id,
    )


Key = tuple[str, str | None, str | None]
"""In which memory, of which tenant and session."""

_MARK: Final = 8
_REMEMBERED: Final = 4_096


class SummaryCursor:
    """Tells which messages are summarized, by the last of them: a history may come whole or as its newest messages.

    Of the sessions last summarized only; another one's history is summarized anew from its oldest message.
    """

    def __init__(self) -> None:
        self._marks: dict[Key, tuple[int, ...]] = {}

    def place(self, key: Key, messages: Sequence[ChatMessage]) -> int:
        """Return how many of ``messages``, the oldest, are summarized."""
        mark = self._marks.get(key)
        if mark is None:
            return 0
        for end in range(len(messages), 0, -1):
            if _of(messages[end - 1]) == mark[-1]:
                before = messages[max(end - len(mark), 0) : end]
                if tuple(map(_of, before)) == mark[-len(before) :]:
                    return end
        return 0

    def go_on(self, key: Key, messages: Sequence[ChatMessage]) -> None:
        """Mark all of ``messages``, the oldest of the history, as summarized."""
        self._marks.pop(key, None)
        self._marks[key] = tuple(map(_of, messages[-_MARK:]))
        if len(self._marks) > _REMEMBERED:
            del self._marks[next(iter(self._marks))]


def _of(message: ChatMessage) -> int:
    return hash((message.get("role"), plain(message["content"])))


Summarizer = Callable[[Sequence[ChatMessage]], Awaitable[str]]
"""Sums up messages in its own words, such as an analyst does; what it raises is answered by the extract."""


AT_ONCE: Final = 4
"""Most summaries that a turn leaves; of long messages, more than one may leave a turn's prompt."""


@dataclass(frozen=True, slots=True)
class _Trimmed:
    """Messages that left a prompt: the first ``start`` are summarized, the next ``taken`` in ``extract``."""

    turn: Turn
    messages: Sequence[ChatMessage]
    start: int
    extract: str
    taken: int

    @property
    def is_due(self) -> bool:
        """Return whether the extract is full, or half of the messages are new: where a history comes as its newest
        messages alone, those would be gone before it ever is.
        """
        return self.start + self.taken < len(self.messages) or 2 * self.start <= len(self.messages)


class HistorySummarizer:
    """Summarizes the messages trimmed from histories and stores the summary, each message once in each memory.

    Of the first turn that leaves something out, as much is kept at once as a few summaries hold. Later turns go on
    from there, when a summary is full or half of what is left out is new.
    """

    def __init__(
        self,
        memories: Sequence[RecordStore],
        config: AssemblyConfig,
        metrics: Metrics,
        policy: RedactionPolicy,
        *,
        summarizer: Summarizer | None = None,
    ) -> None:
        self._memories = memories
        self._config = config
        self._metrics = metrics
        self._policy = policy
        self._summarizer = summarizer
        self._background = Background(most=config.background_max, timeout=config.background_timeout)
        self._cursor = SummaryCursor()
        self._under_way: set[Key] = set()

    async def drain(self) -> None:
        """Wait for the summaries under way."""
        await self._background.drain()

    def keep(self, turn: Turn, trimmed: Sequence[ChatMessage], now: datetime, *, into: Collection[str]) -> None:
        """Begin to summarize ``trimmed``, the oldest of the turn's history, redacted, into the named memories."""
        if not trimmed:
            return
        wanting: dict[int, dict[Key, RecordStore]] = defaultdict(dict)
        for memory in self._memories:
            key = (memory.name, turn.tenant_id, turn.session_id)
            if memory.name in into and key not in self._under_way:
                wanting[self._cursor.place(key, trimmed)][key] = memory
        for start, memories in wanting.items():
            left = self._trimmed(turn, trimmed, start)
            if left.extract and left.is_due and self._background.start("keep summary", self._keep(left, now, memories)):
                self._under_way |= memories.keys()

    def _trimmed(self, turn: Turn, trimmed: Sequence[ChatMessage], start: int) -> _Trimmed:
        return _Trimmed(turn, trimmed, start, *extract(self._shown(trimmed[start:]), self._config.summary_chars))

    async def _keep(self, left: _Trimmed, now: datetime, memories: Mapping[Key, RecordStore]) -> None:
        try:
            for _ in range(AT_ONCE):
                summarized = await self._store(left, now, memories)
                left = self._trimmed(left.turn, left.messages, summarized)
                if not (left.extract and left.is_due):
                    break
        finally:
            self._under_way -= memories.keys()

    async def _store(self, left: _Trimmed, now: datetime, memories: Mapping[Key, RecordStore]) -> int:
        """Keep the next summary, and return how many of the messages are summarized then."""
        turn, history = left.turn, len(left.turn.history)
        text = await self._summarized(left.messages[left.start :])
        summarized = left.messages if text else left.messages[: left.start + left.taken]
        record = memory_record(
            turn,
            text or left.extract,
            trimmed_from=history,
            trimmed_to=history - len(left.messages),
            now=now,
        )
        with span("context.summary"):
            tries = (self._remember(key, memory, record, summarized) for key, memory in memories.items())
            results = await asyncio.gather(*tries, return_exceptions=True)
        failures = [failure for failure in results if failure is not None]
        if len(failures) < len(memories):
            self._metrics.inc_snippets("summary", 1)
        if failures:
            raise failures[0]
        return len(summarized)

    async def _remember(
        self, key: Key, memory: RecordStore, record: MemoryRecord, summarized: Sequence[ChatMessage]
    ) -> None:
        await memory.remember(record)
        self._cursor.go_on(key, summarized)

    def _shown(self, messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
        """Yield each message as it may be kept; without content, where that may not."""
        for message in messages:
            shown = self._policy.message(message).value
            yield {**shown, "content": ""} if shown["content"] == WITHHELD else shown

    async def _summarized(self, messages: Sequence[ChatMessage]) -> str:
        if self._summarizer is None:
            return ""
        try:
            async with asyncio.timeout(self._config.background_timeout / 2):
                text = await self._summarizer([message for message in self._shown(messages) if message["content"]])
        except Exception as error:  # noqa: BLE001 a summarizer of any kind; there is the extract
            log.warning("summary.failed", error=type(error).__name__)
            return ""
        return (self._policy.text(text).text or "")[: self._config.summary_chars]
