"""Who commits in each session: it may move on, but nobody may commit any more once another one has."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from redis.exceptions import RedisError

from context_builder.session.keys import Keys
from scripts.campaign.redis_host import RedisHost
from scripts.campaign.tally import Tally

LOOK = 0.05


@dataclass
class Owned:
    """What was last seen of a session: the process that holds its lease, and whether that has committed."""

    pid: int | None = None
    nonce: str = ""
    commits: bool = False
    writers: list[bytes] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)


class OwnershipWatch:
    """Watches the sessions of each host, and notes in ``tally`` those that two processes commit in.

    Every owner has a nonce of its own for each time that it takes a session; the checkpoint holds that of the last
    commit. One that comes again after another one is the nonce of an owner that was replaced and went on.
    """

    def __init__(self, hosts: Sequence[tuple[RedisHost, Sequence[str]]], tally: Tally) -> None:
        self._hosts = hosts
        self._tally = tally
        self._away: set[RedisHost] = set()
        self.owned = {name: Owned() for _, names in hosts for name in names}

    @contextmanager
    def looking_away(self, host: RedisHost, names: Iterable[str]) -> Iterator[None]:
        """The commits of these sessions become what they were some time ago."""
        self._away.add(host)
        try:
            yield
        finally:
            for name in names:
                self.owned[name].writers.clear()
            self._away.discard(host)

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            for host, names in self._hosts:
                with suppress(RedisError, OSError):  # it was killed, and is being started
                    if host not in self._away:
                        await self._look(host, names)
            await asyncio.sleep(LOOK)

    async def _look(self, host: RedisHost, names: Sequence[str]) -> None:
        async with host.redis.pipeline(transaction=True) as pipe:
            for name in names:
                pipe.get(Keys(name).owner)
                pipe.hget(Keys(name).checkpoint, "by")
            answers = await pipe.execute()
        if host in self._away:  # by now
            return
        for name, lease, writer in zip(names, answers[::2], answers[1::2], strict=True):
            self._note(name, json.loads(lease or b"{}"), writer)

    def _note(self, name: str, lease: dict[str, object], writer: bytes | None) -> None:
        seen = self.owned[name]
        pid = lease.get("pid")
        if pid != seen.pid:
            seen.pid, seen.since = pid if isinstance(pid, int) else None, time.monotonic()
        seen.nonce = str(lease.get("nonce", ""))
        seen.commits = bool(seen.nonce) and seen.nonce.encode() == writer
        if writer is None or seen.writers[-1:] == [writer]:
            return
        if writer in seen.writers:
            self._tally.note(f"{name}: an owner that another one had replaced committed again")
        seen.writers.append(writer)
