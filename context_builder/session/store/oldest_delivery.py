"""Waits for the oldest delivery of one list: with a blocking command, or where there is none by looking often."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog
from redis.asyncio import Redis

from context_builder.errors import CommandWithheld, StoreUnavailable
from context_builder.storage.redis_availability import translated

log = structlog.get_logger(__name__)

ANSWER_TIMEOUT: Final = 1.5
"""Seconds that an answer may take which is always fast: a connection that died without a word is then replaced."""

LOOK_SECONDS: Final = 0.05
"""Time between two looks at a list where nothing blocks: a message is heard in a tenth of the time it may take."""

HANG_UPS: Final = 3
"""So often in a row a connection is closed on the blocking command alone before it counts as one that there is not."""

AT_ONCE: Final = 0.5
"""Seconds within which a proxy hangs up at a command that it does not know; a Redis that goes away takes any time."""


class OldestDelivery:
    """Waits for the oldest delivery of the list at ``key``, which stays there.

    ``BLMOVE`` moves it to its own place. Some proxies know no blocking commands, or hang up at them, and some users
    may not send them: then the list's end is read every :data:`LOOK_SECONDS`, and the log says so once.
    """

    def __init__(self, client: Redis, key: str) -> None:
        self._client: Any = client  # whose commands redis-py does not type
        self._key = key
        self._hang_ups = 0
        self._looks = False

    async def wait(self, seconds: int) -> bytes | None:
        """Return the delivery, None if there is none within ``seconds``.

        Raises :class:`~context_builder.errors.StoreError`.
        """
        if self._looks:
            return await self._looked_for(seconds)
        began = asyncio.get_running_loop().time()
        try:
            async with translated(seconds + ANSWER_TIMEOUT):
                delivery: bytes | None = await self._client.blmove(self._key, self._key, seconds, "RIGHT", "RIGHT")
        except CommandWithheld as withheld:
            self._look_from_now_on(str(withheld))
        except StoreUnavailable as error:
            if asyncio.get_running_loop().time() - began > AT_ONCE:
                self._hang_ups = 0
                raise
            found = await self._oldest()  # raises unless it was about the blocking command alone
            self._hang_ups += 1
            if self._hang_ups < HANG_UPS:
                if found is None:
                    raise
                return found
            self._look_from_now_on(str(error))
        else:
            self._hang_ups = 0
            return delivery
        return await self._looked_for(seconds)

    def _look_from_now_on(self, reason: str) -> None:
        self._looks = True
        log.warning("input.polled", key=self._key, reason=reason, interval=LOOK_SECONDS)

    async def _looked_for(self, seconds: int) -> bytes | None:
        for _ in range(round(seconds / LOOK_SECONDS)):
            if (delivery := await self._oldest()) is not None:
                return delivery
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _oldest(self) -> bytes | None:
        async with translated(ANSWER_TIMEOUT):
            delivery: bytes | None = await self._client.lindex(self._key, -1)
        return delivery
