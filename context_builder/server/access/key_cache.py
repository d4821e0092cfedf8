"""Keys are looked up again twice a second, so that a change on another server takes effect within a second."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from context_builder.clock import Clock, SystemClock
from context_builder.server.access.caller import Caller

HOLDS_FOR: Final = 0.5
"""Seconds."""

MOST: Final = 4_096
"""Keys that are remembered, those that nobody has included."""


@dataclass(frozen=True, slots=True)
class _Answer:
    asked_at: float
    caller: asyncio.Future[Caller | None]


class CachedKeys:
    """Remembers what ``look_up`` answers, counted from when it was asked; those who ask together ask once.

    Keys are remembered by their hash. An error is not remembered.
    """

    def __init__(self, look_up: Callable[[str], Awaitable[Caller | None]], clock: Clock | None = None) -> None:
        self._look_up = look_up
        self._clock = clock or SystemClock()
        self._answers: OrderedDict[bytes, _Answer] = OrderedDict()

    async def caller(self, secret: str) -> Caller | None:
        """Return whose key it is, or None."""
        name = sha256(secret.encode("utf-8", "surrogatepass")).digest()
        now = self._clock.now().monotonic
        held = self._answers.get(name)
        if held is None or now - held.asked_at > HOLDS_FOR:
            held = _Answer(now, asyncio.ensure_future(self._look_up(secret)))
            self._answers[name] = held
            self._answers.move_to_end(name)
            while len(self._answers) > MOST:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(held.caller)
        except BaseException:
            if held.caller.done() and self._answers.get(name) is held:  # it failed; whoever gave up waiting did not
                del self._answers[name]
            raise
