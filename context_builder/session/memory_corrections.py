"""The long-term memory follows when messages are corrected or struck, and when speakers are renamed.

Everything may be done again: a message keeps its memory's id, and what is deleted or renamed is not found any more. Of
names that change places, each batch has one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Final

import structlog

from context_builder.errors import CannotForget
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery, TenantMemory
from context_builder.memory.preferences import KIND as PREFERENCE
from context_builder.session.conversation.memory_batch import (
    POINT,
    Amendment,
    MemoryBatch,
    StruckMessage,
    cited_by,
    preferences_in,
    with_speaker,
)

log = structlog.get_logger(__name__)

STEP: Final = 200
"""Memories that are read and written at once."""

MOST_OF_A_KIND: Final = 10_000
"""Newest points, preferences and summaries of one session that are looked through."""

HISTORY: Final = "session_summary"
"""The kind of memory that holds what left a prompt's history."""

Remember = Callable[[Sequence[Memory]], Awaitable[None]]


async def revise_memories(memory: TenantMemory, remember: Remember, part: MemoryBatch) -> None:
    """Apply what a batch revises. In a memory that cannot forget, what was struck stays, and the log says so."""
    revision = _MemoryCorrections(memory, remember, part.session_id)
    await revision.rename(part.renamed)
    for start in range(0, len(part.amended), STEP):
        await revision.amend(part.amended[start : start + STEP])
    try:
        await revision.strike(part.struck)
    except CannotForget:
        log.error("memory.struck_stay", session_id=part.session_id, messages=len(part.struck))


class _MemoryCorrections:
    def __init__(self, memory: TenantMemory, remember: Remember, session_id: str) -> None:
        self._memory = memory
        self._remember = remember
        self._session_id = session_id

    async def amend(self, amendments: Sequence[Amendment]) -> None:
        present = {one.id: one for one in amendments}
        where = MemoryFilter(session_id=self._session_id, ids=tuple(present))
        held = await self._found(where, limit=len(present))
        changed = [after for one in held if (after := present[one.id].applied(one)) != one]
        await self._keep(changed, {one.id for one in changed})

    async def rename(self, names: Sequence[tuple[str, str]]) -> None:
        """Rename speakers, one after the other."""
        if not names:
            return
        for old, new in names:
            await self._rename_messages(old, new)
        renamed = (after for one in await self._of_kind(POINT) if (after := _with_names(one, names)) != one)
        while some := list(islice(renamed, STEP)):
            await self._remember(some)
        gone = {old for place, (old, _) in enumerate(names) if old not in {new for _, new in names[place:]}}
        await self._forget([one.id for one in await self._of_kind(PREFERENCE) if one.user_id in gone])

    async def _rename_messages(self, old: str, new: str) -> None:
        where = MemoryFilter(session_id=self._session_id, kinds=("message",), speaker=old)
        before: set[str] = set()
        while held := [one for one in await self._found(where, limit=STEP) if one.id not in before]:
            before |= {one.id for one in held}
            await self._keep([with_speaker(one, old, new) for one in held], {one.id for one in held})

    async def strike(self, struck: Sequence[StruckMessage]) -> None:
        if not struck:
            return
        ids = {known for one in struck for known in (one.id, *one.points)}
        entries = {one.entry_id for one in struck}
        rested = [one.id for one in await self._of_kind(POINT) if not entries.isdisjoint(cited_by(one))]
        stated = [one.id for one in await self._of_kind(PREFERENCE) if one.metadata.get("source_message") in ids]
        histories = [one.id for one in await self._of_kind(HISTORY)]
        gone = tuple({*ids, *rested, *stated, *histories})
        of_session = MemoryFilter(session_id=self._session_id, ids=gone)  # which the record of packages loses, too
        await self._memory.store.forget(self._memory.tenant_id, filter=of_session)

    async def _keep(self, messages: Sequence[Memory], ids: set[str]) -> None:
        """Remember messages as they are now, and the preferences that they state in place of those they stated."""
        if not messages:
            return
        stated = await preferences_in(messages).settled(self._memory)
        kept = {one.id for one in stated}
        outdated = [one for one in await self._of_kind(PREFERENCE) if one.metadata.get("source_message") in ids]
        await self._remember([*messages, *stated])
        await self._forget([one.id for one in outdated if one.id not in kept])

    async def _of_kind(self, kind: str) -> list[Memory]:
        return await self._found(MemoryFilter(session_id=self._session_id, kinds=(kind,)), limit=MOST_OF_A_KIND)

    async def _found(self, where: MemoryFilter, *, limit: int) -> list[Memory]:
        found = await self._memory.search(MemoryQuery("", limit=limit, filter=where))
        return [one.memory for one in found]

    async def _forget(self, ids: Sequence[str]) -> None:
        if ids:
            try:
                await self._memory.forget(ids)
            except CannotForget:
                log.info("memory.superseded_stay", session_id=self._session_id, points=len(ids))


def _with_names(point: Memory, names: Sequence[tuple[str, str]]) -> Memory:
    for old, new in names:
        point = with_speaker(point, old, new)
    return point
