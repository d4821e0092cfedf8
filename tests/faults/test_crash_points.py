"""The daemon is killed before and after each command it sends to Redis, one by one, from its start on."""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamWriter

import pytest

from context_builder.session.client import SessionClient
from context_builder.session.keys import RECEIVERS, Keys, Receiver
from context_builder.session.store.dead_letters import DeadLetters
from scripts.campaign.audit import Places, judge, judge_archive, judge_memory
from scripts.campaign.daemon import SETTINGS
from scripts.campaign.listener import Sent
from scripts.campaign.redis_host import RedisHost
from scripts.campaign.world import World
from tests.faults.forks import Forks
from tests.faults.resp import Frames
from tests.services.link import Link
from tests.services.waiting import wait_until

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

AT_ONCE = 8
"""Crashes that are tried side by side."""

QUICK = {**SETTINGS, "RAW_BUFFER_TIME_WINDOW": "0.2", "POLL_INTERVAL": "0.2", "RAW_BUFFER_MAX_MESSAGES": "3"}

DELIVERIES = [
    *(json.dumps({"text": f"m00000{n} was said", "message_number": n}).encode() for n in (1, 2, 3, 4, 5)),
    json.dumps({"text": "m000001 was said", "message_number": 1}).encode(),
    json.dumps({"text": "m000006 contributed", "speaker": "Consilience", "message_number": 1759394000123}).encode(),
    b"p000001 is no JSON",
]
UNREADABLE: dict[Receiver, bytes] = {"archive": b'{"summary_seq": 0}', "memory": b"\x93\xff\x00random"}
"""An entry of each outbox."""

SENT = Sent(attempted={*(f"m00000{n}" for n in range(1, 7)), "p000001"})


class CrashingLink(Link):
    """Instead of passing on command (``inward``) or answer number ``at``, counted from 1, says ``crashed``."""

    def __init__(self, target: int, *, at: int, inward: bool) -> None:
        super().__init__(target)
        self.passed = 0
        self.crashed = asyncio.Event()
        self._at = at
        self._inward = inward
        self._frames: dict[StreamWriter, Frames] = {}

    async def forward(self, data: bytes, sink: StreamWriter, *, inward: bool) -> None:
        if inward is not self._inward:
            return await super().forward(data, sink, inward=inward)
        for frame in self._frames.setdefault(sink, Frames()).cut(data):
            self.passed += 1
            if self.passed == self._at:
                self.crashed.set()
            if not self.crashed.is_set():
                await super().forward(frame, sink, inward=inward)
        return None


class Life:
    """A session's whole life: pushed to, run, summarized, archived."""

    def __init__(self, world: World, host: RedisHost, forks: Forks, session_id: str) -> None:
        self.session_id = session_id
        self._world = world
        self._redis = host.redis
        self._forks = forks

    async def push(self) -> None:
        keys = Keys(self.session_id)
        for receiver in RECEIVERS:
            await self._redis.rpush(keys.outbox_of(receiver), UNREADABLE[receiver])
        await self._redis.lpush(keys.input, *DELIVERIES)

    async def run(self, link: Link) -> int:
        return await self._forks.start({**QUICK, **self._world.environ(link)}, "run", self.session_id)

    async def is_settled(self) -> bool:
        places = await Places.read(self._redis, self.session_id)
        return bool(places.head) and not places.left

    async def is_whole(self, context: str) -> None:
        places = await Places.read(self._redis, self.session_id)
        findings = judge(places, SENT.attempted, SENT)
        assert not findings, f"{context}: {findings}"
        archive = judge_archive(places, await self._world.archived(self.session_id), SENT)
        assert not archive, f"{context}: {archive}"
        memory = judge_memory(places, await self._world.remembered(self.session_id), SENT)
        assert not memory, f"{context}: {memory}"
        undeliverable = (await SessionClient(self._redis, self.session_id).state() or {})["undeliverable"]
        assert undeliverable == dict.fromkeys(RECEIVERS, 1), f"{context}: {undeliverable}"
        for receiver in RECEIVERS:
            letters = await DeadLetters(self._redis, self.session_id, receiver).all()
            assert [letter.raw for letter in letters] == [UNREADABLE[receiver]], f"{context}: {receiver}"

    async def until_crash(self, link: CrashingLink) -> None:
        """Run over ``link``, which says when to kill; or until there is nothing left to do."""
        await link.open()
        pid = await self.run(link)
        crashed = asyncio.create_task(link.crashed.wait())
        try:
            await wait_until(lambda: crashed.done() or self.is_settled(), "it crashed or is done", poll=0.05)
        finally:
            crashed.cancel()
            await self._forks.kill(pid)
            await link.close()


async def crash_at(world: World, host: RedisHost, forks: Forks, at: int, *, inward: bool) -> None:
    """A life with a crash in it, and its continuation."""
    context = f"{'before command' if inward else 'after the command of answer'} {at}"
    life = Life(world, host, forks, f"crash-{'before' if inward else 'after'}-{at}")
    await life.push()
    await life.until_crash(CrashingLink(host.port, at=at, inward=inward))
    pid = await life.run(host.link)
    await wait_until(life.is_settled, f"all is done although killed {context}", poll=0.05)
    await life.is_whole(context)
    await forks.kill(pid)


async def test_killed_before_or_after_any_command_it_loses_and_doubles_nothing() -> None:
    async with (
        World.opened(lanes=1) as world,
        RedisHost.opened(world.folder) as host,
        Forks(world.folder) as forks,
    ):
        uncrashed = CrashingLink(host.port, at=0, inward=True)
        life = Life(world, host, forks, "uncrashed")
        await life.push()
        await life.until_crash(uncrashed)
        await life.is_whole("without a crash")
        assert uncrashed.passed >= 15
        at_once = asyncio.Semaphore(AT_ONCE)

        async def crash(at: int, *, inward: bool) -> None:
            async with at_once:
                await crash_at(world, host, forks, at, inward=inward)

        async with asyncio.TaskGroup() as crashes:
            for at in range(1, uncrashed.passed + 1):
                crashes.create_task(crash(at, inward=True))
                crashes.create_task(crash(at, inward=False))
