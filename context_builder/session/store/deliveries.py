"""A delivery is what a producer pushed, as it came; of one that is too large, only the beginning is read.

:class:`OldestDelivery` waits for the next one of a list, and a :class:`ListReader` reads the ends of many sessions'
lists, those wanted at about the same time with one script.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from hashlib import blake2b, sha1
from typing import Any, Final, Literal, NamedTuple

import structlog
from redis.asyncio import Redis

from context_builder.errors import CommandWithheld, StoreError, StoreUnavailable
from context_builder.session.store.scripts import script
from context_builder.storage.redis_availability import translated, translation

WHOLE_BYTES: Final = 4 * 1024 * 1024
"""Deliveries up to this size are kept whole, also as dead letters: base64 grows, and Redis holds 512 MiB at most."""

BEGINNING_BYTES: Final = 64 * 1024
"""Bytes that are read of a larger delivery that is too large for a message: on a slow network, all of it would hold up
what comes after it."""


POSITION_BYTES: Final = 8


class CutDelivery(bytes):
    """The beginning of a delivery; ``size`` (bytes) and ``sha1`` (in hexadecimal) are those of all of it."""

    size: int
    sha1: str

    @classmethod
    def of(cls, beginning: bytes, size: int, digest: bytes) -> CutDelivery:
        cut = cls(beginning)
        cut.size, cut.sha1 = size, digest.decode()
        return cut


def sha1_of(delivery: bytes) -> str:
    """Return the digest of all of the delivery, as scripts compute it, too."""
    return delivery.sha1 if isinstance(delivery, CutDelivery) else sha1(delivery, usedforsecurity=False).hexdigest()


def told_apart_by(delivery: bytes) -> bytes:
    """Return what tells the delivery from others, the same whether it was read whole or not."""
    is_large = isinstance(delivery, CutDelivery) or len(delivery) > WHOLE_BYTES
    return sha1_of(delivery).encode() if is_large else delivery


def position_after(position: bytes, delivery: bytes) -> bytes:
    """Return a session's position in its input after this delivery: a digest chained through ``position``.

    The first delivery comes after the empty position.
    """
    return blake2b(told_apart_by(delivery), digest_size=POSITION_BYTES, key=position).hexdigest().encode()


READ_BYTES: Final = 8 * 2**20
"""Most bytes that are read at once, but for a single larger item: well within a command's time limit."""

READ_ITEMS: Final = 2000
"""Most items that are read at once, which holds up Redis for some milliseconds."""

MOST_LISTS: Final = 32
"""Lists read at once."""

ANY_SIZE: Final = 2**40


class ListRead(NamedTuple):
    """Items from one end of a list, and the checkpoint's position in the input, revision and writer at that moment.
    An item that is too large to be read whole is a :class:`CutDelivery`.
    """

    items: list[bytes]
    position: bytes
    revision: int = 0
    by: bytes = b""


class _Wanted(NamedTuple):
    keys: tuple[str, str]
    args: tuple[int, str, int]
    answer: asyncio.Future[ListRead]


class ListReader:
    """Reads lists beside their sessions' checkpoints. What is wanted while Redis answers goes out together."""

    def __init__(self, client: Redis) -> None:
        self._script = script(client, "read")
        self._wanted: deque[_Wanted] = deque()
        self._reading: asyncio.Task[None] | None = None

    async def read(
        self, key: str, checkpoint: str, count: int, end: Literal["left", "right"], *, largest: int = ANY_SIZE
    ) -> ListRead:
        """Return items from this end of the list inwards: at most ``count``, :data:`READ_ITEMS` and :data:`READ_BYTES`,
        but one at least. Of one of more than ``largest`` bytes, it returns the beginning.

        Raises :class:`~context_builder.errors.StoreError`.
        """
        answer: asyncio.Future[ListRead] = asyncio.get_running_loop().create_future()
        self._wanted.append(_Wanted((key, checkpoint), (count, end, largest), answer))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_all(), name="list reader")
        return await answer

    async def _read_all(self) -> None:
        """Read what is wanted until nothing is."""
        try:
            while batch := self._take():
                await self._read(batch)
        finally:
            self._reading = None
            _fail(self._wanted, StoreUnavailable("reading was ended"))  # nobody, unless it was
            self._wanted.clear()

    def _take(self) -> list[_Wanted]:
        taken: list[_Wanted] = []
        while self._wanted and len(taken) < MOST_LISTS:
            wanted = self._wanted.popleft()
            if not wanted.answer.done():  # else nobody waits for it any more
                taken.append(wanted)
        return taken

    async def _read(self, batch: Sequence[_Wanted]) -> None:
        keys = [key for wanted in batch for key in wanted.keys]
        args = [READ_BYTES, READ_ITEMS, BEGINNING_BYTES, *(arg for wanted in batch for arg in wanted.args)]
        try:
            async with translated():
                answers = await self._script(keys=keys, args=args)
        except Exception as error:  # noqa: BLE001 whatever it is, those who wait are told
            _fail(batch, error)
            return
        except BaseException:
            _fail(batch, StoreUnavailable("reading was ended"))
            raise
        for wanted, answer in zip(batch, answers, strict=True):
            if answer is not None and not wanted.answer.done():
                _settle(wanted, answer)
        without_room = [wanted for wanted, answer in zip(batch, answers, strict=True) if answer is None]
        self._wanted.extendleft(reversed(without_room))


def _settle(wanted: _Wanted, answer: Any) -> None:
    if isinstance(answer, Exception):
        wanted.answer.set_exception(translation(answer) or answer)
        return
    position, revision, by, *items = answer
    try:
        read = [item if isinstance(item, bytes) else CutDelivery.of(*item) for item in items]
        wanted.answer.set_result(ListRead(read, position, int(revision), by))
    except ValueError:
        wanted.answer.set_exception(StoreError(f"{wanted.keys[1]} holds no number as its revision"))


def _fail(waiting: Iterable[_Wanted], error: Exception) -> None:
    for wanted in waiting:
        if not wanted.answer.done():
            wanted.answer.set_exception(error)


log = structlog.get_logger(__name__)

ANSWER_TIMEOUT: Final = 1.5
"""Seconds that an answer may take which is always fast: a connection that died without a word is then replaced."""

LOOK_SECONDS: Final = 0.05
"""Time between two looks at a list where nothing blocks: a message is heard in a tenth of the time it may take."""

HANG_UPS: Final = 3
"""Connections in a row that close on the blocking command alone, after which it counts as not supported."""

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
