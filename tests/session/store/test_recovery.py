"""What one process knows of a session's history and may write over; and what it remembers of its last commits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
import pytest
from redis.asyncio import Redis

from context_builder.archive.archive import SummaryRow
from context_builder.clock import Instant
from context_builder.memory.memory import Memory
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.inbox import Batch, Inbox
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.store import recovery as module
from context_builder.session.store.commit import Commit
from context_builder.session.store.recovery import (
    ANCESTORS,
    SECONDS,
    CommitHistory,
    HeldRevision,
    Lineage,
    Lists,
    StoredSession,
)
from context_builder.session.store.store import SessionStore
from context_builder.testing import ManualClock
from tests.services.waiting import wait_until
from tests.session.saying import ARRIVAL, message, raw, spoken

NOTHING = HeldRevision()
LOADED = HeldRevision(7, b"ann")


@pytest.fixture
def bob() -> Lineage:
    """Continued from Ann's seventh commit, who had continued from Zoe's third, and has written two."""
    return Lineage(b"bob").loaded(LOADED, b'[["zoe",3]]').committed(8).committed(9)


@pytest.mark.parametrize(
    "held",
    [
        NOTHING,
        HeldRevision(2, b"zoe"),
        HeldRevision(3, b"zoe"),
        LOADED,
        HeldRevision(5, b"ann"),
        HeldRevision(8, b"bob"),
        HeldRevision(9, b"bob"),
    ],
)
def test_what_it_wrote_or_continued_from_it_knows(bob: Lineage, held: HeldRevision) -> None:
    assert bob.knows(held)
    assert bob.is_behind(held) is (held != bob.latest)


@pytest.mark.parametrize(
    "held", [HeldRevision(4, b"zoe"), HeldRevision(8, b"ann"), HeldRevision(9, b"cid"), HeldRevision(1, b"cid")]
)
def test_what_was_written_since_redis_fell_back_it_does_not(bob: Lineage, held: HeldRevision) -> None:
    assert not bob.knows(held)


def test_a_commit_whose_answer_was_lost_is_no_fall_back(bob: Lineage) -> None:
    assert bob.knows(HeldRevision(10, b"bob"))
    assert not bob.is_behind(HeldRevision(10, b"bob"))
    begun = Lineage(b"bob").loaded(LOADED, None)
    assert not begun.is_behind(HeldRevision(8, b"bob"))


def test_a_session_that_was_forgotten_since_is_not_restored(bob: Lineage) -> None:
    assert bob.was_forgotten(HeldRevision(mark=b"m"))
    assert not bob.knows(HeldRevision(mark=b"m"))


def test_one_that_was_forgotten_before_is_also_where_the_mark_is_lost() -> None:
    bob = Lineage(b"bob").loaded(HeldRevision(mark=b"m"), None).committed(1)
    assert bob.latest == HeldRevision(1, b"bob", b"m")
    assert bob.knows(NOTHING)
    assert not bob.knows(HeldRevision(mark=b"n"))
    assert not bob.knows(HeldRevision(5, b"ann"))  # the session that was forgotten


def test_who_continues_knows_the_same(bob: Lineage) -> None:
    cid = Lineage(b"cid").loaded(bob.latest, bob.encode())
    assert cid.ancestors == {b"zoe": 3, b"ann": 7, b"bob": 9}


def test_only_so_many_ancestors_are_named() -> None:
    lineage = Lineage(b"0").loaded(HeldRevision(1, b"first"), None).committed(2)
    for number in range(1, 2 * ANCESTORS):
        lineage = Lineage(str(number).encode()).loaded(lineage.latest, lineage.encode()).committed(number + 2)
    assert len(lineage.ancestors) == ANCESTORS
    assert not lineage.knows(HeldRevision(1, b"first"))
    assert lineage.knows(HeldRevision(2 * ANCESTORS, str(2 * ANCESTORS - 2).encode()))


def written(
    *ids: int, outbox: tuple[int, ...] = (), identities: Sequence[bytes] = (), dead: Sequence[bytes] = ()
) -> Commit:
    """A commit in which these became pending, and these summaries are to be archived and remembered."""
    changes = Changes(
        pending_added=[BufferedMessage(each, message(each), ARRIVAL) for each in ids],
        outbox=[SummaryRow.model_construct(summary_seq=seq) for seq in outbox],
        memory_outbox=[MemoryBatch("monday", [Memory(str(seq), "A point.")], []) for seq in outbox],
    )
    return Commit(b"{}", 0.0, head=b"{}", changes=changes, identities=identities, dead=dead)


def keep(recent: CommitHistory, revision: int, commit: Commit, now: Instant) -> None:
    recent.keep(revision, commit.lists, commit.identities, commit.unidentified, now)


def pending_after(recent: CommitHistory, revision: int) -> list[int]:
    """The ids of what became pending since then."""
    return [BufferedMessage.decode(entry, ARRIVAL).id for entry in recent.lists_after(revision).pending]


@pytest.fixture
def recent(clock: ManualClock) -> CommitHistory:
    """Of commits 11 to 13, in which 21 to 26 became pending."""
    recent = CommitHistory()
    keep(recent, 11, written(21, 22, dead=[b"x"]), clock.now())
    keep(recent, 12, written(23, 24, outbox=(5,), dead=[b"y"]), clock.advance(1))
    keep(recent, 13, written(25, 26, outbox=(6,)), clock.advance(1))
    return recent


def test_what_later_commits_put_into_lists_is_remembered(recent: CommitHistory) -> None:
    assert pending_after(recent, 11) == [23, 24, 25, 26]
    lists = recent.lists_after(11)
    assert [orjson.loads(row)["summary_seq"] for row in lists.outbox] == [5, 6]
    assert [MemoryBatch.decode(part).memories[0].id for part in lists.memory_outbox] == ["5", "6"]
    assert lists.dead == [b"y"]
    assert recent.lists_after(13) == CommitHistory().lists_after(0)


def test_the_last_seconds_before_the_last_commit_are_remembered(recent: CommitHistory, clock: ManualClock) -> None:
    clock.advance(SECONDS - 1)
    keep(recent, 14, written(27), clock.now())  # so that the commit with 23 and 24 is just recent enough
    assert pending_after(recent, 0) == [23, 24, 25, 26, 27]
    keep(recent, 15, written(28), clock.advance(0.5))
    assert pending_after(recent, 0) == [25, 26, 27, 28]


def test_large_messages_are_remembered_for_a_shorter_time(
    recent: CommitHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BYTES", 10)
    keep(recent, 14, written(27), ManualClock().advance(2))
    assert pending_after(recent, 0) == [27]


def test_what_another_process_left_is_remembered_too(clock: ManualClock) -> None:
    recent = CommitHistory()
    entry = BufferedMessage(20, message(20), ARRIVAL).encode()
    recent.begin(StoredSession(10, {}, 1, b"", [b"20"], Lists(pending=[entry])), clock.now())
    keep(recent, 11, written(21), clock.now())
    assert pending_after(recent, 9) == [20, 21]
    assert pending_after(recent, 10) == [21]
    assert b"20" in recent


def test_the_newest_identities_are_remembered_for_longer(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDENTITIES", 2)
    recent = CommitHistory()
    keep(recent, 1, written(identities=[b"1", b"2", b"3"]), clock.now())
    assert recent.identities == [b"1", b"2", b"3"]
    keep(recent, 2, written(identities=[b"4"]), clock.advance(SECONDS + 1))
    assert recent.identities == [b"3", b"4"]
    assert b"4" in recent
    assert b"2" not in recent


@pytest.mark.engines
async def test_a_redis_that_fell_back_does_not_make_a_known_message_new(redis: Redis, clock: ManualClock) -> None:
    store, recent = SessionStore(redis, "monday", SessionConfig()), CommitHistory()
    await redis.lpush(store.keys.input, raw(spoken(1)), raw(spoken(2)))  # type: ignore[misc]
    keep(recent, 1, written(identities=[message(1).identity]), clock.now())
    batches: list[Batch] = []
    inbox = Inbox(store, SessionConfig(), clock, recent)
    inbox.waiting = 2
    feeding = asyncio.create_task(inbox.feed(batches.append))
    await wait_until(lambda: batches, "they are read")
    feeding.cancel()
    assert [each.number for each in batches[0].messages] == [2]
    assert len(batches[0].raw) == 2
