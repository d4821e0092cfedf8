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
from context_builder.session.store import SessionStore
from context_builder.testing import ManualClock


class Input:
    """A store that holds ``deliveries`` and knows no identity; ``asked`` is how many each question was about."""

    def __init__(self, *deliveries: bytes) -> None:
        self.deliveries = deliveries
        self.asked: list[int] = []

    async def next_input(self, seconds: int) -> bytes:
        return self.deliveries[0]

    async def read_input(self) -> Sequence[bytes]:
        return self.deliveries

    async def are_known(self, identities: Sequence[bytes]) -> list[bool]:
        self.asked.append(len(identities))
        return [False] * len(identities)


def said(number: int | None, speaker: str = "Alice", text: str = "Hello.") -> bytes:
    return orjson.dumps({"speaker": speaker, "text": text, "message_number": number})


async def read(store: Input, *, highest: int, waiting: int = 0) -> Batch:
    """The first batch of an inbox whose session has taken in numbers up to ``highest``."""
    inbox = Inbox(cast(SessionStore, store), Rules(), ManualClock(), Recent())
    inbox.highest_number, inbox.waiting = highest, waiting
    first = asyncio.get_running_loop().create_future()
    feeding = asyncio.create_task(inbox.feed(first.set_result))
    try:
        return cast(Batch, await first)
    finally:
        feeding.cancel()


async def test_of_a_number_beyond_all_others_redis_is_not_asked() -> None:
    store = Input(said(8))
    assert [message.number for message in (await read(store, highest=7)).messages] == [8]
    assert sum(store.asked) == 0


@pytest.mark.parametrize("delivery", [said(7), said(None), said(8, CONSILIENCE)])
async def test_of_everything_else_redis_is_asked(delivery: bytes) -> None:
    store = Input(delivery)
    await read(store, highest=7)
    assert sum(store.asked) == 1


async def test_what_waits_is_read_together_and_nothing_counts_twice() -> None:
    store = Input(said(9), said(8), said(9), said(9, text="Said otherwise."))
    batch = await read(store, highest=7, waiting=4)
    assert [(message.number, message.text) for message in batch.messages] == [
        (9, "Hello."),
        (8, "Hello."),
        (9, "Said otherwise."),
    ]


async def test_after_a_quiet_moment_a_delivery_comes_alone() -> None:
    assert len((await read(Input(said(8), said(9)), highest=7)).raw) == 1
