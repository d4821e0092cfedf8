"""What people are told of a session: whether it is run, and whether anybody speaks in it."""

from __future__ import annotations

from typing import Any

import pytest

from context_builder.session.activity import IDLE_AFTER, SessionActivity, activity_of

NOW = 1_800_000_000.0
NOBODY: dict[str, Any] = {
    "is_owned": False,
    "is_asleep": False,
    "has_ended": False,
    "last_spoke": NOW - 5,
    "waiting": 0,
    "now": NOW,
}


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"is_owned": True}, SessionActivity.LIVE),
        ({"is_owned": True, "last_spoke": NOW - IDLE_AFTER}, SessionActivity.IDLE),
        ({"is_owned": True, "last_spoke": None}, SessionActivity.IDLE),
        ({"is_asleep": True}, SessionActivity.ASLEEP),
        ({}, SessionActivity.NOT_RUNNING),
        ({"has_ended": True}, SessionActivity.ENDED),
        ({"has_ended": True, "waiting": 1}, SessionActivity.NOT_RUNNING),  # somebody spoke since, and nobody hears it
        ({"has_ended": True, "is_owned": True}, SessionActivity.LIVE),
    ],
)
def test_a_session_is_live_idle_asleep_not_running_or_ended(how: dict[str, Any], status: SessionActivity) -> None:
    assert activity_of(**NOBODY | how) is status
