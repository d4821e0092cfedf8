"""The program that pushes what people say: it repeats what was not acknowledged, comes late, and starts over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from context_builder.session.keys import Keys
from scripts.campaign.talk import Talk

_LATE: Final = 0.04
_POISON: Final = 0.02
_REPEAT: Final = 0.03
"""Shares of messages that come late, of bursts with a poisoned delivery, of bursts followed by a repetition."""

_BURSTS: Final = (1, 1, 2, 2, 3, 5, 8, 25)
_RETRY_SECONDS: Final = 0.05


@dataclass
class Sent:
    """What Redis was given. Only ``acknowledged`` tokens must be found again; the other ``attempted`` ones may."""

    attempted: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    deliveries: list[bytes] = field(default_factory=list)
    retried: int = 0
    repeated: int = 0


class Listener:
    """Pushes one session's messages through ``client``, which fails like any network."""

    def __init__(self, client: Redis, session_id: str, rng: random.Random) -> None:
        self.sent = Sent()
        self.messages = 0
        self._client = client
        self._key = Keys(session_id).input
        self._rng = rng
        self._talk = Talk(session_id, rng)
        self._held_back: list[tuple[str, bytes]] = []

    async def run(self, is_over: Callable[[int], bool], rate: float) -> None:
        """Push about ``rate`` messages a second until ``is_over``, asked with how many there were."""
        while not is_over(self.messages):
            burst = self._rng.choice(_BURSTS)
            await self.say(burst)
            if self._rng.random() < _POISON:
                await self.poison()
            if self._rng.random() < _REPEAT:
                await self.repeat(self._stretch())
            await asyncio.sleep(burst / rate * self._rng.uniform(0.3, 1.7))
        await self._push(self._held_back)
        self._held_back = []

    async def say(self, count: int) -> str:
        """Push new messages, some of them only later; the last one's token."""
        messages = [self._talk.message() for _ in range(count)]
        self.messages += count
        now = [messages[-1]] if count == 1 else [m for m in messages if self._rng.random() >= _LATE]
        self._held_back += [m for m in messages if m not in now]
        if self._held_back and self._rng.random() < 0.1:
            self._rng.shuffle(self._held_back)
            now, self._held_back = [*self._held_back, *now], []
        await self._push(now)
        return messages[-1][0]

    async def repeat(self, deliveries: Sequence[bytes]) -> None:
        """Start over and send what was sent before."""
        for start in range(0, len(deliveries), 500):
            await self._until_acknowledged(deliveries[start : start + 500])
        self.sent.repeated += len(deliveries)

    async def poison(self) -> None:
        """Push a delivery that cannot become a message. It has no identity, so each attempt is another one."""
        while True:
            token, raw = self._talk.poison()
            self.sent.attempted.add(token)
            with suppress(RedisError, OSError):
                await self._client.lpush(self._key, raw)
                self.sent.acknowledged.add(token)
                return
            await asyncio.sleep(_RETRY_SECONDS)

    def _stretch(self) -> Sequence[bytes]:
        """All of the session or some of it."""
        length = len(self.sent.deliveries)
        start = 0 if self._rng.random() < 0.2 else self._rng.randrange(length + 1)
        return self.sent.deliveries[start : length if start == 0 else start + self._rng.randint(1, 60)]

    async def _push(self, messages: Sequence[tuple[str, bytes]]) -> None:
        if messages:
            tokens, deliveries = zip(*messages, strict=True)
            self.sent.attempted.update(tokens)
            await self._until_acknowledged(deliveries)
            self.sent.acknowledged.update(tokens)
            self.sent.deliveries.extend(deliveries)

    async def _until_acknowledged(self, deliveries: Sequence[bytes]) -> None:
        while True:
            with suppress(RedisError, OSError):
                await self._client.lpush(self._key, *deliveries)
                return
            self.sent.retried += len(deliveries)
            await asyncio.sleep(_RETRY_SECONDS)
