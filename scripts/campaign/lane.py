"""One session after another, each with its listener, its Redis, its daemon, and the faults that befall them."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from redis.exceptions import RedisError

from context_builder.errors import ContextBuilderError
from scripts.campaign.account import Account, hostile_name
from scripts.campaign.audit import Places
from scripts.campaign.daemon import CROWDED, ROOT, SETTINGS, Daemon, command
from scripts.campaign.deck import Decks
from scripts.campaign.redis_host import RedisHost
from scripts.campaign.tally import Tally
from scripts.campaign.world import World
from tests.services.link import Link

PATIENCE = 40.0
"""Seconds within which everything must have recovered; more than any pause that the daemon makes on purpose."""

MUTANTS_PATIENCE = 20.0
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
    hosted: bool = False
    patience: float = PATIENCE


class Lane(Account):
    """Runs one session; a lane's parts are what a fault reaches."""

    def __init__(self, world: World, host: RedisHost, tally: Tally, plan: Plan, session: int, decks: Decks) -> None:
        crowded = plan.mutation is None and session % 3 == 2
        talk = random.Random(f"{plan.seed}/{session}/talk")
        super().__init__(world, host, tally, hostile_name("faults", session), talk, crowded=crowded)
        self.decks = decks
        self.rng = random.Random(f"{plan.seed}/{session}/faults")
        self.patience = plan.patience if plan.mutation is None else MUTANTS_PATIENCE
        self.kills = 0
        self.killed_at: float | None = None
        self._plan = plan
        self._daemons: list[Daemon] = []

    async def run(self, inflict: Callable[[Lane], Awaitable[str]]) -> None:
        """Talk under faults, then let everything recover, then account for every message."""
        self.daemon = self.new_daemon()
        self.open_listener()
        self.listener.revises = self._revises
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

    @property
    def _revises(self) -> bool:
        """Whether what was said is corrected and struck: not where it cannot be told where each message is."""
        return self._plan.mutation is None and not self.crowded

    @property
    def link(self) -> Link:
        """The way of daemon and listener to Redis."""
        return self.host.link

    def new_daemon(self) -> Daemon:
        run = self.command("run", self.session_id)
        daemon = Daemon(self.session_id, run, self.environ(), self.world.folder)
        self._daemons.append(daemon)
        return daemon

    def command(self, *arguments: str) -> list[str]:
        """A command about this session, with the mutation that its daemon has."""
        return command(self._plan.mutation, *arguments, hosted=self._plan.hosted)

    def environ(self) -> Mapping[str, str]:
        """Of a daemon of this session, or a command about it."""
        chosen = {**SETTINGS, **(CROWDED if self.crowded else {}), **self.world.environ(self.link)}
        return {**os.environ, "PYTHONPATH": str(ROOT), "EMBEDDED_EMBEDDINGS": "false", **chosen}

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
            return await self._expiry() > until + 0.05 and await self._is_the_daemons()

        await self.wait(published, "the state is published again", poll=0.005)

    async def visible_after(self) -> float:
        """Seconds from the push of a new message until readers see it in the state."""
        message = self.listener.compose(plain=True)
        pushed = time.monotonic()
        await self.listener.push([message])
        await self.wait(lambda: self._is_visible(message.token), f"{message.token} is visible", poll=0.001)
        return time.monotonic() - pushed

    async def pause(self, longest: float) -> None:
        await asyncio.sleep(self.rng.uniform(0, longest))

    async def wait(self, predicate: Callable[[], Awaitable[bool]], description: str, *, poll: float) -> None:
        """Until ``predicate`` holds, for as long as the daemon lives. Raises :class:`Stuck`."""

        async def left() -> int:
            return 0 if await predicate() else 1

        await self.work_off(left, description, poll=poll)

    async def work_off(self, left: Callable[[], Awaitable[int]], description: str, *, poll: float) -> None:
        """Until nothing is ``left``, for as long as that changes and the daemon lives. Raises :class:`Stuck`."""
        deadline = time.monotonic() + self.patience
        before = 0
        while True:
            try:
                if not (now := await left()):
                    return
                if now != before:
                    before, deadline = now, time.monotonic() + self.patience
            except (RedisError, OSError):
                pass  # it was killed, and is being started
            if time.monotonic() > deadline:
                raise Stuck(f"waited {self.patience:g} s in vain until {description}")
            if self.daemon.status is not None:
                raise Stuck(f"the daemon ended with status {self.daemon.status} before {description}")
            await asyncio.sleep(poll)

    async def must_end(self, daemon: Daemon, who: str) -> None:
        """Somebody else owns the session, or nobody: the daemon must learn of it, and end."""
        status = await daemon.ended(self.patience)
        if status != 1:
            said = f"it said last:\n{daemon.last_words()}"
            self.tally.note(f"{self.session_id}: {who} ended with status {status}; {said}")
            await daemon.kill()

    async def _suffer(self, inflict: Callable[[Lane], Awaitable[str]]) -> None:
        talking = asyncio.create_task(self.listener.run(self._said_enough, self._plan.rate), name="listener")
        try:
            while self.kills < self._plan.kills and not self._ends_early():
                fault = await inflict(self)
                self.tally.faults[fault] += 1
                if self._plan.mutation or self.rng.random() < 0.2:
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
        """Interrupted, or a mutant that was found out, and is of no more use."""
        return self.tally.interrupted or (self._plan.mutation is not None and self.tally.has_findings)

    async def _account(self) -> None:
        """Everything summarized, archived and remembered exactly once, also after all of it was sent again."""
        await self._settle("the faults")
        await self.deliver_what_was_refused()
        await self.listener.repeat(self.listener.sent.deliveries)
        await self.kill()
        await self.revive()
        places = await self._settle("sending everything again")
        await self.close(places)

    async def _settle(self, context: str) -> Places:
        await self.work_off(self.left, f"all is summarized after {context}", poll=0.25)
        return await self.audit(context)

    async def _stop(self) -> None:
        self.daemon.signal(signal.SIGTERM)
        if await self.daemon.ended(self.patience) != 0 and self._plan.mutation is None:
            said = f"it said last:\n{self.daemon.last_words()}"
            self.tally.note(f"{self.session_id}: exit status {self.daemon.status} after SIGTERM; {said}")
            await self.daemon.kill()

    async def _is_the_daemons(self) -> bool:
        """Whether the daemon has the lease and made the last commit."""
        async with self.host.redis.pipeline(transaction=True) as pipe:
            pipe.get(self.keys.owner)
            pipe.hget(self.keys.checkpoint, "by")
            lease, writer = await pipe.execute()
        owner = json.loads(lease or b"{}")
        return bool(owner.get("pid") == self.daemon.pid and owner["nonce"].encode() == writer)

    async def _expiry(self) -> float:
        """When the silence clock expires, in monotonic seconds; 0 when there is none."""
        left = await self.host.redis.pttl(self.keys.conversation)
        return time.monotonic() + left / 1000 if left > 0 else 0.0

    async def _is_visible(self, token: str) -> bool:
        return bool(await self.host.redis.eval(_IS_VISIBLE, 1, self.keys.state, token))
