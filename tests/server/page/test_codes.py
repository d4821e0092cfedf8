"""The address that ``serve`` prints lets in one person, once, and not for long."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.database.database import SharedSecret
from context_builder.server.access.authenticator import Authenticator, LocalToken
from context_builder.server.access.caller import Caller
from context_builder.server.page.logins import CODE_SECONDS, Logins

pytestmark = pytest.mark.engines


class OneSecret:
    """A database that holds the key which servers sign with, and nothing else."""

    name = "test"

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        return ["5e" * 32]

    async def close(self) -> None: ...


SECRET = SharedSecret(OneSecret())


class NoKeys:
    """A database without keys."""

    async def caller(self, secret: str) -> Caller | None:
        return None


def logins_with(redis: Redis, token: str | None = "t" * 40) -> Logins:
    return Logins(redis, Authenticator(NoKeys(), local=LocalToken(token, "lab") if token else None), SECRET)


async def test_of_many_who_open_the_address_one_is_let_in(redis: Redis) -> None:
    logins = logins_with(redis)
    code = await logins.new_code()
    assert code is not None
    begun = [
        one
        for one in await asyncio.gather(*(logins.by_code(code, "here", "http://localhost") for _ in range(10)))
        if one
    ]
    assert len(begun) == 1
    login = await logins.find(begun[0][0], "http://localhost")
    assert login is not None
    assert (login.caller.tenant_id, login.caller.sub) == ("lab", "local")


async def test_a_code_lives_as_long_as_is_said_and_is_not_kept_itself(redis: Redis) -> None:
    code = await logins_with(redis).new_code()
    assert code is not None
    (key,) = [key async for key in redis.scan_iter("*")]
    assert code.encode() not in key
    assert 0 < await redis.ttl(key) <= CODE_SECONDS


async def test_where_the_local_token_lets_nobody_in_there_is_no_code(redis: Redis) -> None:
    assert await logins_with(redis, None).new_code() is None


async def test_another_local_token_ends_the_logins_of_the_first(redis: Redis) -> None:
    first = logins_with(redis)
    begun = await first.by_credential("t" * 40, "here", "http://localhost")
    assert begun is not None
    assert await first.find(begun[0], "http://localhost") is not None
    assert await logins_with(redis, "u" * 40).find(begun[0], "http://localhost") is None
