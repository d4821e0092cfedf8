"""One session after another, each with its listener, its daemon, and the faults that befall them."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from redis.exceptions import RedisError

from context_builder.errors import ContextBuilderError
from context_builder.session.availability import until_available
from context_builder.session.catalog import Catalog
from context_builder.session.keys import Keys
from scripts.campaign.audit import Places, judge, judge_archive, judge_memory, remembered_in
from scripts.campaign.daemon import CROWDED, Daemon
from scripts.campaign.deck import Decks
from scripts.campaign.link import Link
from scripts.campaign.listener import Listener
from scripts.campaign.tally import Tally
from scripts.campaign.world import World, client_of

PATIENCE = 40.0
"""Seconds within which everything must have recovered; more than any pause that the daemon makes on purpose."""

MUTANTS_PATIENCE = 8.0
"""Seconds for a daemon that is to fail."""

_IS_VISIBLE = "local s = redis.call('GET', KEYS[1]) return s and string.find(s, ARGV[1], 1, true) and 1 or 0"


class Stuck(ContextBuilderError):
    """What should have happened did not, for too long."""


@dataclass(frozen=True)
class Plan:
    """How much of everything; ``deadline`` on the monotonic clock ends faults and talk early."""

    seed: str
    kills: int
    messages: int
    rate: float
    deadline: float
    mutation: str | None


class Lane:
    """Runs one session; a lane's parts are what a fault reaches."""

    def __init__(self, world: World, tally: Tally, plan: Plan, session: int, decks: Decks) -> None:
        self.world = world
        self.tally = tally
        self.decks = decks
        self.session_id = f"faults-{session}"
        self.rng = random.Random(f"{plan.seed}/{session}/faults")
        self.link = Link(world.redis_server.port)
        self.patience = PATIENCE if plan.mutation is None else MUTANTS_PATIENCE
        self.kills = 0
        self.crowded = plan.mutation is None and session % 3 == 2
        self._plan = plan
        self._keys = Keys(self.session_id)
        self._talk = random.Random(f"{plan.seed}/{session}/talk")
        self.killed_at: float | None = None
        self._daemons: list[Daemon] = []

    async def run(self, inflict: Callable[[Lane], Awaitable[str]]) -> None:
        """Talk under faults, then let everything recover, then account for every message."""
        await self.link.open()
        self.daemon = self.new_daemon()
        self.listener = Listener(client_of(self.link.port), self.session_id, self._talk)
        try:
            await self.revive()
            await self._suffer(inflict)
            if not self._is_over:
                await self._account()
            await self._stop()
        except Stuck as stuck:
            self.tally.note(f"{self.session_id}: {stuck}; it said last:\n{self.daemon.last_words()}")
        finally:
            for daemon in self._daemons:
                await daemon.kill()
            await self.link.close()

    def new_daemon(self) -> Daemon:
        environ = {**self.world.environ(self.link), **(CROWDED if self.crowded else {})}
        daemon = Daemon(self.session_id, environ, self.world.folder, self._plan.mutation)
        self._daemons.append(daemon)
        return daemon

    async def kill(self) -> None:
        await self.daemon.kill()
        self.killed_at = time.monotonic()
        self.kills += 1
        self.tally.kills += 1

    async def revive(self) -> None:
        """Start the daemon if it does not run, and wait until it publishes."""
        began = self.killed_at
        if self.daemon.status is not None:
            self.daemon.start()
        await self.published_again()
        if began is not None:
            self.tally.after_kill.append(time.monotonic() - began)
        self.killed_at = None

    async def published_again(self) -> None:
        """Wait until this daemon publishes the state anew: the silence clock then expires later.

        A commit of the daemon before it may still have been on its way.
        """
        until = await self._expiry()

        async def published() -> bool:
            return await self._expiry() > until + 0.05 and await self._committed_last() == self.daemon.pid

        await self._wait(published, "the state is published again", poll=0.005)

    async def visible_after(self) -> float:
        """Seconds from the push of a new message until readers see it in the state."""
        pushed = time.monotonic()
        token = await self.listener.say(1)
        await self._wait(lambda: self._is_visible(token), f"{token} is visible", poll=0.001)
        return time.monotonic() - pushed

    async def pause(self, longest: float) -> None:
        await asyncio.sleep(self.rng.uniform(0, longest))

    async def audit(self, context: str) -> Places:
        """Look for every message acknowledged until now."""
        acknowledged = frozenset(self.listener.sent.acknowledged)
        places = await self._places()
        self.tally.find(self.session_id, judge(places, acknowledged, self.listener.sent), context)
        return places

    async def _suffer(self, inflict: Callable[[Lane], Awaitable[str]]) -> None:
        talking = asyncio.create_task(self.listener.run(self._said_enough, self._plan.rate), name="listener")
        try:
            while self.kills < self._plan.kills and not self._ends_early():
                fault = await inflict(self)
                self.tally.faults[fault] += 1
                if self._plan.mutation or (self.rng.random() < 0.2 and not self.crowded):
                    await self.audit(fault)
            await talking
        finally:
            talking.cancel()

    def _said_enough(self, messages: int) -> bool:
        return messages >= self._plan.messages or self._ends_early()

    def _ends_early(self) -> bool:
        """Time is up, or there is nothing more to find out."""
        return time.monotonic() > self._plan.deadline or self._is_over

    @property
    def _is_over(self) -> bool:
        """Interrupted, or a mutant that lost or doubled something, and is of no more use."""
        found_out = self._plan.mutation is not None and bool(self.tally.lost or self.tally.doubled)
        return self.tally.interrupted or found_out

    async def _account(self) -> None:
        """Everything summarized, archived and remembered exactly once, also after all of it was sent again."""
        await self._settle("the faults")
        await self.listener.repeat(self.listener.sent.deliveries)
        await self.kill()
        await self.revive()
        places = await self._settle("sending everything again")
        rows = await self.world.archived(self.session_id)
        named = not self.crowded
        self.tally.find(self.session_id, judge_archive(places, rows, named=named), "archiving")
        memories = await self.world.remembered(self.session_id)
        self.tally.find(self.session_id, judge_memory(places, memories, named=named), "remembering")
        degraded = places.summary.get("degraded_messages", 0)
        self.tally.close_session(self.listener.sent, places.dead.total(), len(rows), degraded)

    async def _settle(self, context: str) -> Places:
        async def settled() -> bool:
            return (await Places.read(self.world.redis, self.session_id)).settled

        await self._wait(settled, f"all is summarized after {context}", poll=0.25)
        return await self.audit(context)

    async def _places(self) -> Places:
        """Read when Redis is there: another lane may just have killed it."""
        async with self.world.calm.beside():
            places = await Places.read(self.world.redis, self.session_id)
        if self.crowded:  # looked at when all has settled: what is summarized is in the memory word for word
            places = replace(places, summarized=remembered_in(await self.world.remembered(self.session_id)))
        return places

    async def _stop(self) -> None:
        self.daemon.signal(signal.SIGTERM)
        if await self.daemon.ended() != 0 and self._plan.mutation is None:
            self.tally.note(f"{self.session_id}: exit status {self.daemon.status} after SIGTERM")
            await self.daemon.kill()
        async for attempt in until_available():  # another lane may just have killed Redis
            with attempt:
                await Catalog(self.world.redis).forget(self.session_id)

    async def _committed_last(self) -> int | None:
        """The process whose commit the session is."""
        lease = await self.world.redis.hget(self._keys.checkpoint, "by")
        return int(json.loads(lease)["pid"]) if lease else None

    async def _expiry(self) -> float:
        """When the silence clock expires, in monotonic seconds; 0 when there is none."""
        left = await self.world.redis.pttl(self._keys.conversation)
        return time.monotonic() + left / 1000 if left > 0 else 0.0

    async def _is_visible(self, token: str) -> bool:
        return bool(await self.world.redis.eval(_IS_VISIBLE, 1, self._keys.state, token))

    async def _wait(self, predicate: Callable[[], Awaitable[bool]], description: str, *, poll: float) -> None:
        deadline = time.monotonic() + self.patience
        while True:
            try:
                if await predicate():
                    return
            except (RedisError, OSError):
                pass  # it was killed, and is being started
            if time.monotonic() > deadline:
                raise Stuck(f"waited {self.patience:g} s in vain until {description}")
            if self.daemon.status is not None:
                raise Stuck(f"the daemon ended with status {self.daemon.status} before {description}")
            await asyncio.sleep(poll)
