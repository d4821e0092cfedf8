"""Many sessions in one process: each its own state, none its own thread, and nothing left afterwards."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from context_builder.errors import AnalystUnavailable, DatabaseUnavailable, LeaseLost
from context_builder.session.keys import Keys
from context_builder.session.session import Session
from tests.services.waiting import PATIENCE, wait_until
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

NAMES = [f"session-{number}" for number in range(200)]


@pytest.fixture(params=[40, pytest.param(200, marks=pytest.mark.long)])
async def hosted(live: Live, request: pytest.FixtureRequest) -> dict[str, Session]:
    """Many sessions, all ready."""
    sessions = {name: live.session(name, tick=0.5) for name in NAMES[: request.param]}
    for session in sessions.values():
        live.serve(session)
    await wait_until(lambda: all(s.ready.is_set() for s in sessions.values()), "all are ready")
    return sessions


async def test_many_sessions_each_publish_their_own(live: Live, hosted: dict[str, Session]) -> None:
    for name in hosted:
        await live.push(*(spoken(number, f"{name} says {number}") for number in (1, 2, 3)), session_id=name)
    for name in hosted:
        state = await live.shows(1, 2, 3, session_id=name)
        assert [entry["text"] for entry in state["raw_recent_buffer"]] == [f"{name} says {n}" for n in (1, 2, 3)]
        assert (await live.conversation_state(name))["session_id"] == name
    assert threading.active_count() < len(hosted)


async def test_whatever_is_logged_on_behalf_of_a_session_says_of_which(live: Live) -> None:
    live.analyst.failure = AnalystUnavailable("away")
    live.archive.failure = DatabaseUnavailable("away")
    with capture_logs([merge_contextvars]) as logs:
        for name in NAMES[:2]:
            await live.start(name)
            await live.say(1, session_id=name)
            waiting = live.session(name)
            live.serve(waiting)
        for event in ("analysis.failed", "session.waiting"):
            await wait_until(lambda event=event: _tellers(logs, event) == {*NAMES[:2]}, f"{event} of both")
        live.analyst.failure = None
        live.clock.advance(121)
        await wait_until(lambda: _tellers(logs, "delivery.waiting") == {*NAMES[:2]}, "delivery.waiting of both")


def _tellers(logs: Sequence[Mapping[str, Any]], event: str) -> set[str]:
    """The sessions whose log has the event."""
    return {entry.get("session_id", "nobody knows which") for entry in logs if entry["event"] == event}


async def test_sessions_leave_neither_tasks_nor_leases(live: Live, hosted: dict[str, Session]) -> None:
    for session in hosted.values():
        session.stop()
    await asyncio.wait_for(asyncio.gather(*live.tasks.values()), PATIENCE)
    live.tasks.clear()
    await asyncio.sleep(0)
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []
    assert await live.redis.exists(*(Keys(name).owner for name in hosted)) == 0


async def test_one_session_that_is_taken_away_does_not_disturb_the_others(
    live: Live, hosted: dict[str, Session]
) -> None:
    lost = hosted.pop(NAMES[0])
    await live.redis.set(Keys(NAMES[0]).owner, '{"token":0,"host":"lab-3","pid":4711}', ex=3600)
    with pytest.raises(LeaseLost, match="is now run by process 4711 on lab-3"):
        await live.gone(lost)
    await live.say(1, session_id=NAMES[1])
    await live.shows(1, session_id=NAMES[1])
    assert not any(task.done() for task in live.tasks.values())
