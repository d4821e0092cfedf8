"""Sessions that run in a test: real Redis, stand-ins for model, archive and memory, time moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson
from prometheus_client import REGISTRY
from redis.asyncio import Redis

from context_builder.clock import Instant
from context_builder.memory.memory import MemoryStore, TenantMemory
from context_builder.session.config import SessionConfig
from context_builder.session.host import SessionHost
from context_builder.session.keys import Keys
from context_builder.session.session import Session, SessionDependencies
from context_builder.testing import InMemoryArchive, InMemoryStore, ManualClock, StubAnalyst
from tests.services.waiting import PATIENCE, wait_until
from tests.session.saying import raw, spoken, words

TENANT = "lab"
TICK = 0.05
"""Seconds between ticks: the only time that really passes."""


def _failures() -> float:
    return REGISTRY.get_sample_value("context_builder_store_failures_total") or 0.0


class WakingClock(ManualClock):
    """A clock that wakes sessions when it is moved: what is due by itself wakes them by real time, and no tick does."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        super().__init__()
        self._sessions = sessions

    def advance(self, seconds: float) -> Instant:
        for session in self._sessions:
            session._events.put_nowait(None)
        return super().advance(seconds)


class Live:
    """Runs sessions with ``client``, by themselves or with a ``host``, and through ``redis`` pushes as a listener does
    and reads what they publish.
    """

    def __init__(self, client: Redis, redis: Redis, host: SessionHost | None = None) -> None:
        self.client = client
        self.host = host
        self.redis = redis
        self.tasks: dict[Session, asyncio.Task[None]] = {}
        self.clock = WakingClock(self.tasks) if host else ManualClock()
        self.analyst = StubAnalyst()
        self.last_resort = StubAnalyst("last resort")
        self.archive = InMemoryArchive()
        self.memory: MemoryStore = InMemoryStore()
        self.receivers = True

    def session(self, session_id: str = "monday", **rules: Any) -> Session:
        archive, memory = (self.archive, TenantMemory(self.memory, TENANT)) if self.receivers else (None, None)
        parts = SessionDependencies(self.analyst, self.last_resort, archive, words, self.clock, memory)
        config = SessionConfig(**{"tick": TICK, "feed_memory": True, **rules})
        return Session(self.host or self.client, session_id, config, parts)

    def serve(self, session: Session, *, takeover: bool = False, wait: bool = True) -> asyncio.Task[None]:
        task = asyncio.create_task(session.serve(takeover=takeover, wait=wait), name=session.session_id)
        self.tasks[session] = task
        return task

    async def start(self, session_id: str = "monday", *, takeover: bool = False, **rules: Any) -> Session:
        """A session that is ready."""
        session = self.session(session_id, **rules)
        task = self.serve(session, takeover=takeover)
        await wait_until(lambda: session.ready.is_set() or task.done(), f"session {session_id} is ready")
        if task.done():
            await task
        return session

    async def stop(self, session: Session) -> None:
        session.stop()
        await asyncio.wait_for(self.tasks.pop(session), PATIENCE)

    async def gone(self, session: Session) -> None:
        """Returns when the session has ended by itself; raises what ended it."""
        await asyncio.wait_for(self.tasks.pop(session), PATIENCE)

    def die(self, session: Session) -> None:
        """End as a killed process does: nothing is committed, the lease stays."""
        self.tasks.pop(session).cancel()

    async def tried_in_vain(self, times: int = 3) -> None:
        """Returns when Redis has not carried out so many more commands."""
        before = _failures()
        await wait_until(lambda: _failures() >= before + times, f"Redis fails {times} times")

    async def push(self, *messages: dict[str, Any], session_id: str = "monday") -> None:
        await self.redis.lpush(Keys(session_id).input, *(raw(each) for each in messages))

    async def say(self, *numbers: int, session_id: str = "monday") -> None:
        await self.push(*(spoken(number) for number in numbers), session_id=session_id)

    async def lacks(self, *keys: str) -> bool:
        return not await self.redis.exists(*keys)

    async def state(self, session_id: str = "monday") -> Any:
        return orjson.loads(await self.redis.get(Keys(session_id).state) or b"{}")

    async def conversation_state(self, session_id: str = "monday") -> Any:
        """It is waited for, should it have expired while the machine stood still."""
        return orjson.loads(await wait_until(lambda: self.redis.get(Keys(session_id).conversation), "it is published"))

    async def until(self, described: str, session_id: str = "monday", **expected: Any) -> Any:
        """The state, once these fields of it (``rolling_summary`` flattened) have these values."""

        async def seen() -> Any:
            state = await self.state(session_id)
            fields = {**state, **state.get("rolling_summary", {})}
            return state if {**fields, **expected} == fields else None

        return await wait_until(seen, described)

    async def fails(self, *tasks: str, session_id: str = "monday") -> None:
        """Returns when the session tells that these tasks fail: from then on it waits to try again."""

        async def told() -> bool:
            state = await self.state(session_id)
            return {*tasks} <= {*state.get("failing", {})}

        await wait_until(told, f"these fail: {', '.join(tasks)}")

    async def shows(self, *numbers: int | None, session_id: str = "monday") -> Any:
        """The state, once its buffer has exactly these message numbers."""

        async def seen() -> Any:
            state = await self.state(session_id)
            return state if [e["message_number"] for e in state.get("raw_recent_buffer", [])] == [*numbers] else None

        return await wait_until(seen, f"the buffer has {numbers}")
