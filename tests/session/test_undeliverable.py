"""Whatever a relay meets, the session goes on: what will never be taken becomes a dead letter, the rest arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from context_builder.archive.archive import SummaryRow
from context_builder.errors import (
    DatabaseRejected,
    DatabaseUnavailable,
    DataRejected,
)
from context_builder.memory.memory import Memory
from context_builder.session import relays
from context_builder.session.keys import RECEIVERS, Keys, Receiver
from context_builder.session.store.dead_letters import DeadLetters
from context_builder.testing import InMemoryArchive, InMemoryStore
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

KEYS = Keys("monday")

METRIC = ("context_builder_summaries_archived_total", {"outcome": "dead"})

PRIVATE = "what somebody said"
"""Must not be told by anything but the entry itself."""


class ChoosyArchive(InMemoryArchive):
    """Fails at the summaries whose numbers are in ``bad``, at every attempt."""

    def __init__(self, fail: Callable[[], BaseException], *bad: int) -> None:
        super().__init__()
        self.fail = fail
        self.bad = set(bad)
        self.attempts: list[int] = []

    async def deliver(self, row: SummaryRow) -> int:
        self.attempts.append(row.summary_seq)
        if row.summary_seq in self.bad:
            raise self.fail()
        return await super().deliver(row)


class ChoosyMemory(InMemoryStore):
    """Fails at what somebody says who is named Mallory."""

    def __init__(self, fail: Callable[[], BaseException]) -> None:
        super().__init__()
        self.fail = fail

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        if any(memory.speaker == "Mallory" for memory in memories):
            raise self.fail()
        await super().remember(tenant_id, memories)


class _Cut(BaseException):
    """No :class:`Exception`, as some libraries' own cancellations are."""


FAILURES: list[Callable[[], BaseException]] = [
    lambda: KeyError(PRIVATE),
    lambda: RecursionError(PRIVATE),
    lambda: UnicodeEncodeError("utf-8", PRIVATE, 0, 1, PRIVATE),
    lambda: ExceptionGroup(PRIVATE, [ValueError(PRIVATE), TypeError(PRIVATE)]),
    lambda: BaseExceptionGroup(PRIVATE, [asyncio.CancelledError(), ValueError(PRIVATE)]),
    lambda: asyncio.CancelledError(),
    lambda: _Cut(PRIVATE),
    lambda: DatabaseRejected("takes none like this (P0001)"),
    lambda: DatabaseUnavailable("does not answer in time"),
]


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Relays try again soon."""
    monkeypatch.setattr(relays, "LONGEST_WAIT", 0.01)


async def summarize(live: Live, *numbers: int, speaker: str = "Alice") -> None:
    """Say messages, and let each be summarized by itself."""
    for number in numbers:
        await live.push(spoken(number, f"Message {number} tells {PRIVATE}", speaker))
        await live.shows(number)
        live.clock.advance(121)
        await live.until(f"message {number} is summarized", message_count=number)


async def reasons(live: Live, receiver: Receiver) -> list[str]:
    return [letter.reason for letter in await DeadLetters(live.redis, "monday", receiver).all()]


def counts(archive: int = 0, memory: int = 0) -> dict[str, Any]:
    return {"undeliverable": {"archive": archive, "memory": memory}}


async def test_entries_that_cannot_be_read_make_way_for_the_others(live: Live) -> None:
    poison = {"archive": [b"\x93\xff\x00random", b"{}", b"null"], "memory": [b"\x93\xff\x00random", b"", b"x\x9c\x03"]}
    for receiver in RECEIVERS:
        await live.redis.rpush(KEYS.outbox_of(receiver), *poison[receiver])
    await live.start()
    await summarize(live, 1)
    await live.until("all of them are counted", **counts(3, 3))
    await wait_until(lambda: len(live.archive.rows) == 1, "the summary is archived")
    await wait_until(lambda: live.memory.kept, "the message is remembered")  # type: ignore[attr-defined]
    for receiver in RECEIVERS:
        letters = await DeadLetters(live.redis, "monday", receiver).all()
        assert [letter.raw for letter in letters] == poison[receiver]
        assert [letter.reason.partition(":")[0] for letter in letters] in (
            ["not a summary"] * 3,
            ["not a memory batch"] * 3,
        )


async def test_a_row_that_is_refused_for_good_makes_way_at_once(live: Live) -> None:
    live.archive = ChoosyArchive(lambda: DataRejected("refuses: violates a constraint (23514)"), 2)
    before = REGISTRY.get_sample_value(*METRIC) or 0
    await live.start()
    await summarize(live, 1, 2, 3)
    await live.until("it is counted", **counts(archive=1))
    assert REGISTRY.get_sample_value(*METRIC) == before + 1
    await wait_until(lambda: sorted(seq for _, seq in live.archive.rows) == [1, 3], "the others are archived")
    assert live.archive.attempts.count(2) == 1
    assert await reasons(live, "archive") == ["refuses: violates a constraint (23514)"]


@pytest.mark.parametrize("fail", FAILURES)
async def test_what_fails_alone_again_and_again_makes_way(live: Live, fail: Callable[[], BaseException]) -> None:
    live.archive = archive = ChoosyArchive(fail, 1, 2)
    await live.start()
    with capture_logs() as logs:
        await summarize(live, 1, 2, 3)
        state = await live.until("both are counted", **counts(archive=2))
    assert state["rolling_summary"]["message_count"] == 3
    await wait_until(lambda: [seq for _, seq in archive.rows] == [3], "the third is archived")
    assert archive.attempts.count(1) >= relays.TRIES
    told = [*await reasons(live, "archive"), *map(str, logs)]
    assert not any(PRIVATE in line for line in told)
    assert sum(entry["event"] == "delivery.dead_letter" for entry in logs) == 2


async def test_several_in_a_row_make_way_for_what_follows_them(live: Live) -> None:
    bad = range(1, relays.OTHERS + 4)
    live.archive = archive = ChoosyArchive(lambda: KeyError(PRIVATE), *bad)
    session = await live.start()
    await summarize(live, *bad)
    await live.stop(session)
    await live.start()
    await summarize(live, bad[-1] + 1)
    await live.until("all of them are counted", **counts(archive=len(bad)))
    await wait_until(lambda: [seq for _, seq in archive.rows] == [bad[-1] + 1], "the last is archived")


async def test_a_receiver_that_takes_nothing_is_waited_for(live: Live) -> None:
    live.archive = archive = ChoosyArchive(lambda: KeyError(PRIVATE), 1, 2, 3)
    await live.start()
    await summarize(live, 1, 2, 3)
    await wait_until(lambda: archive.attempts.count(1) > 3 * relays.TRIES, "it was tried often")
    assert await live.redis.llen(KEYS.outbox) == 3
    archive.bad.clear()
    await wait_until(lambda: live.lacks(KEYS.outbox), "all are delivered")
    assert sorted(seq for _, seq in archive.rows) == [1, 2, 3]
    assert (await live.state())["undeliverable"] == {"archive": 0, "memory": 0}


async def test_one_that_recovers_is_delivered_in_its_turn(live: Live) -> None:
    archive = live.archive = ChoosyArchive(lambda: DatabaseUnavailable("too busy"), 1)
    await live.start()
    await summarize(live, 1, 2)
    await wait_until(lambda: archive.attempts.count(2) >= 2, "the one behind it passes")
    assert await live.redis.llen(KEYS.outbox) == 2
    archive.bad.clear()
    await wait_until(lambda: live.lacks(KEYS.outbox), "both are delivered")
    assert archive.attempts[-2:] == [1, 2]


async def test_the_count_outlives_the_process_that_dies_before_it_is_published(live: Live) -> None:
    live.memory = ChoosyMemory(lambda: DataRejected("refuses"))
    session = await live.start()
    await summarize(live, 1, speaker="Mallory")
    await live.until("it is counted", **counts(memory=1))
    live.die(session)
    await live.redis.rpush(KEYS.memory_outbox, b"random")
    outbox = live.session()._store.memory_outbox
    assert await outbox.move_to_dead_letters(b"random", b"{}") == 2
    assert await outbox.move_to_dead_letters(b"random", b"{}") == 2  # its answer was lost
    assert await live.redis.llen(KEYS.memory_dead) == 2
    await live.start(takeover=True)
    await live.until("both are counted", **counts(memory=2))


async def test_a_redis_that_lost_everything_goes_on_counting(live: Live) -> None:
    live.memory = ChoosyMemory(lambda: DataRejected("refuses"))
    await live.start()
    await summarize(live, 1, speaker="Mallory")
    await live.until("it is counted", **counts(memory=1))
    await live.redis.flushall()
    await live.until("what was given to Redis again is counted again", **counts(memory=2))
    await summarize(live, 2, speaker="Mallory")
    await live.until("another one is counted", **counts(memory=3))


async def test_their_room_is_bounded_but_the_newest_always_stays(live: Live) -> None:
    live.archive = ChoosyArchive(lambda: DataRejected("refuses"), *range(1, 6))
    await live.start(dead_letters_max=2, dead_letters_bytes=10_000_000)
    await summarize(live, 1, 2, 3)
    await live.until("all are counted", **counts(archive=3))
    assert await live.redis.llen(KEYS.archive_dead) == 2
    await live.stop(next(iter(live.tasks)))
    await live.start(dead_letters_bytes=1)
    await summarize(live, 4)
    await live.until("all are counted", **counts(archive=4))
    (kept,) = await DeadLetters(live.redis, "monday", "archive").all()
    assert SummaryRow.model_validate_json(kept.raw).summary_seq == 4


async def test_ending_waits_until_it_is_known_what_makes_way(live: Live) -> None:
    live.archive = archive = ChoosyArchive(lambda: KeyError(PRIVATE), 1)
    live.memory = ChoosyMemory(lambda: DatabaseUnavailable("does not answer in time"))
    session = await live.start()
    await summarize(live, 1, speaker="Mallory")
    await summarize(live, 2)
    await wait_until(lambda: 2 in archive.attempts, "the archive is asked about the second one")
    session.end()
    await live.gone(session)
    assert [seq for _, seq in archive.rows] == [2]
    assert (session.relays.undelivered, session.relays.unremembered) == (0, 0)
    assert (await live.state())["undeliverable"] == {"archive": 1, "memory": 1}


async def test_ending_does_not_wait_for_ever_for_one_that_fails_by_itself(live: Live) -> None:
    live.archive = ChoosyArchive(lambda: KeyError(PRIVATE), 1)
    session = await live.start()
    await live.say(1)
    session.end()
    await live.gone(session)
    assert session.relays.undelivered == 1


class StubbornArchive(InMemoryArchive):
    """Makes another error of a cancellation."""

    async def deliver(self, row: SummaryRow) -> int:
        self.deliveries += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise DatabaseUnavailable("cut off") from None
        return row.summary_seq


async def test_a_session_stops_although_its_archive_swallows_the_cancellation(live: Live) -> None:
    live.archive = StubbornArchive()
    session = await live.start()
    await summarize(live, 1)
    await wait_until(lambda: live.archive.deliveries, "it is being delivered")
    await live.stop(session)
    assert await live.redis.llen(KEYS.outbox) == 1
