"""Redis did what was asked, or fell back, and the session did not hear of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from typing import Any

import pytest

from context_builder.errors import StoreUnavailable
from context_builder.session.keys import Keys
from context_builder.session.store.commit import Commit, Committed
from context_builder.session.store.store import SessionStore
from tests.services.waiting import wait_until
from tests.session.conftest import HOSTED_TOO
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")

Writing = Callable[[SessionStore, Commit], Awaitable[Committed]]


def fails_once(monkeypatch: pytest.MonkeyPatch, which: Callable[[Commit], bool], *, after: bool) -> list[Commit]:
    """The first commit of this kind fails, before or ``after`` it was carried out; the commits that did."""
    original: Writing = SessionStore.commit
    failed: list[Commit] = []

    async def commit(store: SessionStore, commit: Commit) -> Committed:
        fails = which(commit) and not failed
        if fails and not after:
            failed.append(commit)
            raise StoreUnavailable("cut")
        heard = copy(store)
        committed = await original(heard if fails else store, commit)
        if fails:
            failed.append(commit)
            await store._client.delete(KEYS.owner)  # the lease runs out meanwhile
            raise StoreUnavailable("cut")
        return committed

    monkeypatch.setattr(SessionStore, "commit", commit)
    return failed


async def test_a_lease_that_was_given_again_without_hearing_of_it_is_one_s_own(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await live.start()
    original = SessionStore.acquire
    lost: list[bool] = []

    async def acquire(store: SessionStore, holder: Mapping[str, Any], *, takeover: bool = False) -> None:
        if lost:
            return await original(store, holder, takeover=takeover)
        lost.append(True)
        await original(copy(store), holder, takeover=takeover)
        raise StoreUnavailable("cut")

    monkeypatch.setattr(SessionStore, "acquire", acquire)
    await live.redis.delete(KEYS.owner)  # it ran out
    await live.say(1)
    await live.shows(1)
    assert lost
    assert not live.tasks[session].done()


@pytest.mark.parametrize("cut", [False, True])
async def test_what_a_redis_that_fell_back_still_held_does_not_come_back(
    live: Live,
    monkeypatch: pytest.MonkeyPatch,
    cut: bool,
) -> None:
    session = await live.start()
    await live.say(1, 2, 3)
    await live.shows(1, 2, 3)
    older = await live.redis.dump(KEYS.checkpoint)
    live.clock.advance(120)
    await live.until("it is summarized", message_count=3)
    failed = fails_once(monkeypatch, lambda commit: commit.rewrite, after=False) if cut else []
    await live.redis.restore(KEYS.checkpoint, 0, older, replace=True)
    await live.say(4)
    await live.shows(4)
    await live.stop(session)
    await live.start()
    after = await live.shows(4)
    assert after["rolling_summary"]["message_count"] == 3
    assert len(failed) == cut


async def test_a_session_knows_its_own_commit_again_after_its_lease_ran_out(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await live.start()
    failed = fails_once(monkeypatch, lambda commit: bool(commit.identities), after=True)
    await live.say(1)
    await live.shows(1)
    await live.say(2)
    assert (await live.shows(1, 2))["received_messages"] == 2
    await wait_until(lambda: failed, "an answer is lost")
    assert not live.tasks[session].done()


async def test_all_that_was_written_again_may_be_followed_by_what_changed_alone(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await live.start()
    older = await said_with_a_copy(live)
    failed = fails_once(monkeypatch, lambda commit: commit.rewrite, after=True)
    await live.redis.restore(KEYS.checkpoint, 0, older, replace=True)
    await live.say(5)
    await live.shows(1, 2, 3, 4, 5)
    await wait_until(lambda: failed, "its answer is lost")
    assert not live.tasks[session].done()


@HOSTED_TOO
async def test_what_follows_a_rewrite_that_was_not_heard_of_is_written(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await live.start()
    older = await said_with_a_copy(live)
    await rewritten_unheard(live, older, monkeypatch)
    live.analyst.gate.clear()  # no keywords come, which would write the entry a second time
    await live.push(spoken(5, "Yes"))
    await live.shows(1, 2, 3, 4, 5)
    live.die(session)
    live.analyst.gate.set()
    await live.start(takeover=True)
    await live.shows(1, 2, 3, 4, 5)


@HOSTED_TOO
async def test_a_summary_that_follows_a_rewrite_that_was_not_heard_of_is_archived(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    await live.start(summary_keep_last=0)
    older = await said_with_a_copy(live)
    live.analyst.gate.clear()
    live.clock.advance(121)
    await wait_until(lambda: live.analyst.summary_calls, "a summary is under way")
    await rewritten_unheard(live, older, monkeypatch)
    live.analyst.gate.set()
    await wait_until(lambda: len(live.archive.rows) == 1, "the summary is archived")


async def said_with_a_copy(live: Live) -> bytes:
    """Say 1 to 4, and return the checkpoint as it was before the last."""
    await live.say(1, 2, 3)
    await live.shows(1, 2, 3)
    older: bytes = await live.redis.dump(KEYS.checkpoint)
    await live.say(4)
    await live.shows(1, 2, 3, 4)
    return older


async def rewritten_unheard(live: Live, older: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Redis fall back while nothing is said, and all be written again without the answer; until it goes on."""
    failed = fails_once(monkeypatch, lambda commit: commit.rewrite, after=True)
    await live.redis.restore(KEYS.checkpoint, 0, older, replace=True)
    await wait_until(lambda: failed, "all is written again")

    async def owned() -> bool:
        return bool(await live.redis.exists(KEYS.owner))

    await wait_until(owned, "the session owns its lease again")
