"""A conversation context keeps a conversation without the daemon, by the documented fields and methods."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson
import structlog

from context_builder.analysis.analyst import Analyst, AnalystMessage
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.archive.archive import Archive, SummaryRow
from context_builder.clock import Clock, SystemClock
from context_builder.errors import AnalystError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import conversation_state, take_session_state
from context_builder.session.conversation.tasks import AnalysisResult, AnalysisTask
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import CONSILIENCE, Message, delivered
from context_builder.session.messages.message_index import MessageIndex
from context_builder.tokens.counter import count_tokens

log = structlog.get_logger(__name__)


class InferredDomains(NamedTuple):
    """An inference's outcome as its context publishes it, most confident domain first."""

    domains: list[str]
    confidence: dict[str, float]
    keywords: list[str]


class ConversationContext:
    """Keeps one conversation in memory; nothing happens between calls.

    Without an ``analyst`` plain text analysis reads what is said, and summaries go to ``archive`` if there is one.
    Messages are mappings as the contract's input has them; a message that is known already changes nothing.
    What is given out are copies in the types of the published state.
    """

    def __init__(
        self,
        session_id: str,
        *,
        analyst: Analyst | None = None,
        archive: Archive | None = None,
        rules: SessionConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._analyst = analyst or TextAnalyst()
        self._archive = archive
        self._clock = clock or SystemClock()
        without_memory = replace(rules or SessionConfig(), feed_memory=False)
        self._conversation = Conversation(session_id, without_memory, self._clock.now(), count_tokens)
        self._seen: set[bytes] = set()
        self._index: dict[str, bytes] = {}
        self._pending: list[BufferedMessage] = []
        self._outbox: deque[SummaryRow] = deque()
        self._one_at_a_time = asyncio.Lock()

    @property
    def session_id(self) -> str:
        return self._conversation.session_id

    @property
    def rolling_summary(self) -> dict[str, Any]:
        """Return the rolling summary, with its ``points`` and what they cover."""
        return self._conversation.summary.wire()

    @property
    def raw_recent_buffer(self) -> list[dict[str, Any]]:
        """Return the messages that are not summarized yet, in conversation order."""
        return [orjson.loads(entry.encode()) for entry in self._conversation.buffer.published()]

    @property
    def consilience_responses(self) -> list[dict[str, Any]]:
        """Return the assistant's newest contributions."""
        return self._conversation.responses.decoded()

    @property
    def current_domains(self) -> list[str]:
        return list(self._conversation.domain_tracker.topic.active)

    @property
    def domain_confidence(self) -> dict[str, float]:
        """Return the confidence in 0..1 of each current domain."""
        return self._conversation.domain_tracker.topic.current

    @property
    def current_keywords(self) -> list[str]:
        return list(self._conversation.domain_tracker.latest.keywords)

    @property
    def last_message_time(self) -> float:
        """Return the epoch seconds of the last message's arrival; of the beginning before any."""
        return self._conversation.last_message.wall

    async def add_message(self, message: Mapping[str, Any]) -> bool:
        """Take in a message, or what corrects, strikes or renames, and find its keywords; return false when it tells
        nothing new.

        A message by the assistant is taken as such. Raises :class:`~context_builder.errors.MessageError`
        for one without text. When the analyst fails, the message stays and its keywords are asked for again with
        a later one.
        """
        now = self._clock.now()
        taken = delivered(message, now)
        if taken.identity in self._seen:
            return False
        index = MessageIndex(self.session_id, self._index, self._conversation.last_id)
        event = index.take(taken)
        if isinstance(event, Message):
            self._conversation.receive([event], now)
        elif event is not None:
            self._conversation.revise([event], now)
        self._index |= index.changed
        if taken.identity:
            self._seen.add(taken.identity)
        if event is None:
            return False
        await self._find_keywords()
        self._settle()
        return True

    async def add_consilience_response(self, response: Mapping[str, Any]) -> bool:
        """Take in a contribution of the assistant, and return false when it was known already."""
        return await self.add_message({"speaker": CONSILIENCE, **response, "type": "consilience"})

    def should_infer_domains(self) -> bool:
        """Return whether enough messages or enough time have come since the last inference."""
        return self._conversation.domains_due(self._clock.now())

    async def infer_domains(self) -> InferredDomains:
        """Infer domains from the newest messages, tag the untagged, and return what is current now.

        Without messages nothing changes. Raises :class:`AnalystError`.
        """
        async with self._one_at_a_time:
            task = self._conversation.next_domain_task(self._clock.now(), at_once=True)
            if task is not None:
                await self._carry_out(task, self._analyst.infer_domains(task.messages))
                self._settle()
            return InferredDomains(self.current_domains, self.domain_confidence, self.current_keywords)

    def should_summarize(self) -> bool:
        """Return whether the oldest message has been in the buffer for the window, or there are too many."""
        return self._conversation.summary_due(self._clock.now())

    async def update_summary(self) -> None:
        """Move everything from the buffer into the rolling summary, and archive it.

        Raises :class:`AnalystError`, losing nothing, and :class:`~context_builder.errors.DatabaseError`; what could not
        be archived is, with the next summary.
        """
        await asyncio.to_thread(count_tokens, "")  # which may load the vocabulary
        async with self._one_at_a_time:
            while (task := self._conversation.next_summary_task(self._pending)) is not None:
                await self._carry_out(task, self._analyst.summarize(task.request))
                self._settle()
            await self._compact()
            await self._deliver()

    async def extract_keywords(self, text: str) -> list[str]:
        """Return up to ten keywords of a text; none for fewer than ten characters. Raises :class:`AnalystError`."""
        result = await self._analyst.extract_keywords([AnalystMessage(0, "", text)])
        return list(result.keywords[0])

    def is_silence(self) -> bool:
        """Return whether nobody has spoken for longer than the silence threshold."""
        return self._conversation.is_silent(self._clock.now())

    def time_since_last_message(self) -> float:
        """Return the seconds since the last message."""
        return self._conversation.silent_for(self._clock.now())

    def get_conversation_state(self) -> dict[str, Any]:
        """Return what the delivery monitor reads (see the wire contract)."""
        state: dict[str, Any] = orjson.loads(conversation_state(self._conversation, self._clock.now()))
        return state

    def to_dict(self) -> dict[str, Any]:
        """Return what the orchestrator reads (see the wire contract)."""
        state: dict[str, Any] = orjson.loads(bytes(take_session_state(self._conversation, 0, self._clock.now())))
        return state

    async def _compact(self) -> None:
        """Let a model rewrite the oldest points where the summary is near its budget; otherwise whole points leave."""
        if (compact := self._analyst.compact) is None:
            return
        while (task := self._conversation.next_compaction_task()) is not None:
            try:
                await self._carry_out(task, compact(task.request))
            except AnalystError as error:
                log.warning("analysis.failed", task="compaction", kind=type(error).__name__, error=str(error))
            self._settle()

    async def _find_keywords(self) -> None:
        while (task := self._conversation.next_keyword_task(self._clock.now())) is not None:
            try:
                await self._carry_out(task, self._analyst.extract_keywords(task.messages))
            except AnalystError as error:
                log.warning("analysis.failed", task="keywords", kind=type(error).__name__, error=str(error))

    async def _carry_out(self, task: AnalysisTask, analysis: Awaitable[AnalysisResult]) -> None:
        """Fold in what the analyst makes of the task; hand it back when nothing comes, also when the caller gave up."""
        try:
            result = await analysis
        except BaseException as error:  # being cancelled, too: the task is to be done all the same, later
            usage = error.usage if isinstance(error, AnalystError) else None
            if not self._conversation.dismissed(task):
                self._conversation.fail(task, self._clock.now(), usage=usage)
            raise
        if not self._conversation.dismissed(task):
            self._conversation.finish(task, result, self._clock.now())

    def _settle(self) -> None:
        """Carry out what changed: messages that left the buffer, summaries that are to be archived."""
        changes = self._conversation.take_changes()
        self._pending = [*self._pending, *changes.pending_added][changes.pending_trimmed :]
        if blanks := {orjson.loads(blank)["id"]: blank for _, blank in changes.blanks}:
            now = self._clock.now()
            kept = (blanks.get(entry.id) or entry.encode() for entry in self._pending)
            self._pending = [BufferedMessage.decode(entry, now) for entry in kept]
        self._outbox += changes.outbox

    async def _deliver(self) -> None:
        while self._outbox:
            if self._archive is not None:
                await self._archive.deliver(self._outbox[0])
            self._outbox.popleft()
