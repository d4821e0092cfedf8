"""A lone message waits for nobody, a crowd shares calls, and domains share a call with keywords."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from context_builder.analysis.analyst import AnalystMessage, DomainResult, KeywordResult
from context_builder.errors import AnalystUnavailable
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.tasks import KeywordTask
from context_builder.testing import ManualClock, StubAnalyst
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import conversation, hear, keywords_for


def asked(subject: Conversation, clock: ManualClock) -> list[int | None]:
    """Numbers of the messages whose keywords are asked for now."""
    work = subject.next_keyword_task(clock.now())
    return [said.number for said in work.messages] if work else []


def in_flight(subject: Conversation, clock: ManualClock) -> KeywordTask:
    """A keyword call about message 1, under way."""
    hear(subject, clock, 1)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    return work


def test_a_lone_message_goes_at_once(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_window=60.0)
    hear(subject, clock, 1)
    assert asked(subject, clock) == [1]


def test_the_first_of_several_waits_for_its_company(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_window=0.05)
    hear(subject, clock, 1)
    assert subject.next_keyword_task(clock.now(), more_to_come=True) is None
    hear(subject, clock, 2)
    assert asked(subject, clock) == [1, 2]


def test_while_a_call_is_under_way_messages_collect_for_the_window(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_window=0.05)
    in_flight(subject, clock)
    begun = clock.now().monotonic
    hear(subject, clock, 2)
    clock.advance(0.04)
    hear(subject, clock, 3)
    assert asked(subject, clock) == []
    assert subject.next_moment(clock.now()) - begun == pytest.approx(0.05)
    clock.advance(0.011)
    assert asked(subject, clock) == [2, 3]


def test_what_collected_goes_as_soon_as_the_call_is_over(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_window=60.0)
    work = in_flight(subject, clock)
    hear(subject, clock, 2, 3)
    assert asked(subject, clock) == []
    subject.finish(work, keywords_for(work, "helicase"), clock.now())
    assert asked(subject, clock) == [2, 3]


def test_a_full_batch_does_not_wait(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_window=60.0, keyword_batch=3)
    in_flight(subject, clock)
    hear(subject, clock, 2, 3, 4, 5)
    assert asked(subject, clock) == [2, 3, 4]


def test_a_backlog_goes_out_a_batch_at_a_time_two_calls_at_once(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, *range(1, 61))
    works = [subject.next_keyword_task(clock.now()) for _ in range(3)]
    assert [len(work.messages) if work else 0 for work in works] == [20, 20, 0]
    assert works[0] is not None
    subject.finish(works[0], keywords_for(works[0], "helicase"), clock.now())
    assert asked(subject, clock) == list(range(41, 61))


def test_with_hands_full_nothing_wakes_the_loop_but_the_tick(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    now = clock.advance(200)
    assert subject.next_moment(now) == now.monotonic
    assert subject.next_moment(now, can_start_tasks=False) == now.monotonic + subject.rules.tick


def test_messages_that_collect_go_with_domains_that_are_due(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_window=60.0)
    in_flight(subject, clock)
    hear(subject, clock, 2, 3, 4, 5)
    assert subject.next_domain_task(clock.now()) is not None
    assert asked(subject, clock) == [2, 3, 4, 5]


class Combining(StubAnalyst):
    """Answers keywords and domains together, or fails to."""

    def __init__(self) -> None:
        super().__init__()
        self.both: list[tuple[list[int | None], list[int | None]]] = []
        self.refusal: AnalystUnavailable | None = None

    async def read_both(
        self, keyword_messages: Sequence[AnalystMessage], domain_messages: Sequence[AnalystMessage]
    ) -> tuple[KeywordResult, DomainResult]:
        self.both.append(([said.number for said in keyword_messages], [said.number for said in domain_messages]))
        if self.refusal:
            raise self.refusal
        return await self.extract_keywords(keyword_messages), await self.infer_domains(domain_messages)


@pytest.mark.engines
async def test_domains_ride_with_keywords(live: Live) -> None:
    live.analyst = analyst = Combining()
    await live.start(domain_messages=3)
    await live.say(1, 2, 3)
    state = await live.until("both came", analyst={"keywords": "stub", "domains": "stub", "summary": None})
    assert analyst.both == [([1, 2, 3], [1, 2, 3])]
    assert all(entry["keywords"] and entry["domains"] for entry in state["raw_recent_buffer"])


@pytest.mark.engines
async def test_keywords_of_many_messages_do_not_wait_for_domains(live: Live) -> None:
    live.analyst = analyst = Combining()
    await live.start()
    await live.say(1, 2, 3, 4, 5)
    await live.until("both came", analyst={"keywords": "stub", "domains": "stub", "summary": None})
    assert not analyst.both


@pytest.mark.engines
async def test_a_combined_call_that_fails_fails_both_and_both_are_asked_again(live: Live) -> None:
    live.analyst = analyst = Combining()
    analyst.refusal = AnalystUnavailable("down")
    await live.start(domain_messages=3)
    await live.say(1, 2, 3)
    await wait_until(lambda: analyst.both, "both were asked for")
    analyst.refusal = None

    async def answered() -> bool:
        live.clock.advance(1)
        return None not in [(await live.state())["analyst"][task] for task in ("keywords", "domains")]

    await wait_until(answered, "both came after all")


@pytest.mark.engines
async def test_an_analyst_without_combined_calls_is_asked_twice(live: Live) -> None:
    await live.start()
    await live.say(1, 2, 3, 4, 5)
    await live.until("both came", analyst={"keywords": "stub", "domains": "stub", "summary": None})
    assert (len(live.analyst.keyword_calls), len(live.analyst.domain_calls)) == (1, 1)


@pytest.mark.engines
@pytest.mark.parametrize("limit", [1, 2])
async def test_a_session_has_no_more_calls_in_flight_than_it_may(live: Live, limit: int) -> None:
    session = await live.start(jobs=limit, keyword_batch=1, buffer_window=10)
    live.analyst.gate.clear()
    await live.say(1, 2, 3, 4, 5, 6)
    await live.shows(1, 2, 3, 4, 5, 6)
    live.clock.advance(10)
    calls = live.analyst
    made = [calls.keyword_calls, calls.domain_calls, calls.summary_calls]
    await wait_until(lambda: not session._jobs.have_room, "hands are full")
    assert sum(map(len, made)) <= limit
    calls.gate.set()
    await live.until("everything is summarized all the same", message_count=6)


def test_asking_when_there_is_nothing_to_ask_uses_up_no_calls(clock: ManualClock) -> None:
    subject = conversation(clock, keyword_jobs=2)
    assert [asked(subject, clock) for _ in range(5)] == [[]] * 5
    hear(subject, clock, 1)
    assert asked(subject, clock) == [1]


def test_no_more_are_asked_about_than_there_is_room_for_in_another_call(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3)
    assert subject.next_keyword_task(clock.now(), most=2) is None
    work = subject.next_keyword_task(clock.now(), most=3)
    assert work is not None
    assert len(work.messages) == 3
