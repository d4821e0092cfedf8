"""A session whose key somebody made another type waits, says which, and goes on once it is mended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from context_builder.errors import WrongKeyType
from context_builder.session.keys import FENCE, FORGOTTEN, SESSIONS, SUMMARY_SEQS, Keys
from context_builder.session.store.registry import SessionRegistry
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import spoken

KEYS = Keys("monday")


def told(logs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was logged of keys of another type."""
    return [each["error"] for each in logs if each["event"] == "store.wrong_type"]


@pytest.mark.parametrize("key", [KEYS.input, KEYS.seen, KEYS.pending, KEYS.checkpoint, KEYS.outbox, KEYS.control])
async def test_a_session_waits_until_a_key_of_another_type_is_mended(live: Live, key: str) -> None:
    session = await live.start()
    await live.say(1)
    before = (await live.shows(1))["received_messages"]
    kept = await live.redis.dump(key)
    with capture_logs() as logs:
        async with live.redis.pipeline(transaction=True) as replaced:  # at once: that it is gone is another fault
            replaced.delete(key)
            replaced.hset(key, "a", "b") if key != KEYS.checkpoint else replaced.set(key, "garbage")
            await replaced.execute()
        await wait_until(lambda: told(logs), "it is told")
        await live.tried_in_vain()
    assert [key in each for each in told(logs)] == [True]
    assert not live.tasks[session].done()
    await (live.redis.restore(key, 0, kept, replace=True) if kept else live.redis.delete(key))
    await live.push(spoken(2))
    await live.until("it goes on", received_messages=before + 1)


@pytest.mark.parametrize("key", [KEYS.checkpoint, SESSIONS, FENCE, SUMMARY_SEQS, FORGOTTEN])
async def test_a_wrong_key_that_is_there_before_the_session_is_waited_for_too(live: Live, key: str) -> None:
    await live.redis.set(key, "garbage")
    session = live.session()
    with capture_logs() as logs:
        task = live.serve(session)
        await wait_until(lambda: told(logs), "it is told")
    assert any(key in each for each in told(logs))
    await live.redis.delete(key)
    await wait_until(session.ready.is_set, "the session is ready")
    assert not task.done()


async def test_a_published_state_of_another_type_is_overwritten(live: Live) -> None:
    await live.start()
    async with live.redis.pipeline(transaction=True) as replaced:
        for key in (KEYS.state, KEYS.conversation):
            replaced.delete(key)
            replaced.rpush(key, "garbage")
        await replaced.execute()
    await live.say(1)

    async def are_strings() -> bool:
        return [await live.redis.type(key) for key in (KEYS.state, KEYS.conversation)] == [b"string"] * 2

    await wait_until(are_strings, "both are published again")
    await live.shows(1)


async def test_who_looks_across_sessions_is_told_which_key_is_another_type(live: Live) -> None:
    await live.redis.set(SESSIONS, "garbage")
    registry = SessionRegistry(live.redis)
    for look in (registry.sessions(), registry.newest(3), registry.sweep(0)):
        with pytest.raises(WrongKeyType, match=SESSIONS):
            await look
