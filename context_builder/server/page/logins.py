"""Logins live in Redis, so that any server knows them: under a hash of the cookie, without the credential."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Final

import orjson
from redis.asyncio import Redis

from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller
from context_builder.server.access.credential_reference import CredentialReference, digest_of
from context_builder.storage.redis_availability import translated

LOGIN_SECONDS: Final = 12 * 3600
"""Lifetime of a login, in seconds."""

CODE_SECONDS: Final = 15 * 60
"""Lifetime of a one-time login code, in seconds."""

MOST_WRONG: Final = 20
WRONG_SECONDS: Final = 60
"""So many wrong logins are answered from one address in so many seconds; then none is looked at."""

_LOGIN: Final = "context_builder:page_login:"
"""String: a login, under the hash of its cookie. Lives :data:`LOGIN_SECONDS`, or until its JWT expires."""

_CODE: Final = "context_builder:page_code:"
"""String: a code that lets in once, under its hash. Lives :data:`CODE_SECONDS`."""

_WRONG: Final = "context_builder:page_wrong:"
"""String: how many wrong logins came from an address, under its hash. Lives :data:`WRONG_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Login:
    """Holds who is logged in, and the token that their forms carry."""

    cookie: str
    caller: Caller
    csrf: str

    def is_form_token(self, token: str) -> bool:
        """Return whether a form was made for this login."""
        return compare_digest(self.csrf.encode(), token.encode("utf-8", "surrogatepass"))


class TooManyWrong(Exception):
    """Wrong logins have come from this address too often."""


class Logins:
    """Logs people in by a credential of the API, or by a code that this machine's user was shown.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis, and
    :class:`~context_builder.errors.KnowledgeUnavailable` when the database of keys does not answer.
    """

    def __init__(self, redis: Redis, authenticator: Authenticator) -> None:
        self._redis = redis
        self._authenticator = authenticator

    async def by_credential(self, credential: str, address: str) -> tuple[str, int] | None:
        """Return a new login's cookie and its seconds; None for a credential that does not hold.

        Raises :class:`TooManyWrong`.
        """
        async with self._counting_wrong(address):
            reference = await self._authenticator.reference(credential)
            if reference is None:
                await self._count_wrong(address)
                return None
            return await self._begin(reference)

    async def by_code(self, code: str, address: str) -> tuple[str, int] | None:
        """Return a new login's cookie and its seconds; None for a code that is wrong, old or used.

        Raises :class:`TooManyWrong`.
        """
        async with self._counting_wrong(address):
            async with translated():
                known = await self._redis.getdel(_CODE + digest_of(code))
            reference = self._authenticator.local_reference() if known else None
            if reference is None:
                await self._count_wrong(address)
                return None
            return await self._begin(reference)

    async def new_code(self) -> str | None:
        """Return a code that lets this machine's user in once; None where the local token lets nobody in."""
        if self._authenticator.local_reference() is None:
            return None
        code = token_urlsafe(24)
        async with translated():
            await self._redis.set(_CODE + digest_of(code), b"1", ex=CODE_SECONDS)
        return code

    async def find(self, cookie: str) -> Login | None:
        """Return the login of a cookie, as long as its credential holds."""
        if not cookie:
            return None
        async with translated():
            stored = await self._redis.get(_LOGIN + digest_of(cookie))
        if stored is None:
            return None
        fields = orjson.loads(stored)
        caller = await self._authenticator.caller_of(CredentialReference.from_wire(fields["credential"]))
        return None if caller is None else Login(cookie, caller, fields["csrf"])

    async def end(self, cookie: str) -> None:
        """Log out."""
        async with translated():
            await self._redis.delete(_LOGIN + digest_of(cookie))

    async def _begin(self, reference: CredentialReference) -> tuple[str, int]:
        cookie = token_urlsafe(32)
        left = LOGIN_SECONDS if reference.expires_at is None else int(reference.expires_at - time.time())
        seconds = max(1, min(LOGIN_SECONDS, left))
        stored = orjson.dumps({"credential": reference.wire(), "csrf": token_urlsafe(32)})
        async with translated():
            await self._redis.set(_LOGIN + digest_of(cookie), stored, ex=seconds)
        return cookie, seconds

    @asynccontextmanager
    async def _counting_wrong(self, address: str) -> AsyncIterator[None]:
        async with translated():
            wrong = await self._redis.get(_WRONG + digest_of(address))
        if wrong is not None and int(wrong) >= MOST_WRONG:
            raise TooManyWrong
        yield

    async def _count_wrong(self, address: str) -> None:
        key = _WRONG + digest_of(address)
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.set(key, 0, ex=WRONG_SECONDS, nx=True)
            pipe.incr(key)
            await pipe.execute()
