"""How long a task that failed is left alone."""

from __future__ import annotations

import pytest

from context_builder.session.config import SessionConfig
from context_builder.session.conversation.triggers import SHORTEST_WAIT, Triggers
from context_builder.testing import ManualClock
from tests.session.saying import conversation, hear


@pytest.mark.parametrize(("retry_after", "wait"), [(None, 15.0), (4.0, 4.0), (0.0, SHORTEST_WAIT), (900.0, 15.0)])
def test_a_failed_summary_waits_for_the_model_but_no_longer_than_usual(
    clock: ManualClock, retry_after: float | None, wait: float
) -> None:
    subject = conversation(clock, summary_retry=15.0)
    hear(subject, clock, 1)
    clock.advance(120)
    work = subject.next_summary_task()
    assert work is not None
    subject.fail(work, clock.now(), retry_after)
    assert not subject.summary_due(clock.advance(wait - 0.01))
    assert subject.summary_due(clock.advance(0.02))


def test_failures_are_counted_until_a_summary_succeeds(clock: ManualClock) -> None:
    triggers = Triggers(SessionConfig())
    for _ in range(3):
        triggers.summary_failed(clock.now())
    assert triggers.summary_failures == 3
    triggers.summary_succeeded()
    assert triggers.summary_failures == 0


def test_whoever_is_in_a_hurry_does_not_wait(clock: ManualClock) -> None:
    triggers = Triggers(SessionConfig())
    triggers.summary_failed(clock.now())
    triggers.hurry()
    assert triggers.summary_due_at(None, at_once=True) <= clock.now().monotonic
