"""What the inbox asks Redis about, and what it knows by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import orjson
import pytest

from context_builder.session.inbox import Batch, Inbox
from context_builder.session.message import CONSILIENCE
from context_builder.session.recent import Recent
from context_builder.session.rules import Rules
from context_builder.session.store import Read, SessionStore
from context_builder.session.unidentified import REMEMBERED, SECONDS, Unidentified, digest_of
from context_builder.testing import ManualClock


class Store:
    """Holds ``deliveries`` and knows no identity; ``asked`` is how many each question was about.

    Of those without identity, ``acknowledged`` were.
    """

    def __init__(self, *deliveries: bytes, acknowledged: int = 0) -> None:
        self.deliveries = deliveries
        self.acknowledged = acknowledged
        self.asked: list[int] = []

    async def next_input(self, seconds: int) -> bytes:
        return self.deliveries[0]

    async def read_input(self) -> Read:
        return Read([*self.deliveries], self.acknowledged)

    async def are_known(self, identities: Sequence[bytes]) -> list[bool]:
        self.asked.append(len(identities))
        return [False] * len(identities)


def said(number: int | None, speaker: str = "Alice", text: str = "Hello.") -> bytes:
    return orjson.dumps({"speaker": speaker, "text": text, "message_number": number})


async def read(store: Store, *, highest: int = 0, waiting: int = 0, taken: Sequence[bytes] = ()) -> Batch:
    """The first batch of an inbox whose session has taken in numbers up to ``highest``.

    ``taken`` are deliveries without identity that it has taken in.
    """
    recent, clock = Recent(), ManualClock()
    recent.unidentified.take(map(digest_of, taken), clock.now())
    inbox = Inbox(cast(SessionStore, store), Rules(), clock, recent)
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
    batch = await read(Store(YES, YES, acknowledged=1), waiting=2, taken=[YES])
    assert ([message.text for message in batch.messages], batch.again) == (["Yes.", "Yes."], 0)


async def test_what_a_redis_that_fell_back_gives_again_is_known() -> None:
    batch = await read(Store(YES, NO, acknowledged=3), waiting=2, taken=[WELL, YES, NO, YES, NO])
    assert ([*batch.messages], batch.again, batch.unidentified) == ([], 2, [])
    assert len(batch.raw) == 2


@pytest.mark.parametrize("new", [WELL, said(8)], ids=["without identity", "with one"])
async def test_after_the_first_that_is_new_all_are(new: bytes) -> None:
    batch = await read(Store(YES, new, YES, acknowledged=0), waiting=3, taken=[YES, YES, YES])
    assert (len(batch.messages), batch.again) == (2, 1)


async def test_a_redis_that_lost_more_than_is_remembered_gives_new_ones() -> None:
    batch = await read(Store(YES, acknowledged=0), waiting=1, taken=[YES] * (REMEMBERED + 1))
    assert (len(batch.messages), batch.again) == (1, 0)


async def test_a_lone_delivery_is_read_again_with_what_redis_has_acknowledged() -> None:
    assert (await read(Store(YES, acknowledged=0), taken=[YES])).again == 1
    assert (await read(Store(YES, acknowledged=1), taken=[YES])).again == 0


def test_a_process_that_continues_expects_the_same() -> None:
    clock, first, second = ManualClock(), Unidentified(), Unidentified()
    first.take([b"1", b"2"], clock.now())
    first.take([b"3"], clock.advance(SECONDS + 1))
    second.restore(first.encode([b"4"]), clock.now(), at_hand=True)
    assert (second.taken, list(second.expected(2))) == (4, [b"3", b"4"])
    assert not second.expected(1)  # which is too long ago to be handed on


def test_a_process_that_has_not_all_messages_at_hand_expects_none_again() -> None:
    first, second = Unidentified(), Unidentified()
    first.take([b"1"], ManualClock().now())
    second.restore(first.encode([]), ManualClock().now(), at_hand=False)
    assert (second.taken, list(second.expected(0))) == (1, [])
