"""The lease and the commit, on a real Redis."""

from __future__ import annotations

import os
import time
from copy import copy
from dataclasses import replace
from typing import Any

import orjson
import pytest
from redis.asyncio import Redis

from context_builder.archive.archive import SummaryRow
from context_builder.engines.engine import free_port
from context_builder.errors import LeaseLost, SessionOwned, StoreDiverged, StoreError, StoreUnavailable, WrongKeyType
from context_builder.memory.memory import Memory
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.conversation.state import PublishedState
from context_builder.session.keys import FENCE, Keys
from context_builder.session.messages.buffer import Publication
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.store.commit import Commit
from context_builder.session.store.lease import this_holder
from context_builder.session.store.recovery import Lists
from context_builder.session.store.store import SessionStore
from context_builder.storage.redis import client_for
from context_builder.storage.redis_availability import translated
from tests.session.conftest import living_for_good
from tests.session.saying import ARRIVAL, message

pytestmark = pytest.mark.engines

KEYS = Keys("monday")
HOUR = 3600.0
ROW = SummaryRow(
    session_id="monday",
    summary_seq=1,
    summary_text="Alice: hello",
    covers_message_start=1,
    covers_message_end=1,
    message_count=1,
    time_range_start=None,
    time_range_end=None,
    domains_covered=[],
)
PART = MemoryBatch("monday", [Memory("monday:message:1", "hello", session_id="monday")], ["monday:point:1:0"])
REFRESH = Commit(conversation_state=b"{}", silent_for=1.0)
WRITE = replace(REFRESH, state=PublishedState(b'{"a":1', Publication().take(), b"}"), head=b"{}", order=b"[]")


def store(redis: Redis, **rules: Any) -> SessionStore:
    """Of a process that may take its time."""
    return SessionStore(redis, "monday", SessionConfig(**{"lease": HOUR, **rules}))


async def owned(redis: Redis, **rules: Any) -> SessionStore:
    mine = store(redis, **rules)
    await mine.acquire(this_holder(0.0), takeover=True)
    await mine.load()
    return mine


def token_of(owner: SessionStore) -> int:
    token: int = orjson.loads(owner.lease)["token"]
    return token


def everything() -> Commit:
    """A commit that writes to every key."""
    changes = Changes(
        dirty=True, pending_added=[BufferedMessage(1, message(1), ARRIVAL)], outbox=[ROW], memory_outbox=[PART]
    )
    changes.put(BufferedMessage(2, message(2), ARRIVAL))
    return replace(WRITE, changes=changes, identities=[b"1" * 16, b"2" * 16], dead=[b"letter"])


# The lease


async def test_a_free_session_is_acquired_for_as_long_as_the_lease(redis: Redis) -> None:
    mine = store(redis, lease=7000.0)
    await mine.acquire(this_holder(5.0))
    holder = orjson.loads(await redis.get(KEYS.owner) or b"{}")
    assert {"token": token_of(mine), "pid": os.getpid(), "since": 5.0}.items() <= holder.items()
    assert 6000 < await redis.ttl(KEYS.owner) <= 7000


async def test_a_second_owner_is_refused_and_told_who_the_first_is(redis: Redis) -> None:
    await owned(redis)
    with pytest.raises(SessionOwned, match=f"session monday is run by process {os.getpid()} on "):
        await store(redis).acquire(this_holder(0.0))


async def test_an_owner_that_died_on_this_machine_is_replaced_at_once(redis: Redis) -> None:
    dead = store(redis)
    await dead.acquire({**this_holder(0.0), "pid": 2**22 + 1})
    mine = store(redis)
    await mine.acquire(this_holder(0.0))
    assert token_of(mine) == token_of(dead) + 1


async def test_a_process_id_that_was_given_to_another_program_is_a_death(redis: Redis) -> None:
    await store(redis).acquire({**this_holder(0.0), "started": 1.0})
    await store(redis).acquire(this_holder(0.0))


@pytest.mark.parametrize("elsewhere", [{"boot": "another machine"}, {"pid_namespace": "another container"}])
async def test_nobody_elsewhere_is_declared_dead(redis: Redis, elsewhere: dict[str, str]) -> None:
    await store(redis).acquire({**this_holder(0.0), "pid": 2**22 + 1, **elsewhere})
    with pytest.raises(SessionOwned):
        await store(redis).acquire(this_holder(0.0))


async def test_tokens_only_ever_grow(redis: Redis) -> None:
    tokens = []
    for _ in range(3):
        mine = await owned(redis)
        tokens.append(token_of(mine))
        await mine.release()
    assert tokens == sorted(set(tokens))
    assert await redis.ttl(FENCE) == -1


async def test_a_stale_owner_does_not_give_back_the_lease_of_another(redis: Redis) -> None:
    stale = await owned(redis)
    await owned(redis)
    await stale.release()
    assert await redis.exists(KEYS.owner)


# The commit


async def test_a_stale_owners_commit_is_refused_and_writes_nothing(redis: Redis) -> None:
    stale = await owned(redis)
    await redis.lpush(KEYS.input, b"delivery")
    await owned(redis)
    before = await redis.keys()
    with pytest.raises(LeaseLost, match="is now run by process") as lost:
        await stale.commit(replace(everything(), acknowledged=[b"delivery"]))
    assert not lost.value.expired
    assert sorted(await redis.keys()) == sorted(before)
    assert await redis.llen(KEYS.input) == 1


async def test_a_commit_without_a_lease_is_refused_and_says_that_it_ran_out(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.delete(KEYS.owner)
    with pytest.raises(LeaseLost, match="the lease of session monday ran out") as lost:
        await mine.commit(WRITE)
    assert lost.value.expired


async def test_a_commit_renews_the_lease(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.expire(KEYS.owner, 1000)
    await mine.commit(REFRESH)
    assert await redis.ttl(KEYS.owner) > 1000


async def test_a_commit_sent_twice_counts_once(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.lpush(KEYS.input, b"one", b"two")
    commit = replace(everything(), acknowledged=[b"one"])
    again = copy(mine)
    await mine.commit(commit)
    answer = await again.commit(commit)
    assert (answer.waiting, answer.undelivered, again.revision) == (1, 1, 1)
    assert await redis.lrange(KEYS.input, 0, -1) == [b"two"]
    assert [await redis.llen(key) for key in (KEYS.pending, KEYS.outbox, KEYS.dead)] == [1, 1, 1]


async def test_another_revision_than_expected_is_refused(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(WRITE)
    await redis.hset(KEYS.checkpoint, "revision", 9)
    with pytest.raises(StoreDiverged) as diverged:
        await mine.commit(everything())
    assert (diverged.value.held, diverged.value.expected) == (9, 1)
    assert not await redis.exists(KEYS.pending)


async def test_a_refresh_too_notices_that_redis_holds_another_revision(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(WRITE)
    await redis.hset(KEYS.checkpoint, "revision", 0)
    with pytest.raises(StoreDiverged):
        await mine.commit(REFRESH)


@pytest.mark.parametrize("then", [[b"one", b"other"], [b"other", b"two"]], ids=["newest", "oldest"])
async def test_other_deliveries_than_those_that_were_read_stay(redis: Redis, then: list[bytes]) -> None:
    mine = await owned(redis)
    await redis.lpush(KEYS.input, *then)
    await mine.commit(replace(everything(), acknowledged=[b"one", b"two"]))
    assert await redis.lrange(KEYS.input, 0, -1) == then[::-1]


async def test_deliveries_that_somebody_removed_meanwhile_are_not_acknowledged_twice(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.lpush(KEYS.input, b"one", b"two", b"three")
    read = (await mine.read_input()).items[:2]
    await redis.rpop(KEYS.input)
    await mine.commit(replace(everything(), acknowledged=read))
    assert await redis.lrange(KEYS.input, 0, -1) == [b"three", b"two"]
    assert await mine.are_known([b"1" * 16, b"2" * 16, b"3" * 16]) == [True, True, False]


async def test_what_became_of_a_delivery_that_is_gone_is_written_down_all_the_same(redis: Redis) -> None:
    mine = await owned(redis)
    answer = await mine.commit(replace(everything(), acknowledged=[b""]))
    assert (answer.waiting, mine.revision, await redis.llen(KEYS.dead)) == (0, 1, 1)


# What is restored after a fall-back


async def test_what_the_lists_have_is_not_put_there_again(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.rpush(KEYS.pending, b"1", b"2", b"3")
    await redis.rpush(KEYS.outbox, b"a")
    replayed = Lists([b"2", b"3", b"4", b"5"], [b"b", b"c"], [b"m"], [b"x", b"y"])
    await mine.commit(replace(WRITE, rewrite=True, replayed=replayed, pending=3))
    assert await redis.lrange(KEYS.pending, 0, -1) == [b"3", b"4", b"5"]  # the others were summarized since
    assert await redis.lrange(KEYS.outbox, 0, -1) == [b"a", b"b", b"c"]
    assert await redis.lrange(KEYS.memory_outbox, 0, -1) == [b"m"]
    assert await redis.lrange(KEYS.dead, 0, -1) == [b"y", b"x"]
    assert await redis.hget(KEYS.checkpoint, "dead_bytes") == b"2"


async def test_where_too_much_was_lost_what_is_left_stays(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.rpush(KEYS.pending, b"1", b"2")
    await mine.commit(replace(WRITE, rewrite=True, replayed=Lists([b"8", b"9"]), pending=9))
    assert await redis.lrange(KEYS.pending, 0, -1) == [b"1", b"2", b"8", b"9"]


async def test_nothing_pending_leaves_no_list(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.rpush(KEYS.pending, b"1", b"2")
    await mine.commit(replace(WRITE, rewrite=True))
    assert not await redis.exists(KEYS.pending)


async def test_of_a_redis_that_fell_back_no_pending_message_is_read(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(everything())
    assert len(await mine.read_pending(10)) == 1
    await redis.hset(KEYS.checkpoint, "revision", 0)
    with pytest.raises(StoreUnavailable, match="fallen back"):
        await mine.read_pending(10)


async def test_who_continues_reads_what_was_written_last(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(everything())
    snapshot = await mine.load()
    assert snapshot.identities == everything().identities
    assert snapshot.newest == everything().lists


async def test_a_checkpoint_written_anew_still_knows_the_room_of_the_dead_letters(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(everything())
    await mine.commit(replace(WRITE, rewrite=True))
    assert await redis.hget(KEYS.checkpoint, "dead_bytes") == b"6"


async def test_a_commit_of_any_size_is_one_step(redis: Redis) -> None:
    mine = await owned(redis)
    identities = [n.to_bytes(16, "big") for n in range(10_000)]
    await mine.commit(replace(WRITE, identities=identities, dead=[b"letter"] * 9_000))
    assert all(await mine.are_known(identities))
    assert await redis.llen(KEYS.dead) == SessionConfig().dead_letters_max


async def test_without_changes_only_what_expires_is_refreshed(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(WRITE)
    await redis.expire(KEYS.state, 1000)
    answer = await mine.commit(REFRESH)
    assert answer.state_present
    assert await redis.ttl(KEYS.state) > 1000
    assert mine.revision == (await mine.held()).revision == 1


async def test_a_refresh_tells_when_the_state_is_gone(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(WRITE)
    await redis.delete(KEYS.state)
    assert not (await mine.commit(REFRESH)).state_present


async def test_the_owner_hears_what_is_asked_of_it(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.set(KEYS.control, "end")
    assert (await mine.commit(REFRESH)).request == "end"
    await mine.clear_request()
    assert (await mine.commit(REFRESH)).request == ""


async def test_times_to_live_are_the_contracts(redis: Redis) -> None:
    mine, began = await owned(redis), time.monotonic()
    await mine.commit(everything())
    for key, milliseconds in ((KEYS.state, 3_600_000), (KEYS.conversation, 10_000)):
        left, passed = await redis.pttl(key), 1000 * (time.monotonic() - began)
        assert milliseconds - passed - 1 <= left <= milliseconds


async def test_every_key_expires_or_is_documented_to_live_with_the_session(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.lpush(KEYS.input, b"delivery")
    await mine.commit(replace(everything(), index={"n:1": b"[]"}))
    await mine.note_recording("lab-3:/recordings/monday.jsonl")
    for outbox in (mine.outbox, mine.memory_outbox):
        await redis.rpush(KEYS.outbox_of(outbox.receiver), b"random bytes")
        assert await outbox.move_to_dead_letters(b"random bytes", b"a letter") == 1
    assert len(await redis.keys("*monday*")) == len(KEYS.all()) - 2  # nobody asked for anything, and no agent
    assert await living_for_good(redis) == set()


async def test_a_checkpoint_is_read_back_as_it_was_written(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(everything())
    snapshot = await mine.load()
    assert (snapshot.revision, snapshot.pending) == (1, 1)
    assert {"head", "order", "m:2"} <= set(snapshot.fields)
    assert "revision" not in snapshot.fields


# Reading


async def test_looking_at_the_input_takes_nothing(redis: Redis) -> None:
    mine = await owned(redis)
    await redis.lpush(KEYS.input, b"one", b"two", b"three")
    assert await mine.next_input(1) is not None
    assert (await mine.read_input()).items == [b"one", b"two", b"three"]
    assert await redis.lrange(KEYS.input, 0, -1) == [b"three", b"two", b"one"]


async def test_a_batch_is_the_oldest_deliveries(redis: Redis) -> None:
    mine = await owned(redis, read_batch=2)
    await redis.lpush(KEYS.input, b"one", b"two", b"three")
    assert (await mine.read_input()).items == [b"one", b"two"]


async def test_a_batch_is_bounded_in_bytes_but_has_one_delivery(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_builder.session.store.deliveries.READ_BYTES", 25)
    mine = await owned(redis)
    await redis.lpush(KEYS.input, b"1" * 10, b"2" * 10, b"3" * 10)
    assert (await mine.read_input()).items == [b"1" * 10, b"2" * 10]
    await redis.rpush(KEYS.input, b"0" * 30)
    assert (await mine.read_input()).items == [b"0" * 30]


async def test_summaries_leave_the_outbox_one_by_one_and_once(redis: Redis) -> None:
    mine = await owned(redis)
    await mine.commit(everything())
    oldest = await mine.outbox.at(0)
    assert oldest is not None
    assert SummaryRow.model_validate_json(oldest) == ROW
    await mine.outbox.discard(oldest)
    await mine.outbox.discard(oldest)
    assert await mine.outbox.at(0) is None


async def test_what_is_to_be_remembered_waits_apart_from_the_summaries(redis: Redis) -> None:
    mine = await owned(redis)
    answer = await mine.commit(everything())
    assert (answer.undelivered, answer.unremembered) == (1, 1)
    oldest = await mine.memory_outbox.at(0)
    assert oldest is not None
    assert MemoryBatch.decode(oldest) == PART
    await mine.memory_outbox.discard(oldest)
    assert await mine.memory_outbox.at(0) is None
    assert await mine.outbox.at(0) is not None


# Errors


async def test_a_redis_that_is_away_is_unavailable() -> None:
    async with client_for(f"redis://127.0.0.1:{free_port()}/0") as nowhere:
        with pytest.raises(
            StoreUnavailable, match=r"Redis is not available: 127.0.0.1:\d+: Connection refused; start it"
        ):
            await store(nowhere).acquire(this_holder(0.0))


async def test_a_key_of_another_type_is_waited_for(redis: Redis) -> None:
    await redis.set(KEYS.input, "not a list")
    with pytest.raises(WrongKeyType, match=r"Redis refuses a command: .*WRONGTYPE"):
        await (await owned(redis)).read_input()


async def test_a_refusal_that_will_not_pass_is_told_from_being_away(redis: Redis) -> None:
    with pytest.raises(StoreError, match=r"Redis refuses a command: unknown") as refused:
        async with translated():
            await redis.execute_command("NOSUCHCOMMAND")
    assert not isinstance(refused.value, StoreUnavailable)
