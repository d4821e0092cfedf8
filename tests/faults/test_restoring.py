"""Who wakes up or finds that Redis fell back restores what is theirs to restore, and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from context_builder.cli.forget import stay_forgotten
from context_builder.session.keys import FENCE, FORGOTTEN
from context_builder.session.store.registry import SessionRegistry
from tests.faults.forgetful import ForgetfulRedis
from tests.faults.forks import Forks
from tests.faults.owners import KEYS, SESSION, Owners
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

LEASE = 1.5


@pytest.fixture
async def owners(forgetful: ForgetfulRedis, tmp_path: Path) -> AsyncIterator[Owners]:
    forgetful.server.start()
    url = forgetful.server.url
    async with Redis.from_url(url, retry=Retry(NoBackoff(), 3)) as patient, Forks(tmp_path) as forks:
        yield Owners(forks, patient, url)
    forgetful.server.kill()


async def begun(owners: Owners) -> int:
    """A process that runs the session."""
    pid = await owners.start(lease=LEASE)
    await wait_until(lambda: owners.owns(pid), "it owns the session")
    return pid


async def running(owners: Owners) -> int:
    """A process that runs the session, in which one message was said."""
    pid = await begun(owners)
    await owners.say(1)
    await wait_until(lambda: owners.shows(1), "the message is published")
    return pid


async def test_a_session_that_was_forgotten_while_its_owner_stood_still_stays_forgotten(owners: Owners) -> None:
    first = await running(owners)
    await owners.freeze(first)
    await SessionRegistry(owners.redis).forget(SESSION)
    await owners.thaw(first)
    assert set(await owners.redis.keys()) == {FENCE.encode(), FORGOTTEN.encode()}
    assert "session monday was forgotten" in owners.said()


async def test_what_was_said_under_the_same_id_since_is_not_mixed_with_it(owners: Owners) -> None:
    first = await running(owners)
    await owners.freeze(first)
    await SessionRegistry(owners.redis).forget(SESSION)
    second = await owners.start()
    await wait_until(lambda: owners.owns(second), "another owns the session")
    await owners.say(2)
    await wait_until(lambda: owners.shows(2), "its message is published")
    await owners.thaw(first)
    await owners.say(3)
    await wait_until(lambda: owners.shows(2, 3), "nothing of the forgotten session is there")


@pytest.mark.parametrize("empty", [False, True], ids=["fallen back", "replaced by an empty one"])
async def test_what_others_acknowledged_since_redis_fell_back_stays(
    owners: Owners, forgetful: ForgetfulRedis, empty: bool
) -> None:
    first = await running(owners)
    forgetful.remember()
    for _ in range(2):  # so that who comes after the fall-back is given an older token
        await owners.stop(first)
        first = await begun(owners)
    await owners.say(2)
    await wait_until(lambda: owners.shows(1, 2), "both are published")
    os.kill(first, signal.SIGSTOP)
    forgetful.be_replaced() if empty else forgetful.fall_back()
    second = await owners.start("--takeover", lease=LEASE)
    await wait_until(lambda: owners.owns(second), "another owns the session")
    await owners.say(3, 4)
    kept = [] if empty else [1]
    await wait_until(lambda: owners.shows(*kept, 3, 4), "what it took in is published")
    await owners.stop(second)
    await owners.thaw(first)
    await owners.say(5)
    await owners.start()
    await wait_until(lambda: owners.shows(*kept, 3, 4, 5), "nothing is missing")


async def test_an_empty_redis_in_which_nobody_wrote_is_given_the_session_again(
    owners: Owners, forgetful: ForgetfulRedis
) -> None:
    await running(owners)
    forgetful.be_replaced()
    await owners.say(2)
    await wait_until(lambda: owners.shows(1, 2), "all is published")


async def test_what_was_said_once_is_there_once_though_redis_gives_it_again(
    owners: Owners, forgetful: ForgetfulRedis
) -> None:
    yes = b'{"text": "Yes."}'
    first = await running(owners)
    os.kill(first, signal.SIGSTOP)  # so that Redis has it, and the process has not
    await owners.redis.lpush(KEYS.input, yes)
    forgetful.remember()
    os.kill(first, signal.SIGCONT)
    await wait_until(lambda: owners.hears("message 1", "Yes."), "it is published")
    forgetful.fall_back()
    await wait_until(lambda: owners.has_read_all(), "it was read again")
    assert await owners.texts() == ["message 1", "Yes."]
    await owners.redis.lpush(KEYS.input, yes)
    await wait_until(lambda: owners.hears("message 1", "Yes.", "Yes."), "who says it again is heard again")


async def test_a_redis_that_falls_back_at_once_does_not_undo_forgetting(
    owners: Owners, forgetful: ForgetfulRedis
) -> None:
    catalog = SessionRegistry(owners.redis)
    await owners.stop(await running(owners))
    forgetful.remember()
    await catalog.forget(SESSION)
    forgetful.fall_back()
    assert await owners.redis.exists(KEYS.checkpoint)
    await stay_forgotten(catalog, SESSION, before=None)
    assert not await owners.redis.exists(KEYS.checkpoint)
    assert await catalog.mark(SESSION)
