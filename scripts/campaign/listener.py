"""The program that pushes what people say: it repeats what was not acknowledged, comes late, and starts over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from context_builder.session.keys import Keys
from scripts.campaign.talk import Delivery, Fields, Talk
from scripts.campaign.tokens import tokens_in

_LATE: Final = 0.04
_POISON: Final = 0.02
_REPEAT: Final = 0.03
_REVISE: Final = 0.15
"""Shares of messages that come late, of bursts with a poisoned delivery, of bursts followed by a repetition or by a
revision of what was said before."""

RENAMED: Final = ("Speaker_0", "Ida")
"""A speaker's name, and what it becomes."""

_BURSTS: Final = (1, 1, 2, 2, 3, 5, 8, 25)
_RETRY_SECONDS: Final = 0.05
_AT_ONCE: Final = 500
"""Deliveries of a repetition in one push."""


@dataclass
class Sent:
    """What Redis was given. Only ``acknowledged`` tokens must be found again; the other ``attempted`` ones may.

    ``deliveries`` are those that may be sent again; ``given_up`` are tokens of others, which a fault took or may have.
    ``forgotten`` are those of conversations before this one.
    """

    attempted: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    deliveries: list[Delivery] = field(default_factory=list)
    retried: int = 0
    repeated: int = 0
    given_up: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    roots: dict[str, str] = field(default_factory=dict)
    """By the token of a correction, that of the message that it corrects."""
    outdated: set[str] = field(default_factory=set)
    """Tokens in whose place Redis was given others."""
    struck: set[str] = field(default_factory=set)
    strikes: set[str] = field(default_factory=set)
    """Messages that were struck, and those whose strikes were attempted, too."""
    corrected: int = 0
    renamed: int = 0

    def root(self, token: str) -> str:
        """The message that a token is of, whatever it says now."""
        return self.roots.get(token, token)

    def at_present(self) -> Sent:
        """What was acknowledged until now; what is attempted later counts, too."""
        until_now = ("acknowledged", "outdated", "struck")
        return replace(self, **{name: {*getattr(self, name)} for name in until_now})

    def take_back(self, tokens: Iterable[str]) -> list[Delivery]:
        """Redis fell back to before it had these: they need not be found, until those returned are sent again."""
        gone = self.acknowledged & {*tokens}
        self.acknowledged -= gone
        again = [delivery for delivery in self.deliveries if delivery.token in gone]
        self.given_up |= gone.difference(delivery.token for delivery in again)
        return again


class Listener:
    """Pushes one session's messages through ``client``, which fails like any network."""

    def __init__(self, client: Redis, session_id: str, rng: random.Random) -> None:
        self.sent = Sent()
        self.messages = 0
        self._client = client
        self._key = Keys(session_id).input
        self._rng = rng
        self._talk = Talk(session_id, rng)
        self._held_back: list[Delivery] = []
        self._plain: dict[str, Fields] = {}
        self.revises = False
        self._pushing = asyncio.Lock()

    async def run(self, is_over: Callable[[int], bool], rate: float) -> None:
        """Push about ``rate`` messages a second until ``is_over``, asked with how many there were."""
        while not is_over(self.messages):
            burst = self._rng.choice(_BURSTS)
            await self.say(burst)
            if self._rng.random() < _POISON:
                await self.poison()
            if self._rng.random() < _REPEAT:
                await self.repeat(self._stretch())
            if self.revises and self._rng.random() < _REVISE:
                await self.revise()
            await asyncio.sleep(burst / rate * self._rng.uniform(0.3, 1.7))
        await self.push(self._held_back)
        self._held_back = []

    @asynccontextmanager
    async def silent(self) -> AsyncIterator[None]:
        """Nothing is pushed, and no push is under way."""
        async with self._pushing:
            yield

    def compose(self, *, plain: bool = False) -> Delivery:
        """A new message, which is still to be pushed."""
        self.messages += 1
        return self._talk.plain() if plain else self._talk.message()

    async def say(self, count: int) -> None:
        """Push new messages, some of them only later."""
        messages = [self.compose() for _ in range(count)]
        now = [messages[-1]] if count == 1 else [m for m in messages if self._rng.random() >= _LATE]
        self._held_back += [m for m in messages if m not in now]
        if self._held_back and self._rng.random() < 0.1:
            self._rng.shuffle(self._held_back)
            now, self._held_back = [*self._held_back, *now], []
        await self.push(now)

    async def repeat(self, deliveries: Sequence[Delivery]) -> None:
        """Start over and send what was sent before."""
        for start in range(0, len(deliveries), _AT_ONCE):
            piece = deliveries[start : start + _AT_ONCE]
            await self._until_acknowledged(piece)
        self.sent.repeated += len(deliveries)

    async def revise(self) -> None:
        """Correct or strike a message that was said before, or rename a speaker."""
        if self._rng.random() < 0.05:
            await self._until_acknowledged([self._talk.rename(*RENAMED)])
            self.sent.renamed += 1
            return
        said = self.compose_plain()
        await self.push([said])
        root = self._rng.choice([*self._plain])
        fields = self._plain[root]
        if self._rng.random() < 0.3:
            del self._plain[root]
            self.sent.strikes.add(root)
            strike = self._talk.strike(fields, root)
            await self._until_acknowledged([strike])
            self.sent.deliveries.append(strike)
            self.sent.struck.add(root)
            return
        correction, corrected = self._talk.correction(fields)
        self.sent.roots[correction.token] = root
        (before,) = _tokens_of(fields)
        await self.push([correction])
        self.sent.outdated.add(before)
        self.sent.corrected += 1
        self._plain[root] = corrected

    def compose_plain(self) -> Delivery:
        """A new plain message, which may be revised later."""
        self.messages += 1
        said, fields = self._talk.revisable()
        self._plain[said.token] = fields
        return said

    async def poison(self) -> None:
        """Push a delivery that cannot become a message. It has no identity, so each attempt is another one."""
        while await self._until_acknowledged([self._talk.poison()]):
            pass

    def start_over(self) -> Sent:
        """Begin a new conversation, of which nothing was sent yet; what was sent of the one before."""
        before = self.sent
        self.sent = Sent(forgotten=before.forgotten | before.attempted)
        self._held_back = []
        self._plain = {}
        self._talk.start_over()
        return before

    def _stretch(self) -> Sequence[Delivery]:
        """All of the session or some of it."""
        length = len(self.sent.deliveries)
        start = 0 if self._rng.random() < 0.2 else self._rng.randrange(length + 1)
        return self.sent.deliveries[start : length if start == 0 else start + self._rng.randint(1, 60)]

    async def push(self, messages: Sequence[Delivery]) -> None:
        """Push until it is acknowledged what may be pushed again; the rest once."""
        lost = await self._until_acknowledged(messages)
        self.sent.deliveries.extend(m for m in messages if m.recognizable)
        self.sent.given_up.update(m.token for m in lost)

    async def _until_acknowledged(self, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """Those of them that were pushed only once, because they would be doubled, and without an answer."""
        unanswered: list[Delivery] = []
        left = [*deliveries]
        while left:
            async with self._pushing:
                self.sent.attempted.update(delivery.token for delivery in left)
                with suppress(RedisError, OSError):
                    await self._client.lpush(self._key, *(delivery.raw for delivery in left))
                    self.sent.acknowledged.update(delivery.token for delivery in left)
                    break
            unanswered += [delivery for delivery in left if not delivery.recognizable]
            left = [delivery for delivery in left if delivery.recognizable]
            self.sent.retried += len(left)
            await asyncio.sleep(_RETRY_SECONDS)
        return unanswered


def _tokens_of(fields: Fields) -> Sequence[str]:
    return tokens_in(str(fields["text"]))
