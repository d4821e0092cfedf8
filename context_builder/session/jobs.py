"""Jobs run analysis beside the loop: a task goes to an analyst, its result comes back as an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import cache
from typing import Any, Final

import structlog

from context_builder import metrics
from context_builder.analysis.analyst import (
    Analyst,
    CompactionResult,
    DomainResult,
    KeywordResult,
    ReadAtOnce,
    ReadBoth,
    SummaryRequest,
    SummaryResult,
)
from context_builder.analysis.fallback import BreakerOpen
from context_builder.clock import Clock, Instant
from context_builder.costs import Usage, count_usage
from context_builder.errors import AnalystError, AnalystUnavailable, OverBudget, ReplyInvalid
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.domains import DomainGate
from context_builder.session.conversation.tasks import (
    AnalysisResult,
    AnalysisTask,
    CompactionTask,
    DomainTask,
    KeywordTask,
    SummaryTask,
    task_of,
)
from context_builder.session.events import PhaseChanged, SessionEvent, TaskStarted
from context_builder.session.failures import raise_what_ends_the_task, reason_of
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.store.store import SessionStore
from context_builder.session.stored import reading
from context_builder.values import value

log = structlog.get_logger(__name__)

MOST_USELESS: Final = 3
"""Unusable summaries in a row, the last of which is replaced by one of the last resort."""


@value
class TaskOutcome:
    """Tells how a task ended: with a ``result``, or with the seconds until another try is worth it (``retry_after``)
    and what it cost all the same (``usage``), where these are known, and why; no ``reason`` where nobody was asked.
    """

    task: AnalysisTask
    result: AnalysisResult | None
    retry_after: float | None = None
    usage: Usage | None = None
    reason: str = ""

    @property
    def spent(self) -> Usage | None:
        """Return what the task cost, with a result or without; None where that is not known."""
        return self.usage if self.result is None else self.result.usage


class Jobs:
    """Runs the analysis of one session, at most ``rules.jobs`` calls at once, and delivers what comes of it.

    With ``rules.domain_skip``, and a model to spare, domains are asked for through a :class:`DomainGate`.
    """

    def __init__(
        self,
        analyst: Analyst,
        last_resort: Analyst,
        rules: SessionConfig,
        deliver: Callable[[TaskOutcome], None],
    ) -> None:
        self._analyst = analyst
        self._last_resort = last_resort
        self._limit = rules.jobs
        self._deliver = deliver
        skips = rules.domain_skip and analyst is not last_resort
        self._gate = DomainGate(last_resort) if skips else None
        self.reader_at_once = analyst.read_at_once
        """What reads a few short messages while the loop waits, where the analyst has that."""
        self.can_count = False
        """Whether the tokenizer, which is loaded beside the loop, can count tokens."""
        self._useless = 0
        self._running: set[asyncio.Task[None]] = set()
        self._told: dict[str, str] = {}

    @property
    def have_room(self) -> bool:
        return len(self._running) < self._limit

    @property
    def can_start(self) -> bool:
        """Return whether any task may be started: there is room, and tokens can be counted."""
        return self.can_count and self.have_room

    @property
    def read_both(self) -> ReadBoth | None:
        """Return a function that finds keywords and domains in one call, where the analyst has one."""
        return self._analyst.read_both

    @property
    def can_compact(self) -> bool:
        """Return whether the analyst rewrites points."""
        return self._analyst.compact is not None

    def do_at_once(self, task: KeywordTask | DomainTask, read: ReadAtOnce) -> None:
        """Do a task while the caller waits; the outcome is delivered."""
        started = time.perf_counter()
        try:
            if isinstance(task, KeywordTask):
                done = TaskOutcome(task, _complete(read.keywords(task.messages), task))
            else:
                done = TaskOutcome(task, read.domains(task.messages))
        except Exception as error:  # noqa: BLE001 an analyst may be anybody's, and fail in any way
            done = self._failed(task, error, _usage_of(error))
        self._over(started, done)

    def start(self, task: AnalysisTask, tasks: asyncio.TaskGroup) -> None:
        """Start a task, whose outcome is delivered."""
        self._launch(self._do(task), task_of(task), tasks)

    def start_both(self, keywords: KeywordTask, domains: DomainTask, ask: ReadBoth, tasks: asyncio.TaskGroup) -> None:
        """Start both tasks in one call; the outcome of each is delivered."""
        self._launch(self._do_both(keywords, domains, ask), "keywords and domains", tasks)

    def cancel(self) -> None:
        """Give up everything under way; it is asked for again by the next run."""
        for task in self._running:
            task.cancel()

    def _launch(self, doing: Coroutine[Any, Any, None], name: str, tasks: asyncio.TaskGroup) -> None:
        task = tasks.create_task(doing, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _do(self, task: AnalysisTask) -> None:
        started = time.perf_counter()
        try:
            done = TaskOutcome(task, await self._read(task))
        except BaseException as error:  # noqa: BLE001 an analyst may be anybody's, and fail in any way
            raise_what_ends_the_task(error)
            done = self._failed(task, error, _usage_of(error))
        self._over(started, done)

    async def _do_both(self, keywords: KeywordTask, domains: DomainTask, ask: ReadBoth) -> None:
        started = time.perf_counter()
        try:
            keyword_result, domain_result = await self._both(keywords, domains, ask)
            done = TaskOutcome(keywords, _complete(keyword_result, keywords)), TaskOutcome(domains, domain_result)
        except BaseException as error:  # noqa: BLE001 as above
            raise_what_ends_the_task(error)
            done = self._failed(keywords, error), self._failed(domains, error, _usage_of(error))
        self._over(started, *done)

    def _over(self, started: float, *all_done: TaskOutcome) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._running.discard(task)  # before anybody hears of it: there is room for the next
        for done in all_done:
            name = task_of(done.task)
            if done.result is not None:
                self._told.pop(name, None)
            _counted(name, "failed" if done.result is None else "done").inc()
            _timed(name).observe(time.perf_counter() - started)
            if done.spent is not None and done.spent.calls:
                count_usage(name, done.spent)
            if isinstance(done.result, SummaryResult | CompactionResult):
                metrics.REJECTED_POINTS.inc(done.result.rejected)
            self._deliver(done)

    def _failed(self, task: AnalysisTask, error: BaseException, usage: Usage | None = None) -> TaskOutcome:
        """Return the outcome of a failed call, and log it unless the latest failure had the same reason."""
        name, reason = task_of(task), reason_of(error)
        if self._told.get(name) != reason:
            self._told[name] = reason
            tell = log.warning if isinstance(error, AnalystError) else log.error
            tell("analysis.failed", task=name, kind=type(error).__name__, error=reason)
        retry_after = error.retry_after if isinstance(error, AnalystUnavailable) else None
        return TaskOutcome(task, None, retry_after, usage, "" if isinstance(error, BreakerOpen) else reason)

    async def _read(self, task: AnalysisTask) -> AnalysisResult:
        if isinstance(task, SummaryTask):
            return await self._summarize(task.request, last_resort=task.last_resort)
        if isinstance(task, DomainTask):
            return await self._domains(task)
        if isinstance(task, CompactionTask):
            if (compact := self._analyst.compact) is None:
                raise AnalystUnavailable("no model rewrites points")
            return await compact(task.request)
        return _complete(await self._analyst.extract_keywords(task.messages), task)

    async def _domains(self, task: DomainTask) -> DomainResult:
        result = await self._repeated(task)
        if result is None:
            result = await self._analyst.infer_domains(task.messages)
            self._model_answered()
        return result

    async def _both(
        self, keywords: KeywordTask, domains: DomainTask, ask: ReadBoth
    ) -> tuple[KeywordResult, DomainResult]:
        repeated = await self._repeated(domains)
        if repeated is not None:
            return await self._analyst.extract_keywords(keywords.messages), repeated
        keyword_result, domain_result = await ask(keywords.messages, domains.messages)
        self._model_answered()
        return keyword_result, domain_result

    async def _repeated(self, task: DomainTask) -> DomainResult | None:
        result = await self._gate.repeated(task) if self._gate else None
        if result is not None:
            metrics.DOMAIN_CALLS_SKIPPED.inc()
        return result

    def _model_answered(self) -> None:
        if self._gate:
            self._gate.model_answered()

    async def _summarize(self, request: SummaryRequest, *, last_resort: bool) -> SummaryResult:
        """Wait for a model that fails; the last resort replaces one that is over budget, or whose answers stay
        unusable, as when it refuses.
        """
        if last_resort:
            return await self._last_resort.summarize(request)
        try:
            result = await self._analyst.summarize(request)
        except (OverBudget, ReplyInvalid) as error:
            # A model that is away is waited for. One that answers uselessly may never do better on these messages.
            self._useless += isinstance(error, ReplyInvalid)
            if isinstance(error, ReplyInvalid) and self._useless < MOST_USELESS:
                raise
            result = await self._last_resort.summarize(request)
            result = replace(result, degraded=True, usage=(error.usage or Usage()) + result.usage)
        self._useless = 0
        return result


_counted, _timed = cache(metrics.ANALYSIS.labels), cache(metrics.ANALYSIS_SECONDS.labels)


def _usage_of(error: BaseException) -> Usage | None:
    """Return what a call cost that came to nothing, where that is known."""
    return error.usage if isinstance(error, AnalystError) else None


def _complete(result: KeywordResult, task: KeywordTask) -> KeywordResult:
    """Return the result, if it is about every message."""
    if len(result.keywords) != len(task.messages):
        raise ReplyInvalid(f"keywords of {len(result.keywords)} messages for {len(task.messages)}")
    return result


PENDING_READ: Final = 500
"""Pending messages read at once for a part of a summary."""

AT_ONCE: Final = 1_000
"""Most characters that are read before they are published; the keywords of a longer text come later."""

RIDERS: Final = 3
"""Most messages whose keywords are asked for in the call for domains, which takes longer than one for keywords."""


Record = Callable[[SessionEvent, Instant], None]


class Dispatch:
    """Starts the tasks that a conversation has due."""

    def __init__(
        self, conversation: Conversation, jobs: Jobs, store: SessionStore, record: Record, clock: Clock
    ) -> None:
        self._conversation = conversation
        self._jobs = jobs
        self._store = store
        self._record = record
        self._clock = clock

    def do_at_once(self, *, more_to_come: bool) -> bool:
        """Do a task about a few short messages while the loop waits, if the analyst can; return whether there was one.

        A single commit then publishes messages, keywords and domains.
        """
        if (read := self._jobs.reader_at_once) is None:
            return False
        now = self._clock.now()
        task = self._domains(now, longest=AT_ONCE) or self._keywords(now, more_to_come=more_to_come, longest=AT_ONCE)
        if task is None:
            return False
        self._jobs.do_at_once(task, read)
        return True

    async def start(self, tasks: asyncio.TaskGroup, *, more_to_come: bool) -> None:
        """Start the due tasks, seldom ones first, so that keywords leave room for them; only to be asked after the
        messages have been published.

        With ``more_to_come``, keywords may wait a little for company; until tokens can be counted, summaries wait.
        """
        now = self._clock.now()
        # Keywords come last, since every message brings some: asked first, they would leave the others no room.
        if self._jobs.have_room:
            self._start_domains(now, tasks, more_to_come=more_to_come)
        if self._jobs.can_start and self._conversation.summary_due(now):
            summary = self._conversation.next_summary_task(await self._pending())
            self._record(TaskStarted("summary", summary), now)
            if summary is not None:
                self._jobs.start(summary, tasks)
        if self._jobs.can_start and self._jobs.can_compact:
            self._start_compaction(now, tasks)
        while self._jobs.have_room and (keywords := self._keywords(now, more_to_come=more_to_come)) is not None:
            self._jobs.start(keywords, tasks)

    def _start_domains(self, now: Instant, tasks: asyncio.TaskGroup, *, more_to_come: bool) -> None:
        """Start the domains that are due; together with a few due keywords, if the analyst can."""
        domains = self._domains(now)
        if domains is None:
            return
        read_both = self._jobs.read_both
        keywords = self._keywords(now, more_to_come=more_to_come, most=RIDERS) if read_both else None
        if read_both and keywords:
            self._jobs.start_both(keywords, domains, read_both, tasks)
        else:
            self._jobs.start(domains, tasks)

    def _start_compaction(self, now: Instant, tasks: asyncio.TaskGroup) -> None:
        if (compaction := self._conversation.next_compaction_task()) is not None:
            self._record(TaskStarted("compaction", compaction), now)
            self._jobs.start(compaction, tasks)

    def _domains(self, now: Instant, *, longest: int | None = None) -> DomainTask | None:
        domains = self._conversation.next_domain_task(now, longest=longest)
        if domains is not None:
            self._record(TaskStarted("domains", domains), now)
        return domains

    def _keywords(
        self, now: Instant, *, more_to_come: bool, most: int | None = None, longest: int | None = None
    ) -> KeywordTask | None:
        keywords = self._conversation.next_keyword_task(now, more_to_come=more_to_come, most=most, longest=longest)
        if keywords is not None:
            self._record(TaskStarted("keywords", keywords), now)
        return keywords

    async def _pending(self) -> list[BufferedMessage]:
        if not self._conversation.takes_pending_next:
            return []
        encoded = await self._store.read_pending(PENDING_READ)
        now = self._clock.now()
        if not encoded:
            session_id, lost = self._conversation.session_id, self._conversation.pending_lost()
            log.error("pending.lost", session_id=session_id, messages=lost)
            self._record(PhaseChanged("pending_lost"), now)
        with reading(self._conversation.session_id, self._store.keys.pending):
            return [BufferedMessage.decode(entry, now) for entry in encoded]
