"""A redacting memory passes on nothing as it was said: what must not be kept is taken out before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import structlog

from context_builder.errors import DataRejected
from context_builder.memory.memory import ForwardingMemory, Memory, MemoryStore
from context_builder.redaction.redactor import RedactorProtocol, redact_nested

log = structlog.get_logger(__name__)

_NAMES: Final = frozenset({"user_id", "source_message", "cites", "messages"})
"""Metadata by which memories are found, not read."""


class RedactingMemory(ForwardingMemory):
    """Sends all that ``memory`` is to remember through ``redactor`` first, in a thread.

    What the redactor fails at is not remembered, and counted in the log; ``refuses`` has :class:`DataRejected` raised
    for it, before anything is remembered. A keyword that is no longer in a redacted
    text is dropped from all that is remembered with it. Users' ids stay: by them memories are found.
    """

    def __init__(self, memory: MemoryStore, redactor: RedactorProtocol, *, refuses: bool = False) -> None:
        super().__init__(memory)
        self._redactor = redactor
        self._refuses = refuses

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        redacted = await asyncio.to_thread(self._redacted, memories)
        if withheld := len(memories) - len(redacted):
            log.error("memory.withheld", memories=withheld, reason="the redactor failed")
            if self._refuses:
                raise DataRejected("what must not be kept cannot be taken out of it")
        if redacted:
            await self._memory.remember(tenant_id, redacted)

    def _redacted(self, memories: Iterable[Memory]) -> list[Memory]:
        pairs = [(memory, redacted) for memory in memories if (redacted := self._allowed(memory)) is not None]
        gone = {keyword for memory, redacted in pairs for keyword in _gone(memory, redacted)}
        return [_without(gone, redacted) for _, redacted in pairs]

    def _allowed(self, memory: Memory) -> Memory | None:
        """Return the memory as it may be kept; None if it may not."""
        try:
            return replace(
                memory,
                text=self._text(memory.text),
                speaker=memory.speaker and self._text(memory.speaker),
                tags=tuple(map(self._text, memory.tags)),
                metadata={
                    name: value if name in _NAMES else redact_nested(value, self._text)
                    for name, value in memory.metadata.items()
                },
            )
        except Exception as error:  # noqa: BLE001 a redactor of any kind; whatever stops it, the text stays here
            log.debug("memory.not_redacted", kind=type(error).__name__)
            return None

    def _text(self, text: str) -> str:
        redacted = self._redactor.redact(text)
        if not isinstance(redacted, str):
            raise TypeError(f"the redactor returned {type(redacted).__name__}")
        return redacted


def _gone(memory: Memory, redacted: Memory) -> Iterator[str]:
    """Yield the keywords of a message that its redacted text does not have any more."""
    if memory.text != redacted.text:
        said, left = memory.text.casefold(), redacted.text.casefold()
        for keyword in memory.metadata.get("keywords", ()):
            if keyword.casefold() in said and keyword.casefold() not in left:
                yield keyword


def _without(keywords: set[str], memory: Memory) -> Memory:
    if not keywords or "keywords" not in memory.metadata:
        return memory
    kept = [keyword for keyword in memory.metadata["keywords"] if keyword not in keywords]
    return replace(memory, metadata={**memory.metadata, "keywords": kept})
