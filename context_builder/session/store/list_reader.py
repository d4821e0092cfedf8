"""A list reader reads the ends of many sessions' lists, those wanted at about the same time with one script."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from redis.asyncio import Redis

from context_builder.errors import StoreError, StoreUnavailable
from context_builder.session.store.delivery import BEGINNING_BYTES, CutDelivery
from context_builder.session.store.scripts import script
from context_builder.storage.redis_availability import translated, translation

READ_BYTES: Final = 8 * 2**20
"""So much is read at once, if it is more than one item: well within a command's time limit."""

READ_ITEMS: Final = 2000
"""So many items are read at once, which holds up Redis for some milliseconds."""

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
