"""What calls cost is added up by task; a state says which task fails, since when, why, and at what cost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from prometheus_client import REGISTRY

from context_builder.analysis.analyst import SummaryResult
from context_builder.costs import Usage
from context_builder.errors import OverBudget, ReplyInvalid
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import restore, take_session_state, write_head
from context_builder.session.conversation.tasks import SummaryTask, UsageTotals
from context_builder.testing import ManualClock
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import BIOLOGY, conversation, hear, keywords_for, points_of, spoken, words

CALL = Usage("gpt-4o-mini", prompt_tokens=100, cached_tokens=40, completion_tokens=10, calls=1, dollars=0.002)
NOON = 1_795_780_800.0


def test_what_is_published_is_what_has_been_added_up_so_far() -> None:
    spending, restored = UsageTotals(), UsageTotals()
    for task in ("keywords", "summary"):
        spending.add(task, CALL, NOON)
        assert orjson.loads(spending.encoded()) == spending.wire()
    assert restored.encoded() != spending.encoded()
    restored.restore(orjson.loads(spending.encoded()))
    assert restored.encoded() == spending.encoded()


def test_every_task_has_its_own_sum() -> None:
    spending = UsageTotals()
    spending.add("keywords", CALL, NOON)
    spending.add("keywords", CALL, NOON)
    spending.add("summary", CALL, NOON)
    told = spending.wire()
    assert told["dollars"] == pytest.approx(0.006)
    assert told["tasks"]["keywords"] == {
        "calls": 2,
        "prompt_tokens": 200,
        "cached_tokens": 80,
        "completion_tokens": 20,
        "dollars": 0.004,
    }
    assert told["tasks"]["domains"]["calls"] == 0


def test_models_without_a_price_are_named() -> None:
    spending = UsageTotals()
    spending.add("keywords", replace(CALL, model="mystery", dollars=0.0, unpriced=1), NOON)
    assert (spending.wire()["unpriced"], spending.dollars) == (["mystery"], 0.0)


def test_readings_and_failures_are_added_up_and_published(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    keywords, domains, summary = subject.next_keyword_task(clock.now()), subject.next_domain_task(clock.now()), None
    assert keywords
    assert domains
    subject.finish(keywords, replace(keywords_for(keywords, "helicase"), usage=CALL), clock.now())
    subject.fail(domains, clock.now(), usage=CALL)
    clock.advance(120)
    summary = subject.next_summary_task()
    assert summary
    subject.finish(summary, replace(points_of(summary), usage=CALL), clock.now())
    subject.charge("embeddings", CALL, clock.now())
    subject.charge("compaction", CALL, clock.now())
    cost = orjson.loads(bytes(take_session_state(subject, 1, clock.now())))["cost"]
    assert {task: spent["calls"] for task, spent in cost["tasks"].items()} == dict.fromkeys(cost["tasks"], 1)
    assert cost["dollars"] == pytest.approx(0.01)


def test_a_failure_that_cost_something_is_written_down(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1)
    work = subject.next_keyword_task(clock.now())
    assert work
    subject.fail(work, clock.now(), usage=CALL)
    assert subject.take_changes().dirty


def test_costs_go_on_after_a_restart(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, 1, 2, 3, 4, 5)
    work = subject.next_domain_task(clock.now())
    assert work
    subject.finish(work, replace(BIOLOGY, usage=CALL), clock.now())
    head = orjson.loads(write_head(subject))
    assert _restored(head, clock).wire() == subject.usage_totals.wire()


def _restored(head: object, clock: ManualClock) -> UsageTotals:
    again = restore("monday", {"head": orjson.dumps(head)}, 0, conversation().rules, clock.now(), words)
    return again.usage_totals


@pytest.mark.engines
async def test_a_summary_that_must_not_be_paid_is_made_without_a_model_at_once(live: Live) -> None:
    live.analyst.failure = OverBudget("used up")
    live.analyst.failure.usage = CALL
    await live.start(buffer_window=10)
    await live.say(1, 2)
    await live.shows(1, 2)
    live.clock.advance(10)
    state = await live.until("the last resort summarized", degraded_messages=2, message_count=2)
    assert state["analyst"]["summary"] == "last resort"
    assert state["cost"]["tasks"]["summary"]["calls"] == 1


@pytest.mark.engines
async def test_what_an_invalid_reply_cost_is_published(live: Live) -> None:
    live.analyst.failure = ReplyInvalid("no JSON")
    live.analyst.failure.usage = CALL
    await live.start()
    await live.say(1)

    async def cost() -> Any:
        return (await live.state()).get("cost", {}).get("dollars")

    assert await wait_until(cost, "it is published") == 0.002


@pytest.mark.engines
async def test_the_metrics_tell_each_task_of_each_session_that_runs(live: Live) -> None:
    live.analyst.failure = ReplyInvalid("no JSON")
    live.analyst.failure.usage = CALL
    session = await live.start("priced")
    await live.push(spoken(1), session_id="priced")
    keywords = {"session": "priced", "task": "keywords"}
    read = REGISTRY.get_sample_value
    await wait_until(lambda: read("context_builder_session_cost_dollars", keywords), "the call is in the metrics")
    assert read("context_builder_session_tokens", {**keywords, "kind": "prompt"}) == CALL.prompt_tokens
    await live.stop(session)
    assert read("context_builder_session_cost_dollars", keywords) is None


SPENT = Usage(model="m", calls=1, prompt_tokens=900, completion_tokens=100)


def failing(subject: Conversation, clock: ManualClock) -> dict[str, dict[str, object]]:
    published: dict[str, dict[str, object]] = json.loads(bytes(take_session_state(subject, 1, clock.now())))["failing"]
    return published


def due(subject: Conversation, clock: ManualClock) -> SummaryTask:
    clock.advance(subject.rules.buffer_window + 1)
    task = subject.next_summary_task()
    assert task is not None
    return task


def test_a_failing_summary_is_published_until_a_model_makes_one() -> None:
    clock = ManualClock()
    subject = conversation(clock)
    hear(subject, clock, 1, 2)
    assert failing(subject, clock) == {}
    began = clock.now().wall + subject.rules.buffer_window + 1
    subject.fail(due(subject, clock), clock.now(), usage=SPENT, reason="the model does not answer")
    subject.fail(due(subject, clock), clock.now(), usage=SPENT, reason="status 503")
    told = {"since": began, "tries": 2, "reason": "status 503", "tokens": 2000}
    assert failing(subject, clock) == {"summary": told}
    subject.fail(due(subject, clock), clock.now())  # the model was left alone, and not asked
    assert failing(subject, clock) == {"summary": told}
    again = conversation(clock)
    again.failing.restore(subject.failing.wire())
    assert failing(again, clock) == {"summary": told}
    task = due(subject, clock)
    result = points_of(task)
    stopgap = SummaryResult(result.points, "plain text analysis", degraded=True)
    subject.finish(task, stopgap, clock.now())
    assert "summary" in failing(subject, clock)
    hear(subject, clock, 3)
    task = due(subject, clock)
    subject.finish(task, points_of(task), clock.now())
    assert failing(subject, clock) == {}
    assert subject.has_changed
