"""Redis' failures become errors of ours here, and are waited out while it is away, slow or refusing."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Final

import redis.exceptions
import stamina
from redis.asyncio import Redis

from context_builder import metrics
from context_builder.errors import CommandWithheld, StoreError, StoreUnavailable, WrongKeyType

COMMAND_TIMEOUT: Final = 5.0
"""Seconds after which Redis counts as not answering."""

_PASSING: Final = re.compile(r"(^|: -)(OOM|LOADING|READONLY|MASTERDOWN|BUSY|NOREPLICAS|MISCONF|UNKILLABLE|UNBLOCKED)\b")
"""Beginnings of refusals that pass by themselves, or when somebody mends their cause. Before version 7, the script and
the line in it stand in front of them."""

_WITHHELD: Final = re.compile(
    r"unknown (?:sub)?command|no permissions to run the|unsupported command"
    r"|command (?:is )?not (?:supported|allowed|enabled)|command .*(?:disabled|restricted)",
    re.IGNORECASE,
)
"""Refusals of a command, whatever its arguments, by servers, managed services and proxies."""

_CONNECTING: Final = re.compile(r"Error (?P<number>-?\d+) connecting to (?P<address>\S+)\. (?P<why>.+)")
"""Message of redis-py for a connection that cannot be made."""

_PASSING_ERRORS: Final = (
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.MasterDownError,
)
"""Errors of redis-py's own for such refusals, whose messages lack that beginning."""


def translated(patience: float = COMMAND_TIMEOUT) -> AbstractAsyncContextManager[None]:
    """Raise Redis' exceptions as this package's, and no answer within ``patience`` seconds as
    :class:`StoreUnavailable`.

    The client has no time limit of its own: redis-py's uses ``asyncio.wait_for``, which before Python 3.12
    swallows a cancellation that arrives together with the answer.
    """
    return _Translated(patience)


class _Translated:
    """Translates errors around every command. A class costs half as much here as a generator does."""

    __slots__ = ("_patience", "_timeout")

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._timeout = asyncio.timeout(patience)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as expired:
            error = expired
        if error is not None and (translated_error := translation(error, self._patience)):
            raise translated_error from None


def translation(error: BaseException, patience: float = COMMAND_TIMEOUT) -> StoreError | None:
    """Return the error of this package for an ``error`` that comes from Redis; None for any other."""
    match error:
        case redis.exceptions.AuthenticationError() | redis.exceptions.AuthorizationError():
            return StoreError(f"Redis refuses the password or user: {error}")
        case redis.exceptions.ResponseError():
            refused = f"Redis refuses a command: {error}"
            if isinstance(error, redis.exceptions.OutOfMemoryError):
                return _unavailable("Redis is full: give it more memory (maxmemory), or delete what nobody needs")
            if isinstance(error, _PASSING_ERRORS) or _PASSING.search(str(error)):
                return _unavailable(refused)
            if "WRONGTYPE" in str(error):
                metrics.STORE_FAILURES.inc()
                return WrongKeyType(refused)
            return CommandWithheld(refused) if _WITHHELD.search(str(error)) else StoreError(refused)
        case TimeoutError():
            return _unavailable(f"Redis does not answer within {patience:g} s")
        case redis.exceptions.RedisError() | OSError():
            return _unavailable(f"Redis is not available: {_reason(error)}")
        case _:
            return None


def _reason(error: BaseException) -> str:
    """Return why Redis cannot be reached: of a connection that was refused, the address and the system's reason."""
    if refused := _CONNECTING.match(str(error)):
        why = refused["why"].removesuffix(".")
        if why.startswith("Connect call failed"):  # as asyncio says it, whatever the reason is
            why = os.strerror(int(refused["number"]))
        return f"{refused['address']}: {why}; start it, or correct REDIS_URL or REDIS_HOST and REDIS_PORT"
    return str(error)


def _unavailable(message: str) -> StoreUnavailable:
    metrics.STORE_FAILURES.inc()
    return StoreUnavailable(message)


async def read_together(client: Redis, *reads: tuple[Any, ...], raises: bool = True) -> list[Any]:
    """Return the answers to commands that read, each ``(name, argument, …)`` as redis-py has it, at one moment.

    A full Redis queues no command of a transaction, so there they are read one after the other. Without ``raises`` an
    error is its command's answer.
    """
    try:
        return await _read(client, reads, raises=raises, together=True)
    except redis.exceptions.OutOfMemoryError:
        return await _read(client, reads, raises=raises, together=False)


async def _read(client: Redis, reads: Sequence[tuple[Any, ...]], *, raises: bool, together: bool) -> list[Any]:
    async with client.pipeline(transaction=together) as pipe:
        for name, *arguments in reads:
            getattr(pipe, name)(*arguments)
        answers: list[Any] = await pipe.execute(raise_on_error=raises)
        return answers


class _FirstAttempt:
    """Makes the attempt that nearly always succeeds, without the cost of preparing others."""

    def __init__(self, is_worth_another: Callable[[Exception], bool]) -> None:
        self._is_worth_another = is_worth_another
        self.failed = False

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.failed = isinstance(error, Exception) and self._is_worth_another(error)
        return self.failed


async def until_available(
    on: Callable[[Exception], bool] = lambda error: isinstance(error, StoreUnavailable),
    *,
    longest_wait: float = 0.5,
) -> AsyncIterator[AbstractContextManager[object]]:
    """Yield attempts without end: the second at once, then with exponential backoff and jitter, at most
    ``longest_wait`` seconds apart.

    ``on`` says which errors are worth another attempt; it is asked about cancellations, too.
    """
    first = _FirstAttempt(on)
    yield first
    if not first.failed:
        return
    attempts = stamina.retry_context(
        on=on,
        attempts=None,
        timeout=None,
        wait_initial=0.05,
        wait_max=longest_wait,
        wait_jitter=0.05,
    )
    async for attempt in attempts:
        yield attempt
