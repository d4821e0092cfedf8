"""A state says which task fails, since when, why, and what was spent in vain; also after a restart."""

from __future__ import annotations

import json

from context_builder.analysis.analyst import SummaryResult
from context_builder.costs import Usage
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.published_state import session_state
from context_builder.session.conversation.tasks import SummaryTask
from context_builder.testing import ManualClock
from tests.session.saying import conversation, hear, points_of

SPENT = Usage(model="m", calls=1, prompt_tokens=900, completion_tokens=100)


def failing(subject: Conversation, clock: ManualClock) -> dict[str, dict[str, object]]:
    published: dict[str, dict[str, object]] = json.loads(bytes(session_state(subject, 1, clock.now())))["failing"]
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
