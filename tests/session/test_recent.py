"""What is remembered of the last commits, for a Redis that comes back without them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from redis.asyncio import Redis

from context_builder.archive.archive import SummaryRow
from context_builder.memory.memory import Memory
from context_builder.session import recent as module
from context_builder.session.changes import Changes
from context_builder.session.commit import Commit
from context_builder.session.entry import Entry
from context_builder.session.inbox import Batch, Inbox
from context_builder.session.recent import SECONDS, Recent
from context_builder.session.remembrance import Remembrance
from context_builder.session.rules import Rules
from context_builder.session.store import SessionStore
from context_builder.testing import ManualClock
from tests.services.waiting import wait_until
from tests.session.saying import ARRIVAL, message, raw, spoken


def pending(*ids: int, trimmed: int = 0, outbox: tuple[int, ...] = ()) -> Changes:
    """These become pending, so many of the oldest are summarized, these summaries are to be archived and remembered."""
    rows = [SummaryRow.model_construct(summary_seq=seq) for seq in outbox]
    entries = [Entry(each, message(each), ARRIVAL) for each in ids]
    parts = [Remembrance("monday", [Memory(str(seq), "A point.")], []) for seq in outbox]
    return Changes(pending_added=entries, pending_trimmed=trimmed, outbox=rows, memory_outbox=parts)


def written(changes: Changes, identities: Sequence[bytes]) -> Commit:
    return Commit(b"{}", 0.0, head=b"{}", changes=changes, identities=identities)


def ids(changes: Changes) -> list[int]:
    return [Entry.decode(entry, ARRIVAL).id for entry in changes.encoded_pending()]


@pytest.fixture
def recent(clock: ManualClock) -> Recent:
    """Of commits 11 to 13, in which 21 to 26 became pending and two were summarized."""
    recent = Recent()
    recent.keep(11, written(pending(21, 22), [b"21", b"22"]), clock.now())
    recent.keep(12, written(pending(23, 24, outbox=(5,)), [b"23", b"24"]), clock.advance(1))
    recent.keep(13, written(pending(25, 26, trimmed=2, outbox=(6,)), [b"25", b"26"]), clock.advance(1))
    return recent


def test_what_the_lost_commits_did_to_lists_is_done_again_before_the_rest(recent: Recent) -> None:
    changes = pending(27, trimmed=1, outbox=(7,))
    recent.give_again(changes, held=11, pending=99)
    assert (ids(changes), changes.pending_trimmed) == ([23, 24, 25, 26, 27], 3)
    assert [row.summary_seq for row in changes.outbox] == [5, 6, 7]
    assert [part.memories[0].id for part in changes.memory_outbox] == ["5", "6", "7"]


def test_when_more_was_lost_only_what_should_be_pending_is_given_again_and_nothing_is_taken_out(recent: Recent) -> None:
    changes = pending(27, trimmed=1)
    recent.give_again(changes, held=9, pending=3)
    assert (ids(changes), changes.pending_trimmed) == ([25, 26, 27], 0)


def test_a_process_that_has_committed_nothing_takes_nothing_out() -> None:
    changes = pending(27, trimmed=1)
    Recent().give_again(changes, held=9, pending=3)
    assert (ids(changes), changes.pending_trimmed) == ([27], 0)


def test_the_last_seconds_before_the_last_commit_are_remembered(recent: Recent, clock: ManualClock) -> None:
    clock.advance(SECONDS - 1)
    recent.keep(14, written(pending(27), []), clock.now())  # so that the commit with 23 and 24 is just recent enough
    changes = pending()
    recent.give_again(changes, held=11, pending=99)
    assert ids(changes) == [23, 24, 25, 26, 27]
    recent.keep(15, written(pending(28), []), clock.advance(0.5))
    again = pending()
    recent.give_again(again, held=11, pending=99)
    assert (ids(again), again.pending_trimmed) == ([25, 26, 27, 28], 0)


def test_large_messages_are_remembered_for_a_shorter_time(recent: Recent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PENDING_BYTES", 10)
    recent.keep(14, written(pending(27), []), ManualClock().advance(2))
    changes = pending()
    recent.give_again(changes, held=11, pending=99)
    assert ids(changes) == [27]


def test_the_newest_identities_are_remembered_for_longer(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDENTITIES", 2)
    recent = Recent()
    recent.keep(1, written(Changes(), [b"1", b"2", b"3"]), clock.now())
    assert recent.identities == [b"1", b"2", b"3"]
    recent.keep(2, written(Changes(), [b"4"]), clock.advance(SECONDS + 1))
    assert recent.identities == [b"3", b"4"]
    assert b"4" in recent
    assert b"2" not in recent


@pytest.mark.engines
async def test_a_redis_that_fell_back_does_not_make_a_known_message_new(redis: Redis, clock: ManualClock) -> None:
    store, recent = SessionStore(redis, "monday", Rules()), Recent()
    await redis.lpush(store.keys.input, raw(spoken(1)), raw(spoken(2)))  # type: ignore[misc]
    recent.keep(1, written(Changes(), [message(1).identity]), clock.now())
    batches: list[Batch] = []
    inbox = Inbox(store, Rules(), clock, recent)
    inbox.waiting = 2
    feeding = asyncio.create_task(inbox.feed(batches.append))
    await wait_until(lambda: batches, "they are read")
    feeding.cancel()
    assert [each.number for each in batches[0].messages] == [2]
    assert len(batches[0].raw) == 2
