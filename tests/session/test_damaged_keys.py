"""Whatever somebody writes into the keys of a session, it goes on, or says in a line where it cannot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from itertools import cycle
from typing import Any, Final, cast

from redis.asyncio import Redis

from context_builder.errors import StoreError
from context_builder.session.session import Session
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import advised

RAW: Final = (b"", b"\x00\xff", b"[1]", b'{"id":"x","text":1}')
"""What is written in place of a value, in turn."""


async def begun(live: Live) -> Session:
    return await live.start(buffer_max=3)


async def held_by(redis: Redis) -> dict[bytes, tuple[bytes, int]]:
    """What there is of the session that is to last, by key, and for how many milliseconds."""
    found = [key async for key in redis.scan_iter("*")]
    return {key: (await redis.dump(key), max(0, await redis.pttl(key))) for key in found}


async def as_before(redis: Redis, held: Mapping[bytes, tuple[bytes, int]]) -> None:
    await redis.flushall()
    for key, (value, milliseconds) in held.items():
        await redis.restore(key, milliseconds, value)


async def damages(redis: Redis, held: Mapping[bytes, tuple[bytes, int]]) -> AsyncIterator[str]:
    """Damage one value after the other, and name it; the others are as they were."""
    client, raws = cast("Any", redis), cycle(RAW)
    for key in sorted(key for key in held if b"monday" in key):
        await as_before(redis, held)
        kind = (await client.type(key)).decode()
        for field in await client.hkeys(key) if kind == "hash" else [0]:
            await as_before(redis, held)
            raw = next(raws)
            match kind:
                case "hash":
                    await client.hset(key, field, raw)
                case "list":
                    await client.lset(key, 0, raw)
                case "set":
                    await client.sadd(key, raw)
                case _:
                    await client.set(key, raw, keepttl=True)
            yield f"{key.decode()} {field!r} {raw!r}"


async def test_a_session_with_any_damaged_value_goes_on_or_is_named(live: Live, redis: Redis) -> None:
    session = await begun(live)
    await live.say(*range(1, 9))
    await live.push(advised())
    await live.until("all are there", received_messages=9)
    await live.stop(session)
    whole = await held_by(redis)
    refused = 0
    async for what in damages(redis, whole):
        told = await refusal(live, what)
        assert told is None or "monday" in told, what
        refused += told is not None
    assert refused > 5
    await as_before(redis, whole)


async def refusal(live: Live, what: str) -> str | None:
    """What is told of a session that cannot go on; None of one that does."""
    try:
        session = await begun(live)
        await live.say(9)
        with suppress(AssertionError):  # one that lost what it knew may have heard it before
            await wait_until(lambda: session.conversation.received > 9, "it goes on", timeout=0.2)
        await live.stop(session)
    except StoreError as error:
        live.tasks.clear()
        return str(error)
    except BaseException as error:
        error.add_note(what)
        raise
    return None
