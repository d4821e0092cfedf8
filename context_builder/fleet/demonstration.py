"""A demonstration runs a fleet with real workers and talking sessions, and ends workers meanwhile."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from context_builder.errors import EngineError, StoreError
from context_builder.session.client import spoken
from context_builder.session.keys import Keys
from context_builder.storage.redis_availability import translated

SETTLING: Final = 30.0
"""Most seconds that the last words wait to be visible."""

LOOK_SECONDS: Final = 0.25
STOP_SECONDS: Final = 10.0
START_SECONDS: Final = 60.0

_TAIL_BYTES: Final = 4_096
_RECEIVED: Final = re.compile(rb'"received_messages":(\d+)')


@dataclass(eq=False)
class DemoWorker:
    """A worker's process and its state: starting, running, leaving, killed or left."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    fate: str = "starting"

    @property
    def is_up(self) -> bool:
        return self.process.poll() is None

    def look(self) -> None:
        """Notice that it takes sessions, or that it has left."""
        if self.fate == "starting" and b"fleet.ready" in self.log.read_bytes():
            self.fate = "running"
        if self.fate == "leaving" and not self.is_up:
            self.fate = "left"


@dataclass
class FleetSighting:
    """The demonstration as it is seen at a moment. ``owners`` is by session; the rest counts messages."""

    owners: dict[str, int] = field(default_factory=dict)
    said: int = 0
    visible: int = 0
    moved: int = 0


@dataclass(frozen=True, slots=True)
class DemonstrationResult:
    """Messages lost, doubled or out of order, how often sessions moved, and how many seconds after each end of a worker
    all of its sessions were run by others; ``not_taken_over`` are those that never were."""

    sessions: int
    said: int
    lost: int
    doubled: int
    out_of_order: int
    moved: int
    elsewhere_after: dict[str, float]
    not_taken_over: int = 0

    @property
    def is_whole(self) -> bool:
        return not (self.lost or self.doubled or self.out_of_order or self.not_taken_over)


class Demonstration:
    """Lets people talk in ``sessions`` sessions of a Redis, and ends workers meanwhile.

    ``surroundings`` are the variables of the workers' environment, ``folder`` is theirs. ``sayings`` are speakers and
    texts; ``told`` is called with each thing that happens, in words.
    """

    def __init__(
        self,
        redis: Redis,
        folder: Path,
        surroundings: Mapping[str, str],
        sessions: int,
        sayings: Sequence[tuple[str, str]],
        told: Callable[[str], None],
    ) -> None:
        self.workers: list[DemoWorker] = []
        self.seen = FleetSighting()
        self._redis = redis
        self._folder = folder
        self._surroundings = surroundings
        self._names = [f"demo-{number:03}" for number in range(1, sessions + 1)]
        self._numbers = dict.fromkeys(self._names, 0)
        self._sayings = sayings
        self._told = told
        self._elsewhere_after: dict[str, float] = {}
        self._not_taken_over = 0

    @property
    def sessions(self) -> int:
        return len(self._names)

    async def run(self, seconds: float) -> DemonstrationResult:
        """Let people talk for so long, killing one worker and stopping another, each replaced; then look at all.

        Raises :class:`~context_builder.errors.EngineError` when a worker does not start.
        """
        first, second = await asyncio.gather(self._start("worker 1"), self._start("worker 2"))
        self._told(f"two workers run; people begin to talk in {self.sessions} sessions, and nobody names them")
        async with self._beside(self._talk(seconds)) as talking:
            await asyncio.sleep(seconds * 0.25)
            await self._end(first, signal.SIGKILL, "killed")
            await self._start("worker 3")
            await asyncio.sleep(seconds * 0.2)
            await self._end(second, signal.SIGTERM, "leaving")
            await self._start("worker 4")
            await talking
        self._told("nobody talks any more; each session is compared with what was said in it")
        return await self._outcome()

    async def look(self) -> None:
        """Look again at who runs what, and how much is visible."""
        for worker in self.workers:
            worker.look()
        with suppress(StoreError):
            async with translated(), self._redis.pipeline(transaction=False) as pipe:
                for name in self._names:
                    pipe.get(Keys(name).owner)
                    pipe.getrange(Keys(name).state, -_TAIL_BYTES, -1)
                answers = await pipe.execute()
            owners = {
                name: orjson.loads(raw)["pid"] for name, raw in zip(self._names, answers[::2], strict=True) if raw
            }
            before = self.seen.owners
            self.seen.moved += sum(name in before and before[name] != pid for name, pid in owners.items())
            self.seen.owners = before | owners
            self.seen.visible = sum(int(found[1]) for tail in answers[1::2] if (found := _RECEIVED.search(tail)))

    async def close(self) -> None:
        """Stop the workers that are up."""
        up = [worker for worker in self.workers if worker.is_up]
        for worker in up:
            worker.process.terminate()
        for worker in up:
            await _ended(worker.process)

    async def _start(self, name: str) -> DemoWorker:
        """Start one more worker, and return it when it takes sessions."""
        log = self._folder / f"{name.replace(' ', '-')}.log"
        with log.open("wb") as output:
            process = await asyncio.to_thread(
                subprocess.Popen,
                [sys.executable, "-m", "context_builder", "fleet"],
                cwd=self._folder,
                env={**self._surroundings, "LOG_FORMAT": "json"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        worker = DemoWorker(name, process, log)
        self.workers.append(worker)
        deadline = time.monotonic() + START_SECONDS
        while worker.fate == "starting":
            if not worker.is_up or time.monotonic() > deadline:
                raise EngineError(f"{name} did not start: {_last_line(log)}")
            await asyncio.sleep(0.05)
            worker.look()
        self._told(f"{name} takes sessions (process {process.pid})")
        return worker

    async def _end(self, worker: DemoWorker, how: signal.Signals, fate: str) -> None:
        """End a worker, and return when it has ended and others run its sessions, or :data:`SETTLING` is over."""
        pid, began = worker.process.pid, time.monotonic()
        await self.look()
        run = sum(owner == pid for owner in self.seen.owners.values())
        worker.fate = fate
        worker.process.send_signal(how)
        what = "is told to leave" if fate == "leaving" else "is killed"
        self._told(f"{worker.name}, with {run} sessions, {what} ({how.name})")
        while pid in self.seen.owners.values() and time.monotonic() - began < SETTLING:
            await asyncio.sleep(LOOK_SECONDS / 5)
            await self.look()
        took = time.monotonic() - began
        remaining = sum(owner == pid for owner in self.seen.owners.values())
        if remaining:
            self._not_taken_over += remaining
            self._told(f"{remaining} of its sessions are still with it after {took:.1f} s")
        else:
            self._elsewhere_after[f"{worker.name} {'left' if fate == 'leaving' else fate}"] = round(took, 2)
            self._told(f"all its sessions run elsewhere after {took:.1f} s")
        await _ended(worker.process)

    async def _talk(self, seconds: float) -> None:
        """Say something in each session every five seconds, by LPUSH alone."""
        sayings = cycle(self._sayings)
        began, turn = time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            due = int(now * self.sessions / 5) + 1
            async with self._redis.pipeline(transaction=False) as pipe:
                while turn < due:
                    name, (speaker, text) = self._names[turn % self.sessions], next(sayings)
                    self._numbers[name] += 1
                    message = spoken(name, self._numbers[name], speaker, text, datetime.now())
                    pipe.lpush(Keys(name).input, orjson.dumps(message))
                    turn += 1
                await pipe.execute()
            self.seen.said = turn
            await asyncio.sleep(0.05)

    async def _outcome(self) -> DemonstrationResult:
        deadline = time.monotonic() + SETTLING
        while self.seen.visible < self.seen.said and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()
        lost = doubled = out_of_order = 0
        for name in self._names:
            state: dict[str, Any] = orjson.loads(await self._redis.get(Keys(name).state) or b"{}")
            shown = [one["message_number"] for one in state.get("raw_recent_buffer", ())]
            said = range(1, self._numbers[name] + 1)
            lost += len(set(said) - set(shown))
            doubled += len(shown) - len(set(shown))
            out_of_order += shown != sorted(shown)
        return DemonstrationResult(
            self.sessions,
            self.seen.said,
            lost,
            doubled,
            out_of_order,
            self.seen.moved,
            self._elsewhere_after,
            self._not_taken_over,
        )

    @asynccontextmanager
    async def _beside(self, talk: Any) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(talk, name="talk")
        try:
            yield task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def surroundings_without(names: Iterable[str]) -> dict[str, str]:
    """Return this process's environment without these settings: the demonstration needs no account, and uses none."""
    unset = {name.upper() for name in names}
    return {name: value for name, value in os.environ.items() if name.upper() not in unset}


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that was told to end; kill it after :data:`STOP_SECONDS`."""
    try:
        await asyncio.to_thread(process.wait, STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.wait)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
