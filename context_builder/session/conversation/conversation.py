"""A conversation is pure state: messages, results and moments go in, the published state comes out; no I/O, no clock.

The same events in the same order always give the same conversation, so it can be tested without
sleeping and continued from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf
from typing import Final, TypeVar

from context_builder.analysis.analyst import (
    CompactionResult,
    DomainResult,
    KeywordResult,
    SummaryRequest,
    SummaryResult,
)
from context_builder.analysis.text.words import Recurrence
from context_builder.clock import Instant
from context_builder.costs import Usage
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.domains import DomainTracker
from context_builder.session.conversation.keywords import KeywordBatches
from context_builder.session.conversation.memory_batch import StruckMessage, memory_batch
from context_builder.session.conversation.responses import Responses
from context_builder.session.conversation.revisions import Revisions
from context_builder.session.conversation.summary_scheduler import SummaryScheduler
from context_builder.session.conversation.tasks import (
    AnalysisResult,
    AnalysisTask,
    CompactionTask,
    DomainTask,
    FailingTasks,
    KeywordTask,
    SummaryTask,
    UsageTotals,
    task_of,
)
from context_builder.session.keys import RECEIVERS, Receiver, dead_count_field
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.session.messages.message_index import INDEXED, index_entries
from context_builder.session.messages.revision import Revision
from context_builder.session.summary.rolling_summary import Summary
from context_builder.session.summary.token_budget import TokenBudget

MOST_COMPACTIONS: Final = 2
"""Rewritings after one summary, each of other points."""

T = TypeVar("T", KeywordTask, DomainTask, SummaryTask, CompactionTask)

KEYWORD_CONTEXT: Final = 2
"""Messages before one that is asked about, which tell what "it" is."""

KNOWN_SHARE: Final = 0.25
"""Part of a summary call's room that known points may take; with the default budgets, all of them fit."""


class Conversation:
    """The buffer, domains, rolling summary and silence of one session.

    Published times are epoch seconds; what is measured (ages, silence, intervals) runs on the monotonic
    clock. ``count_tokens`` measures texts against the budgets in ``rules``.
    """

    def __init__(self, session_id: str, rules: SessionConfig, now: Instant, count_tokens: Callable[[str], int]) -> None:
        self.session_id = session_id
        self.rules = rules
        self.buffer = Buffer(rules.buffer_max, rules.buffer_max_bytes)
        self.summary = Summary(TokenBudget(rules.summary_budget, rules.summary_growth), count_tokens)
        self.responses = Responses(rules.consilience_max, rules.buffer_max_bytes)
        self.analysts: dict[str, str | None] = {"keywords": None, "domains": None, "summary": None}
        self.usage_totals = UsageTotals()
        self.failing = FailingTasks()
        self.received = 0
        self.dead_letters = 0
        self.undeliverable: dict[Receiver, int] = dict.fromkeys(RECEIVERS, 0)
        self.highest_number = 0
        self.since_summary = 0
        self.last_message = self.last_summary = now
        self.ended_at: float | None = None
        self.last_id = 0
        self._changes = Changes()
        self._batches = KeywordBatches(rules)
        self._recurrence = Recurrence()
        self.domain_tracker = DomainTracker(rules, self.buffer, now)
        self._may_compact = self._compacting = False
        self._compacted: list[frozenset[int]] = []
        self._summary_scheduler = SummaryScheduler(rules, self.buffer, count_tokens)
        self._under_way: dict[int, AnalysisTask] = {}
        self._dismissed: dict[int, AnalysisTask] = {}
        self._compaction_is_stale = False
        self.revisions = Revisions(
            session_id,
            rules,
            self.buffer,
            self.responses,
            self.summary,
            self.domain_tracker,
            self._summary_scheduler,
        )

    def receive(self, messages: Iterable[Message], now: Instant) -> list[BufferedMessage]:
        """Take in messages that were never seen before, in the order they arrived; return their entries."""
        entries = []
        for message in messages:
            self.last_id += 1
            entry = BufferedMessage(self.last_id, message, now)
            if not message.consilience and (name := self.revisions.names.get(message.speaker)):
                entry.revise(speaker=name)
            if message.consilience:
                self.responses.add(entry, message, self._changes)
            elif message.number is not None:
                self.highest_number = max(self.highest_number, message.number)
            self.buffer.insert(entry)
            self._changes.put(entry)
            entries.append(entry)
            self.received += 1
            self.since_summary += 1
            self.domain_tracker.new += 1
            self.last_message = now
            self.ended_at = None
        self.buffer.age(now, self.rules.buffer_window)
        self._move_to_pending()
        self._changes.mark()
        return entries

    def revise(self, revisions: Iterable[Revision], now: Instant) -> list[BufferedMessage]:
        """Apply corrections, strikes and renames; return the entries of the buffer that say something else now.

        After a strike, tasks under way come to nothing: what was struck may be in their results.
        """
        # What is being rewritten may quote what is corrected here, so the rewriting under way is not taken in.
        self._compaction_is_stale = self._compacting
        before = len(self.buffer.entries)
        revised = self.revisions.apply(revisions, now, self._changes)
        self.since_summary -= before - len(self.buffer.entries)
        if self._changes.struck:
            self._dismiss_tasks()
        self._move_to_pending()
        return revised

    @property
    def was_revised(self) -> bool:
        """Return whether anything was corrected, struck or renamed since the last commit."""
        return self._changes.revised

    @property
    def struck(self) -> Sequence[tuple[StruckMessage, str]]:
        """Return the messages that were struck since the last commit, each with its text, as far as that is known."""
        return self._changes.struck

    def _dismiss_tasks(self) -> None:
        # A call to a model cannot be taken back. Its outcome still comes, is charged for, and says nothing.
        self._dismissed |= self._under_way
        self._under_way = {}
        self._batches.dismiss()
        self._summary_scheduler.dismiss()
        self._may_compact, self._compacting = self._may_compact or self._compacting, False

    def dismissed(self, task: AnalysisTask) -> bool:
        """Return once whether a task came to nothing, because something was struck while it was done."""
        self._under_way.pop(id(task), None)
        return self._dismissed.pop(id(task), None) is not None

    def _begun(self, task: T) -> T:
        self._under_way[id(task)] = task
        return task

    def count_dead_letters(self, count: int) -> None:
        """Count deliveries that could not become messages."""
        self.dead_letters += count
        self._changes.mark()

    def dead_lettered(self, receiver: Receiver, count: int) -> None:
        """Note that so many entries of an outbox have become dead letters."""
        self.undeliverable[receiver] = count
        self._changes.mark()

    def charge(self, task: str, usage: Usage, now: Instant) -> None:
        """Add the usage of a call beside the session's tasks."""
        self.usage_totals.add(task, usage, now.wall)
        self._changes.mark()

    def finish(self, task: AnalysisTask, result: AnalysisResult, now: Instant) -> None:
        """Fold in the result of a task that was handed out."""
        self._under_way.pop(id(task), None)
        if isinstance(task, KeywordTask) and isinstance(result, KeywordResult):
            self._fold_keywords(task, result)
        elif isinstance(task, DomainTask) and isinstance(result, DomainResult):
            self._fold_domains(task, result, now)
        elif isinstance(task, SummaryTask) and isinstance(result, SummaryResult):
            self._fold_summary(task, result, now)
        elif isinstance(task, CompactionTask) and isinstance(result, CompactionResult):
            self._fold_compaction(task, result, now)
        else:
            raise TypeError(f"{type(result).__name__} does not answer {type(task).__name__}")
        if not _is_stopgap(task, result) and self.failing.succeeded(task_of(task)):
            self._changes.mark()
        self._charge(task, result.usage, now)

    def fail(
        self,
        task: AnalysisTask,
        now: Instant,
        retry_after: float | None = None,
        usage: Usage | None = None,
        reason: str = "",
    ) -> None:
        """Note that a task failed; it is handed out again after a while, a summary when that is worth it.

        ``usage`` is what it cost all the same. Without a ``reason`` nobody was asked, so nothing new is known to fail.
        """
        self._under_way.pop(id(task), None)
        if reason:
            self.failing.failed(task_of(task), now, reason, usage)
            self._changes.mark()
        if usage is not None:
            self._charge(task, usage, now)
        if isinstance(task, KeywordTask):
            self._batches.failed(task.messages, now)
        elif isinstance(task, DomainTask):
            self.domain_tracker.failed(now)
        elif isinstance(task, SummaryTask):
            self._summary_scheduler.failed(task, now, retry_after)
            self.revisions.given_up()
        else:
            self._compacting = False  # it is asked for again after the next summary

    def close(self) -> None:
        """Summarize everything from here on without waiting for its age."""
        self._summary_scheduler.close()

    def resume(self) -> None:
        """Note that a process goes on with the session, as a revision of its own: no two states have the same."""
        self._changes.mark()

    def end(self, now: Instant) -> None:
        """Note that the session was closed on purpose; a new message opens it again."""
        self.ended_at = now.wall
        self._changes.mark()

    def everything_changed(self) -> None:
        """Let the next commit write down all that this process holds."""
        for entry in self.buffer.ordered():
            self._changes.put(entry)
        self._changes.put_departed(self.buffer)
        for entry_id, record in self.responses.records.items():
            self._changes.put_response(entry_id, record)
        for source in self.summary.sources.values():
            self._changes.put_source(source)
        if self.summary.seq:
            self._changes.put_summary(self.summary)
        for entry_id, correction in self.revisions.pending_corrections.items():
            self._changes.put_correction(entry_id, correction)
        for entry in self._summary_scheduler.to_summarize_again:
            self._changes.put_again(entry)
        self.index_at_least()
        for receiver, count in self.undeliverable.items():
            self._changes.fields[dead_count_field(receiver)] = b"%d" % count
        self._changes.mark()

    def summarize_again(self, entry: BufferedMessage) -> None:
        """Have a summarized message summarized again, as a checkpoint says that it is to be."""
        self._summary_scheduler.summarize_again(entry)

    def index_at_least(self) -> None:
        """Let the next commit put the messages of the buffer into the message index, as far as they are not there."""
        for entry in (one for one in self.buffer.ordered() if one.id > self.last_id - INDEXED):
            self._changes.index_at_least |= index_entries(entry.id, entry.as_message(), entry.identity)

    def pending_lost(self) -> int:
        """Note that the pending list turned out to be empty; return how many messages were counted in it."""
        lost = self.buffer.lose_pending()
        self.since_summary -= lost
        self._changes.mark()
        return lost

    def take_changes(self) -> Changes:
        """Return what changed since the last call; the caller writes it down."""
        if self._changes.revised:
            self.revisions.flush(self.domain_tracker.topic.active, self._changes)
        changes, self._changes = self._changes, Changes()
        return changes

    def next_keyword_task(
        self, now: Instant, *, more_to_come: bool = False, most: int | None = None, longest: int | None = None
    ) -> KeywordTask | None:
        """Return the oldest published messages without keywords, if a call is due, at most ``most`` and of at most
        ``longest`` characters.

        With domains that were asked for at this very moment they go out at once: one call may answer both. When
        there is ``more_to_come`` they wait a little for company. A task with a limit is to be done before anything
        else happens.
        """
        if now.monotonic < self._batches.retry_at:
            return None
        together = self.domain_tracker.was_asked_at(now)
        batch = self._batches.next(
            self.buffer.without_keywords(), now, at_once=together, more_to_come=more_to_come, most=most, longest=longest
        )
        if not batch:
            return None
        if longest is not None:  # and so without a model, which alone reads what was said before
            return self._begun(KeywordTask([entry.for_analyst(self._recurrence.counts) for entry in batch]))
        recurring = self._recurrence.counts.copy()
        return self._begun(
            KeywordTask([entry.for_analyst(recurring, self.buffer.before(entry, KEYWORD_CONTEXT)) for entry in batch])
        )

    def domains_due(self, now: Instant) -> bool:
        """Return whether enough messages or enough time have come since the last inference."""
        return now.monotonic >= self.domain_tracker.due_at()

    def next_domain_task(self, now: Instant, *, at_once: bool = False, longest: int | None = None) -> DomainTask | None:
        """Return the newest messages as a task, when one is due or ``at_once``, and they have at most ``longest``
        characters of text."""
        if not at_once and not self.domains_due(now):
            return None
        task = self.domain_tracker.next(now, self.last_id, longest)
        return None if task is None else self._begun(task)

    def summary_due(self, now: Instant) -> bool:
        """Return whether the oldest message is old enough, anything is pending, or a summary is under way."""
        return not self._summary_scheduler.running and now.monotonic >= self._summary_scheduler.due_at()

    @property
    def takes_pending_next(self) -> bool:
        """Return whether the next part of a summary is the oldest of the pending list, which the caller reads."""
        return self._summary_scheduler.takes_pending_next

    def next_summary_task(self, pending: Sequence[BufferedMessage] = ()) -> SummaryTask | None:
        """Return the next part of a summary that is due; ``pending`` when :attr:`takes_pending_next`."""
        pending = self.revisions.as_corrected(pending)
        known = self.summary.ledger.known(int(KNOWN_SHARE * self.rules.summary_input))
        part = self._summary_scheduler.next_part(pending, known)
        if part is None:
            return None
        shown = () if part.again else known
        said = [entry.for_analyst() for entry in part.entries if not entry.is_blank]
        request = SummaryRequest(said, shown, self.domain_tracker.latest.keywords)
        return self._begun(
            SummaryTask(part.entries, part.from_pending, part.last_resort, part.again, part.corrected, request=request)
        )

    def next_compaction_task(self) -> CompactionTask | None:
        """Return the oldest points of the summary as a task, where a summary has brought it near its budget.

        It is asked for after each summary, and where points stay hidden, at once for others than those asked about,
        up to :data:`MOST_COMPACTIONS` times; never beside another one.
        """
        if not self._may_compact or self._compacting:
            return None
        self._may_compact = False
        request = self.summary.ledger.compaction(apart=frozenset().union(*self._compacted))
        if request is None:
            return None
        self._compacted.append(frozenset(point.id for point in request.points))
        self._compacting, self._compaction_is_stale = True, False
        return self._begun(CompactionTask(request))

    def next_moment(self, now: Instant, *, can_start_tasks: bool = True, ticks: bool = True) -> float:
        """Return the monotonic time at which something is due by itself; no tasks unless ``can_start_tasks``, and
        neither tick nor silence unless it ``ticks``.
        """
        moments = [now.monotonic + self.rules.tick] if ticks else [inf]
        if can_start_tasks:
            moments += [self._batches.due_at, self.domain_tracker.due_at()]
        if can_start_tasks and not self._summary_scheduler.running:
            moments.append(self._summary_scheduler.due_at())
        if ticks and (silent_in := self.silent_in(now)) > 0:
            moments.append(now.monotonic + silent_in)
        return max(now.monotonic, min(moments))

    def silent_in(self, now: Instant) -> float:
        """Return the seconds until silence begins, when the threshold has been exceeded; less than 0 if it has."""
        return self.last_message.monotonic + self.rules.silence + 0.001 - now.monotonic

    @property
    def has_changed(self) -> bool:
        """Return whether there is anything to write down."""
        return self._changes.dirty

    @property
    def all_summarized(self) -> bool:
        """Return whether no message waits to be summarized."""
        return not (self.buffer.entries or self.buffer.pending or self._summary_scheduler.to_summarize_again)

    @property
    def has_room(self) -> bool:
        """Return whether more messages may be taken in; what waits for its summary is bounded."""
        return self.buffer.pending_bytes() < self.rules.pending_max_bytes

    @property
    def is_settled(self) -> bool:
        """Return whether no message waits to be summarized but the newest that a summary is to leave."""
        waiting = self.buffer.pending or self._summary_scheduler.to_summarize_again
        return not waiting and not self.buffer.without_newest(self.rules.summary_keep_last)

    def silent_for(self, now: Instant) -> float:
        """Return the seconds since the last message, or since the session began."""
        return max(0.0, now.monotonic - self.last_message.monotonic)

    def is_silent(self, now: Instant) -> bool:
        return self.silent_for(now) > self.rules.silence

    def active_keywords(self) -> list[str]:
        """Return the topic's keywords, then the active domains: monitors match items against both."""
        return [*self.domain_tracker.latest.keywords, *self.domain_tracker.topic.active]

    def _charge(self, task: AnalysisTask, usage: Usage, now: Instant) -> None:
        """Note what the task cost, and what was proposed in vain."""
        self.usage_totals.add(task_of(task), usage, now.wall)
        if usage.rejected:
            self.summary.reject(usage.rejected)
            self._changes.put_summary(self.summary)
        self._changes.mark()

    def _fold_keywords(self, task: KeywordTask, result: KeywordResult) -> None:
        self._batches.over(task.messages)
        self.analysts["keywords"] = result.analyst
        changed = []
        for said, keywords in zip(task.messages, result.keywords, strict=True):
            self._recurrence.add(keywords)
            entry = self.buffer.entries.get(said.id)
            if (
                entry is not None and entry.text == said.text
            ):  # else it was corrected meanwhile, and is asked about again
                entry.set_keywords(keywords, result.analyst)
                changed.append(entry)
        self._changed(changed)
        self._move_to_pending()

    def _fold_domains(self, task: DomainTask, result: DomainResult, now: Instant) -> None:
        self.analysts["domains"] = result.analyst
        self._changed(self.domain_tracker.fold(task, result, now))
        self._move_to_pending()

    def _move_to_pending(self) -> None:
        """Let go of what is no longer published."""
        moving = self.buffer.overflow()
        for entry in moving:
            self._changes.move_to_pending(entry)
        if moving:
            self._changes.put_departed(self.buffer)

    def _changed(self, entries: Collection[BufferedMessage]) -> None:
        for entry in entries:
            self._changes.put(entry)
        self.buffer.touched(entries)

    def _fold_summary(self, task: SummaryTask, result: SummaryResult, now: Instant) -> None:
        degraded = task.last_resort or result.degraded
        if task.again and degraded and not task.corrected:
            self._summary_scheduler.put_off(task)
            return
        entries = [entry for entry in self.revisions.as_corrected(task.entries) if not entry.is_blank]
        self._summary_scheduler.taken(task, degraded=degraded)
        self.analysts["summary"] = result.analyst
        earlier = self.summary.sources
        if task.corrected:
            update = self.summary.take_revised(entries, result, now, degraded=degraded)
            for entry in entries:
                if not any(entry.id == waiting.id for waiting in self._summary_scheduler.to_summarize_again):
                    self._changes.drop_again(entry.id)
        elif task.again:
            update = self.summary.take_again(entries, result, now)
        else:
            update = self.summary.take(entries, result, now, degraded=degraded)
            self.since_summary -= len(task.entries)
            self._changes.summarized(task.entries, from_pending=task.from_pending)
            self._changes.put_departed(self.buffer)
        update = self.revisions.summarized(entries, update, now, self._changes)
        self._changes.replace_sources(earlier, self.summary.sources)
        self._changes.put_summary(self.summary)
        self.last_summary = now
        self._may_compact, self._compacted = True, []
        if self.rules.archives:
            self._changes.archive(self.summary.row(self.session_id, entries, self.domain_tracker.topic.active))
        if self.rules.feed_memory:
            said = () if task.again else entries
            self._changes.remember(
                memory_batch(self.session_id, said, update, self.summary.ledger.points, self.responses.records)
            )

    def _fold_compaction(self, task: CompactionTask, result: CompactionResult, now: Instant) -> None:
        self._compacting = False
        self._may_compact = self._may_compact or len(self._compacted) < MOST_COMPACTIONS
        if self._compaction_is_stale:
            return
        earlier = self.summary.sources
        self.summary.compact(task.request.points, result, now)
        self._changes.replace_sources(earlier, self.summary.sources)
        self._changes.put_summary(self.summary)


def _is_stopgap(task: AnalysisTask, result: AnalysisResult) -> bool:
    """Return whether the last resort made the result, which says nothing of what fails."""
    return isinstance(task, SummaryTask) and isinstance(result, SummaryResult) and (task.last_resort or result.degraded)
