"""Keeping what leaves the prompt, beside the turns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import structlog

from context_builder.assembly import summary
from context_builder.assembly.background import Background
from context_builder.assembly.govern import WITHHELD, Governor
from context_builder.assembly.phases import Metrics
from context_builder.assembly.recollection import Recollection, TurnMemory
from context_builder.assembly.rules import AssemblyRules
from context_builder.assembly.tally import Message
from context_builder.assembly.tracing import span
from context_builder.assembly.turn import Turn

log = structlog.get_logger(__name__)

Summarizer = Callable[[Sequence[Message]], Awaitable[str]]
"""Sums up messages in its own words, such as an analyst does; what it raises is answered by the extract."""

Key = tuple[str, str | None, str | None, str]
"""A summary that is kept: in which memory, of which tenant and session, and its extract."""

_REMEMBERED = 4_096


class SummaryKeeper:
    """Summarizes what was trimmed from histories and remembers it, the same summary once in each memory."""

    def __init__(
        self,
        memories: Sequence[TurnMemory],
        rules: AssemblyRules,
        metrics: Metrics,
        governor: Governor,
        *,
        summarizer: Summarizer | None = None,
    ) -> None:
        self._memories = memories
        self._rules = rules
        self._metrics = metrics
        self._governor = governor
        self._summarizer = summarizer
        self._background = Background(most=rules.background_max, timeout=rules.background_timeout)
        self._kept: dict[Key, None] = {}

    async def drain(self) -> None:
        """Wait for what is being kept."""
        await self._background.drain()

    def keep(self, turn: Turn, trimmed: Sequence[Message], now: datetime, *, into: Collection[str]) -> None:
        """Begin to keep ``trimmed``, the oldest of the turn's history, redacted, in the memories of these names."""
        text = summary.extract(self._shown(trimmed), self._rules.summary_chars)
        keys = {(memory.name, turn.tenant_id, turn.session_id, text): memory for memory in self._memories}
        wanting = {key: memory for key, memory in keys.items() if memory.name in into and key not in self._kept}
        if not text or not wanting:
            return
        if self._background.start("keep summary", self._store(turn, trimmed, text, now, wanting)):
            self._kept.update(dict.fromkeys(wanting))
            while len(self._kept) > _REMEMBERED:
                del self._kept[next(iter(self._kept))]

    async def _store(
        self,
        turn: Turn,
        trimmed: Sequence[Message],
        extract: str,
        now: datetime,
        wanting: Mapping[Key, TurnMemory],
    ) -> None:
        text = await self._summarized(trimmed) or extract
        recollection = summary.recollection(
            turn, text, trimmed_from=len(turn.history), trimmed_to=len(turn.history) - len(trimmed), now=now
        )
        with span("summary"):
            tries = (self._remember(key, memory, recollection) for key, memory in wanting.items())
            results = await asyncio.gather(*tries, return_exceptions=True)
        failures = [failure for failure in results if failure is not None]
        if len(failures) < len(wanting):
            self._metrics.inc_snippets("summary", 1)
        if failures:
            raise failures[0]

    async def _remember(self, key: Key, memory: TurnMemory, recollection: Recollection) -> None:
        try:
            await memory.remember(recollection)
        except BaseException:
            self._kept.pop(key, None)  # the next turn tries again
            raise

    def _shown(self, messages: Iterable[Message]) -> Iterator[Message]:
        shown = (self._governor.message(message).value for message in messages)
        return (message for message in shown if message["content"] != WITHHELD)

    async def _summarized(self, trimmed: Sequence[Message]) -> str:
        if self._summarizer is None:
            return ""
        try:
            async with asyncio.timeout(self._rules.background_timeout / 2):
                text = await self._summarizer(list(self._shown(trimmed)))
        except Exception as error:  # noqa: BLE001 a summarizer of any kind; there is the extract
            log.warning("summary.failed", error=type(error).__name__)
            return ""
        return (self._governor.text(text).text or "")[: self._rules.summary_chars]
