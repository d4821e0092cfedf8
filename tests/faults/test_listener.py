"""The campaign's listener sends again what can be recognized, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from scripts.campaign.listener import Listener, Sent
from scripts.campaign.talk import Delivery


class LostAnswers:
    """Takes what is pushed; every second push is not answered."""

    def __init__(self) -> None:
        self.pushed: Counter[bytes] = Counter()
        self._pushes = 0

    async def lpush(self, key: str, *deliveries: bytes) -> None:
        self.pushed.update(deliveries)
        self._pushes += 1
        if self._pushes % 2:
            raise RedisConnectionError


def listener(client: LostAnswers) -> Listener:
    return Listener(cast(Redis, client), "monday", random.Random("1"))


async def test_what_cannot_be_recognized_is_pushed_once() -> None:
    client = LostAnswers()
    speaker = listener(client)
    for _ in range(40):
        await speaker.say(3)
    again = {delivery.raw for delivery in speaker.sent.deliveries}
    assert {raw for raw, times in client.pushed.items() if times > 1} <= again
    assert {times for raw, times in client.pushed.items() if raw not in again} == {1}


async def test_what_was_not_answered_and_is_not_sent_again_need_not_be_there() -> None:
    speaker = listener(LostAnswers())
    for _ in range(40):
        await speaker.say(3)
    sent = speaker.sent
    assert sent.given_up == sent.attempted - sent.acknowledged
    assert sent.given_up


async def test_poison_is_another_one_each_time() -> None:
    client = LostAnswers()
    speaker = listener(client)
    await speaker.poison()
    assert set(client.pushed.values()) == {1}
    assert len(speaker.sent.attempted) == 2
    assert len(speaker.sent.acknowledged) == 1


async def test_a_new_conversation_knows_what_must_not_come_back() -> None:
    speaker = listener(LostAnswers())
    await speaker.say(25)
    before = speaker.start_over()
    await speaker.say(25)
    assert speaker.sent.forgotten == before.attempted
    assert not speaker.sent.attempted & before.attempted


def test_what_redis_lost_is_due_again_if_it_can_be_sent_again() -> None:
    named = Delivery("m000001", b"1", recognizable=True)
    sent = Sent(acknowledged={"m000001", "m000002", "m000003"}, deliveries=[named])
    assert sent.take_back({"m000001", "m000002", "m000009"}) == [named]
    assert sent.acknowledged == {"m000003"}
    assert sent.given_up == {"m000002"}
