"""What the inbox asks Redis about, and what it knows by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import cast

import orjson
import pytest

from context_builder.session.config import SessionConfig
from context_builder.session.inbox import Batch, Inbox
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from context_builder.session.store.deliveries import ListRead, position_after
from context_builder.session.store.recovery import (
    MOST_POSITIONS,
    SECONDS,
    CommitHistory,
    Lists,
    StoredSession,
    UnidentifiedDeliveries,
)
from context_builder.session.store.store import SessionStore
from context_builder.testing import ManualClock


class Store:
    """Has ``deliveries`` and knows no identity; ``asked`` is how many each question was about.

    They come after those that it has ``acknowledged``.
    """

    def __init__(self, *deliveries: bytes, acknowledged: Sequence[bytes] = ()) -> None:
        self.deliveries = deliveries
        self.acknowledged = acknowledged
        self.asked: list[int] = []
        self.keys = Keys("monday")

    async def next_input(self, seconds: int) -> bytes:
        return self.deliveries[0]

    async def read_input(self) -> ListRead:
        return ListRead([*self.deliveries], positions(self.acknowledged)[-1])

    async def read_index(self, fields: Collection[str]) -> dict[str, bytes]:
        return {}

    async def are_known(self, identities: Sequence[bytes]) -> list[bool]:
        self.asked.append(len(identities))
        return [False] * len(identities)


def said(number: int | None, speaker: str = "Alice", text: str = "Hello.") -> bytes:
    return orjson.dumps({"speaker": speaker, "text": text, "message_number": number})


def positions(deliveries: Sequence[bytes]) -> list[bytes]:
    """Before the first and after each."""
    return [*accumulate(deliveries, position_after, initial=b"")]


async def read(store: Store, *, highest: int = 0, waiting: int = 0, taken: Sequence[bytes] = ()) -> Batch:
    """The first batch of an inbox whose session has taken in numbers up to ``highest``.

    ``taken`` are deliveries without identity that it has taken in from the start.
    """
    recent, clock = CommitHistory(), ManualClock()
    recent.unidentified.take(positions(taken)[1:], clock.now())
    inbox = Inbox(cast(SessionStore, store), SessionConfig(), clock, recent)
    inbox.highest_number, inbox.waiting = highest, waiting
    first = asyncio.get_running_loop().create_future()
    feeding = asyncio.create_task(inbox.feed(first.set_result))
    try:
        return cast(Batch, await first)
    finally:
        feeding.cancel()


async def test_of_a_number_beyond_all_others_redis_is_not_asked() -> None:
    store = Store(said(8))
    assert [message.number for message in (await read(store, highest=7)).messages] == [8]
    assert sum(store.asked) == 0


@pytest.mark.parametrize("delivery", [said(7), said(8, CONSILIENCE), orjson.dumps({"text": "Hi.", "timestamp": "?"})])
async def test_of_everything_else_redis_is_asked(delivery: bytes) -> None:
    store = Store(delivery)
    await read(store, highest=7)
    assert sum(store.asked) == 1


async def test_what_waits_is_read_together_and_nothing_counts_twice() -> None:
    store = Store(said(9), said(8), said(9), said(9, text="Said otherwise."))
    batch = await read(store, highest=7, waiting=4)
    assert [(message.number, message.text) for message in batch.messages] == [
        (9, "Hello."),
        (8, "Hello."),
        (9, "Said otherwise."),
    ]


async def test_after_a_quiet_moment_a_delivery_comes_alone() -> None:
    assert len((await read(Store(said(8), said(9)), highest=7)).raw) == 1


# Deliveries without identity

YES, NO, WELL = (said(None, text=text) for text in ("Yes.", "No.", "Well."))


async def test_who_says_yes_twice_said_it_twice() -> None:
    batch = await read(Store(YES, YES, acknowledged=[YES]), waiting=2, taken=[YES])
    assert [message.text for message in batch.messages] == ["Yes.", "Yes."]


async def test_what_a_redis_that_fell_back_gives_again_is_known() -> None:
    batch = await read(Store(YES, NO, acknowledged=[WELL, YES, NO]), waiting=2, taken=[WELL, YES, NO, YES, NO])
    assert ([*batch.messages], batch.unidentified) == ([], [])
    assert len(batch.raw) == 2
    assert batch.end == positions([WELL, YES, NO, YES, NO])[-1]


@pytest.mark.parametrize("new", [WELL, said(8)], ids=["without identity", "with one"])
async def test_after_the_first_that_is_new_all_are(new: bytes) -> None:
    batch = await read(Store(YES, new, YES), waiting=3, taken=[YES, YES, YES])
    assert len(batch.messages) == 2


async def test_what_was_taken_in_on_either_side_of_a_fall_back_is_known() -> None:
    """Redis fell back behind what came after the first one, and then behind what came in its place."""
    recent, clock = CommitHistory(), ManualClock()
    for after in ([YES, NO], [YES, WELL]):
        recent.unidentified.take(positions(after)[1:], clock.now())
    inbox = Inbox(cast(SessionStore, Store()), SessionConfig(), clock, recent)
    batches = [await inbox._batch(inbox._decode([YES, *after]), b"") for after in ([NO], [WELL], [WELL, NO])]
    assert [[message.text for message in batch.messages] for batch in batches] == [[], [], ["No."]]


async def test_a_redis_that_lost_more_than_is_remembered_gives_new_ones() -> None:
    batch = await read(Store(YES), waiting=1, taken=[YES] * (MOST_POSITIONS + 1))
    assert len(batch.messages) == 1


async def test_a_lone_delivery_is_read_again_with_its_position() -> None:
    assert not (await read(Store(YES), taken=[YES])).messages
    assert (await read(Store(YES, acknowledged=[YES]), taken=[YES])).messages


def test_a_process_that_continues_knows_the_newest() -> None:
    clock, first, second = ManualClock(), UnidentifiedDeliveries(), UnidentifiedDeliveries()
    first.take([b"1", b"2"], clock.now())
    first.take([b"3"], clock.advance(SECONDS + 1))
    second.restore(first.encode([b"4"]), clock.now())
    assert [position in second for position in (b"2", b"3", b"4")] == [False, True, True]


@pytest.mark.parametrize("at_hand", [True, False])
def test_a_process_that_has_not_all_messages_at_hand_knows_none(at_hand: bool) -> None:
    first, recent = UnidentifiedDeliveries(), CommitHistory()
    first.take([b"1"], ManualClock().now())
    pending = Lists(pending=[b"{}"] if at_hand else [])
    fields = {"unidentified": first.encode([])}
    recent.begin(StoredSession(1, fields, 1, b"1", newest=pending), ManualClock().now())
    assert (b"1" in recent.unidentified, recent.position) == (at_hand, b"1")


# Messages from the future


@pytest.mark.parametrize("timestamp", ["2099-01-01T00:00:00", "2099-01-01T00:00:00+00:00", "9999-12-30T23:59:59"])
async def test_what_was_said_in_the_future_counts_as_now_and_is_published_as_it_came(timestamp: str) -> None:
    (message,) = (await read(Store(orjson.dumps({"text": "I prefer tea.", "timestamp": timestamp})))).messages
    assert (message.timestamp, message.timestamp_raw) == (timestamp, None)
    assert message.time == ManualClock().now().wall


async def test_another_time_zone_is_not_the_future() -> None:
    ahead = datetime.fromtimestamp(ManualClock().now().wall + 14 * 3600, UTC)
    (message,) = (await read(Store(orjson.dumps({"text": "Hello.", "timestamp": ahead.isoformat()})))).messages
    assert message.time == ahead.timestamp()
