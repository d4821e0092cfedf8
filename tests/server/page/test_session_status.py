"""What people are told of a session: whether it is run, whether anybody speaks, and what its model calls fail at."""

from __future__ import annotations

import pytest

from context_builder.analysis.text.analyst import NAME as TEXT_ANALYST
from context_builder.server.page.session_status import (
    failing_tasks,
    run_command,
    troubles_of,
    undelivered,
)
from context_builder.session.activity import SessionActivity

NOW = 1_800_000_000.0


def test_how_to_run_it_can_be_pasted() -> None:
    assert run_command("monday") == "context-builder run monday"
    assert run_command("room; rm -rf /") == "context-builder run 'room; rm -rf /'"


def test_a_failing_summary_says_since_when_why_and_at_what_cost() -> None:
    failing = {"since": NOW, "tries": 4, "reason": "the model does not answer", "tokens": 12_345}
    state = {"failing": {"domains": failing, "summary": failing}, "messages_since_summary": 37}
    first, second = troubles_of(state, is_run=True, has_model=True)
    assert (first.level, first.title, first.since) == ("bad", "The summary fails", NOW)
    assert first.details == (
        "4 tries failed and used 12,345 tokens.",
        "The model does not answer.",
        "37 messages wait for it; nothing is lost.",
    )
    assert second.title == "Domains are not inferred"
    assert failing_tasks(state) == ("summary", "domains")


def test_what_stands_in_for_a_model_is_told_where_there_is_one() -> None:
    state = {"analyst": {"keywords": TEXT_ANALYST}, "rolling_summary": {"degraded_messages": 1}}
    told = troubles_of(state, is_run=True, has_model=True)
    assert [one.title for one in told] == [
        "The model is not reached",
        "1 message was summarized without the model",
    ]
    assert troubles_of(state, is_run=True, has_model=False) == []
    assert troubles_of({"analyst": {"keywords": "gpt-4o-mini"}}, is_run=True, has_model=True) == []


def test_what_waits_says_how_to_run_the_session_and_what_was_refused_where_it_is() -> None:
    waits, refused = undelivered("a room", SessionActivity.NOT_RUNNING, 2, 1)
    assert (waits.title, waits.details) == ("Nobody runs this session", ("2 messages wait.",))
    assert waits.commands == ("context-builder run 'a room'", "context-builder fleet")
    assert (refused.title, refused.view) == ("1 message could not be read or delivered", "dead/a%20room")
    assert undelivered("monday", SessionActivity.ENDED, 0, 0) == []


@pytest.mark.parametrize("odd", [None, 7, "text", [1], {"summary": 3}, {"summary": {"tries": "x", "reason": None}}])
def test_odd_troubles_are_told_as_far_as_they_go(odd: object) -> None:
    assert len(troubles_of({"failing": odd, "analyst": odd}, is_run=True, has_model=True)) <= 1
