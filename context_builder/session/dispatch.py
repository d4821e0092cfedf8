"""Hands out what is to be understood, and writes down that it did."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from context_builder.clock import Clock, Instant
from context_builder.session.conversation import Conversation
from context_builder.session.entry import Entry
from context_builder.session.jobs import Jobs
from context_builder.session.recorder import HandedOut, Recorder, Turned
from context_builder.session.store import SessionStore
from context_builder.session.work import KeywordWork

log = structlog.get_logger(__name__)

PENDING_READ: Final = 500
"""Pending messages read at once for a part of a summary."""

RIDERS: Final = 3
"""With more messages than this to ask about, keywords do not wait for domains, whose answer takes longer."""


class Dispatch:
    """Starts the jobs that a conversation has work for; only to be asked after its messages have been published."""

    def __init__(
        self, conversation: Conversation, jobs: Jobs, store: SessionStore, recorder: Recorder, clock: Clock
    ) -> None:
        self._conversation = conversation
        self._jobs = jobs
        self._store = store
        self._recorder = recorder
        self._clock = clock

    async def start(self, tasks: asyncio.TaskGroup, *, more_to_come: bool, can_count: bool) -> None:
        """Start what is due. What is seldom due goes first, so that keywords leave room for it.

        With ``more_to_come``, keywords may wait a little for company; until it ``can_count`` tokens, summaries wait.
        """
        now = self._clock.now()
        if self._jobs.have_room:
            self._start_domains(now, tasks, more_to_come=more_to_come)
        if self._jobs.have_room and can_count and self._conversation.summary_due(now):
            summary = self._conversation.summary_work(await self._pending())
            self._recorder.happened(HandedOut("summary", summary), now)
            if summary is not None:
                self._jobs.start(summary, tasks)
        while self._jobs.have_room and (keywords := self._keywords(now, more_to_come=more_to_come)) is not None:
            self._jobs.start(keywords, tasks)

    def _start_domains(self, now: Instant, tasks: asyncio.TaskGroup, *, more_to_come: bool) -> None:
        """Domains that are due; together with a few keywords that are wanted now, if the analyst can."""
        domains = self._conversation.domains_work(now)
        if domains is None:
            return
        self._recorder.happened(HandedOut("domains", domains), now)
        read_both = self._jobs.read_both
        keywords = self._keywords(now, more_to_come=more_to_come, most=RIDERS) if read_both else None
        if read_both and keywords:
            self._jobs.start_both(keywords, domains, read_both, tasks)
        else:
            self._jobs.start(domains, tasks)

    def _keywords(self, now: Instant, *, more_to_come: bool, most: int | None = None) -> KeywordWork | None:
        keywords = self._conversation.keywords_work(now, more_to_come=more_to_come, most=most)
        if keywords is not None:
            self._recorder.happened(HandedOut("keywords", keywords), now)
        return keywords

    async def _pending(self) -> list[Entry]:
        if not self._conversation.takes_pending_next:
            return []
        encoded = await self._store.read_pending(PENDING_READ)
        now = self._clock.now()
        if not encoded:
            session_id, lost = self._conversation.session_id, self._conversation.pending_lost()
            log.error("pending.lost", session_id=session_id, messages=lost)
            self._recorder.happened(Turned("pending_lost"), now)
        return [Entry.decode(entry, now) for entry in encoded]
