"""Whatever happens in whatever order, every message is in exactly one place and every count is right.

The machine plays the session's part around a pure conversation: it keeps the checkpoint and the pending
list as Redis would, hands out work, answers it or lets it fail, and crashes.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import restore, write_head, write_order
from context_builder.session.conversation.tasks import AnalysisTask, DomainTask, KeywordTask, SummaryTask
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.testing import ManualClock
from tests.session.saying import BIOLOGY, advice, at, keywords_for, message, points_of, words

LIMIT = 4


@dataclass
class Stored:
    """What Redis holds; ``order`` and ``summarized`` are the machine's own books, kept in step with it."""

    fields: dict[str, bytes] = field(default_factory=dict)
    pending: list[bytes] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    summarized: list[BufferedMessage] = field(default_factory=list)


class AnyInterleaving(RuleBasedStateMachine):
    @initialize(
        keep_last=st.sampled_from([0, 2]),
        summary_input=st.sampled_from([12, 1000]),
        max_bytes=st.sampled_from([1, 800, 1_000_000]),
    )
    def begin(self, keep_last: int, summary_input: int, max_bytes: int) -> None:
        self.bounds = SessionConfig(
            buffer_max=LIMIT,
            buffer_max_bytes=max_bytes,
            summary_keep_last=keep_last,
            summary_input=summary_input,
            summary_budget=60,
            consilience_max=2,
            keyword_batch=3,
            pending_max=6,
        )
        self.clock = ManualClock()
        self.said: list[Message] = []
        self.unacknowledged: list[list[Message]] = []
        self.running: list[AnalysisTask] = []
        self.committed = Stored()
        self.live = Stored()
        self.subject = Conversation("monday", self.bounds, self.clock.now(), words)

    # What happens

    @rule(
        moments=st.lists(
            st.tuples(st.integers(0, 9), st.integers(0, 9)) | st.sampled_from(["advice", None]), max_size=7
        )
    )
    def messages_arrive(self, moments: list[tuple[int, int] | str | None]) -> None:
        batch = []
        for moment in moments:
            text = f"message {len(self.said)} says TP{len(self.said)}"
            if moment == "advice":
                batch.append(advice(text))
            elif isinstance(moment, tuple):
                batch.append(message(moment[0], text, timestamp=at(moment[1])))
            else:
                batch.append(message(None, text))
            self.said.append(batch[-1])
        self.unacknowledged.append(batch)
        self.receive(batch)

    @rule(seconds=st.sampled_from([0.5, 6.0, 31.0, 121.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule()
    def everything_is_committed(self) -> None:
        self.live.fields["head"] = write_head(self.subject)
        self.live.fields["order"] = write_order(self.subject)
        self.committed = deepcopy(self.live)
        self.unacknowledged = []

    @rule()
    def the_process_dies_and_another_continues(self) -> None:
        self.live = deepcopy(self.committed)
        self.running = []
        self.subject = restore("monday", self.live.fields, len(self.live.pending), self.bounds, self.clock.now(), words)
        for batch in self.unacknowledged:
            self.receive(batch)

    @rule(at_once=st.booleans())
    def tasks_are_started(self, at_once: bool) -> None:
        self.everything_is_committed()
        now = self.clock.now()
        summary_runs = any(isinstance(work, SummaryTask) for work in self.running)
        domains_run = any(isinstance(work, DomainTask) for work in self.running)
        pending = [BufferedMessage.decode(entry, now) for entry in self.live.pending]
        started = [
            self.subject.next_keyword_task(now),
            self.subject.next_domain_task(now) if not domains_run else None,
            self.subject.next_summary_task(pending)
            if not summary_runs and (at_once or self.subject.summary_due(now))
            else None,
        ]
        self.running += [work for work in started if work is not None]

    @precondition(lambda self: self.running)
    @rule(data=st.data(), fails=st.booleans())
    def work_is_over(self, data: st.DataObject, fails: bool) -> None:
        work = data.draw(st.sampled_from(self.running))
        self.running.remove(work)
        if fails:
            self.subject.fail(work, self.clock.now())
        else:
            self.answer(work)
        self.write_down()

    @rule()
    def the_session_closes(self) -> None:
        self.subject.close()

    # How it is kept

    def receive(self, batch: list[Message]) -> None:
        for each in batch:
            self.live.order.insert(self.place_of(each), each.text)
        self.subject.receive(batch, self.clock.now())
        self.write_down()

    def place_of(self, late: Message) -> int:
        """The contract's order: before the first listener message with a higher number and a later time."""
        by_text = {each.text: each for each in self.said}
        for index, text in enumerate(self.live.order):
            other = by_text[text]
            if late.consilience or other.consilience or late.number is None or other.number is None:
                continue
            if other.number > late.number and other.time > late.time:
                return index
        return len(self.live.order)

    def answer(self, work: AnalysisTask) -> None:
        if isinstance(work, KeywordTask):
            self.subject.finish(work, keywords_for(work, "TP"), self.clock.now())
        elif isinstance(work, DomainTask):
            self.subject.finish(work, BIOLOGY, self.clock.now())
        else:
            self.subject.finish(work, points_of(work), self.clock.now())
            self.live.summarized += [] if work.again else work.entries

    def write_down(self) -> None:
        changes = self.subject.take_changes()
        self.live.fields.update(changes.encoded_fields())
        for name in changes.dropped:
            self.live.fields.pop(name, None)
        self.live.pending += [entry.encode() for entry in changes.pending_added]
        del self.live.pending[: changes.pending_trimmed]
        buffered = {entry.text for entry in self.subject.buffer.ordered()}
        self.live.order = [text for text in self.live.order if text in buffered]

    # What holds at every moment

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        now = self.clock.now()
        places = [
            *(entry.text for entry in self.subject.buffer.ordered()),
            *(BufferedMessage.decode(encoded, now).text for encoded in self.live.pending),
            *(entry.text for entry in self.live.summarized),
        ]
        assert sorted(places) == sorted(each.text for each in self.said)

    @invariant()
    def the_buffer_is_in_the_contracts_order_and_its_published_part_bounded(self) -> None:
        assert [entry.text for entry in self.subject.buffer.ordered()] == self.live.order
        published = self.subject.buffer.published()
        assert len(published) <= LIMIT
        assert len(published) <= 1 or sum(len(e.encode()) for e in published) <= self.bounds.buffer_max_bytes

    @invariant()
    def counts_agree(self) -> None:
        subject, summarized = self.subject, len(self.live.summarized)
        assert subject.received == len(self.said)
        assert subject.summary.message_count == summarized
        assert subject.since_summary == len(self.said) - summarized
        pending = [BufferedMessage.decode(entry, self.clock.now()) for entry in self.live.pending]
        assert subject.buffer.pending == len(pending)
        assert subject.buffer.pending_tokens == sum(entry.estimated_tokens for entry in pending)
        published = len(subject.buffer.published())
        assert subject.buffer.waiting_outside() + published + summarized == len(self.said)
        assert 0 <= subject.domain_tracker.new <= subject.received

    @invariant()
    def coverage_is_the_hull_of_listener_numbers(self) -> None:
        numbers = [e.number for e in self.live.summarized if e.number is not None and not e.consilience]
        expected = [min(numbers), max(numbers)] if numbers else [0, 0]
        assert self.subject.summary.wire()["covers_messages"] == expected

    @invariant()
    def points_cite_what_was_summarized_within_the_budget(self) -> None:
        ledger = self.subject.summary.ledger
        summarized = {entry.id for entry in self.live.summarized}
        assert all(set(point.ids) <= summarized for point in ledger.points)
        assert words(ledger.render()) <= 60

    @invariant()
    def the_checkpoint_holds_the_buffer_and_the_newest_advice(self) -> None:
        ids = {int(name[2:]) for name in self.live.fields if name.startswith("m:")}
        advice_ids = {int(name[2:]) for name in self.live.fields if name.startswith("c:")}
        assert ids == set(self.subject.buffer.entries)
        assert advice_ids == set(self.subject.responses.records)
        assert len(advice_ids) <= 2

    @invariant()
    def the_loop_never_sleeps_longer_than_a_tick(self) -> None:
        now = self.clock.now()
        assert now.monotonic <= self.subject.next_moment(now) <= now.monotonic + self.bounds.tick

    def teardown(self) -> None:
        """Closed, every session comes to its end."""
        for summary in [work for work in self.running if isinstance(work, SummaryTask)]:
            self.answer(summary)
            self.write_down()
        self.subject.close()
        self.running = []
        for _ in range(2 * len(self.said) + 2):
            self.tasks_are_started(at_once=False)
            for work in self.running:
                self.answer(work)
                self.write_down()
            self.running = []
        self.every_message_is_in_exactly_one_place()
        assert self.subject.all_summarized


TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = settings(max_examples=settings.default.max_examples * 3 // 5, stateful_step_count=40)
