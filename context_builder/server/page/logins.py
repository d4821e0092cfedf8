"""Logins live in Redis, so that any server knows them: under a hash of the cookie, signed, without the credential."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from context_builder.database.shared_secret import SharedSecret
from context_builder.server.access.authenticator import Authenticator, CredentialReference, account_of
from context_builder.server.access.caller import Caller, digest_of
from context_builder.storage.redis_availability import translated

LOGIN_SECONDS: Final = 12 * 3600
"""Lifetime of a login, in seconds."""

CODE_SECONDS: Final = 15 * 60
"""Lifetime of a one-time login code, in seconds."""

_SIGNATURE: Final = 64
"""Characters of the signature that comes first in what is kept."""

MOST_WRONG: Final = 20
WRONG_SECONDS: Final = 60
"""So many wrong logins to one account are answered from one address in so many seconds; then none is looked at."""

_LOGIN: Final = "context_builder:page_login:"
"""String: a login, under the hash of its cookie. Lives :data:`LOGIN_SECONDS`, or until its JWT expires."""

_CODE: Final = "context_builder:page_code:"
"""String: a code that lets in once, under its hash. Lives :data:`CODE_SECONDS`."""

_WRONG: Final = "context_builder:page_wrong:"
"""String: how many wrong logins to an account came from an address, under both's hash. Lives :data:`WRONG_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who is logged in, and the token that their forms carry."""

    cookie: str
    caller: Caller
    csrf: str
    place: str

    def is_form_token(self, token: str) -> bool:
        """Return whether a form was made for this login."""
        return compare_digest(self.csrf.encode(), token.encode("utf-8", "surrogatepass"))


class TooManyWrong(Exception):
    """Wrong logins to this account have come from this address too often."""


class Logins:
    """Logs people in by a credential of the API, or by a code that this machine's user was shown.

    A login holds at the ``place`` that it was begun at: the origin that the browser asked. What Redis keeps of logins
    and codes is signed for its key there, because others may write to Redis.

    Raises :class:`~context_builder.errors.StoreUnavailable` when Redis, and
    :class:`~context_builder.errors.DatabaseUnavailable` when the database of keys does not answer.
    """

    def __init__(self, redis: Redis, authenticator: Authenticator, secret: SharedSecret) -> None:
        self._redis = redis
        self._authenticator = authenticator
        self._secret = secret

    async def cookie_name(self, place: str) -> str:
        """Return the cookie's name at a place, which no other server and no other port of the host uses."""
        return f"context_builder_{(await self._secret.signature('cookie', place))[:16]}"

    async def by_credential(self, credential: str, address: str, place: str) -> tuple[str, int] | None:
        """Return a new login's cookie and its seconds; None for a credential that does not hold.

        Raises :class:`TooManyWrong`.
        """
        tried = f"{account_of(credential)} {address}"
        await self._check_wrong(tried)
        reference = await self._authenticator.reference(credential)
        if reference is None:
            await self._count_wrong(tried)
            return None
        return await self._begin(reference, place)

    async def by_code(self, code: str, address: str, place: str) -> tuple[str, int] | None:
        """Return a new login's cookie and its seconds; None for a code that is wrong, old or used.

        Raises :class:`TooManyWrong`.
        """
        tried = f"code {address}"
        await self._check_wrong(tried)
        key = _CODE + digest_of(code)
        async with translated():
            stored = await self._redis.getdel(key)
        reference = None if await self._opened(key, stored) is None else self._authenticator.local_reference()
        if reference is None:
            await self._count_wrong(tried)
            return None
        return await self._begin(reference, place)

    async def new_code(self) -> str | None:
        """Return a code that lets this machine's user in once; None where the local token lets nobody in."""
        if self._authenticator.local_reference() is None:
            return None
        code = token_urlsafe(24)
        await self._keep(_CODE + digest_of(code), {}, CODE_SECONDS)
        return code

    async def find(self, cookie: str, place: str) -> Login | None:
        """Return the login of a cookie that was given at this place, as long as its credential holds."""
        if not cookie:
            return None
        key = _LOGIN + digest_of(cookie)
        async with translated():
            stored = await self._redis.get(key)
        fields = await self._opened(key, stored)
        if fields is None or fields["place"] != place:
            return None
        caller = await self._authenticator.caller_of(CredentialReference.from_wire(fields["credential"]))
        return None if caller is None else Login(cookie, caller, fields["csrf"], place)

    async def end(self, cookie: str) -> None:
        """Log out."""
        async with translated():
            await self._redis.delete(_LOGIN + digest_of(cookie))

    async def _begin(self, reference: CredentialReference, place: str) -> tuple[str, int]:
        cookie = token_urlsafe(32)
        left = LOGIN_SECONDS if reference.expires_at is None else int(reference.expires_at - time.time())
        seconds = max(1, min(LOGIN_SECONDS, left))
        fields = {"credential": reference.wire(), "csrf": token_urlsafe(32), "place": place}
        await self._keep(_LOGIN + digest_of(cookie), fields, seconds)
        return cookie, seconds

    async def _keep(self, key: str, fields: dict[str, Any], seconds: int) -> None:
        content = orjson.dumps({**fields, "expires": time.time() + seconds})
        signature = await self._secret.signature(key, content)
        async with translated():
            await self._redis.set(key, signature.encode() + content, ex=seconds)

    async def _opened(self, key: str, stored: Any) -> dict[str, Any] | None:
        """Return what was kept under the key; None unless a server signed it for that key, and it has not expired."""
        if stored is None:
            return None
        signature, content = stored[:_SIGNATURE], stored[_SIGNATURE:]
        if not await self._secret.has_signed(signature.decode("latin-1"), key, content):
            return None
        fields: dict[str, Any] = orjson.loads(content)
        return fields if fields["expires"] > time.time() else None

    async def _check_wrong(self, tried: str) -> None:
        async with translated():
            wrong = await self._redis.get(_WRONG + digest_of(tried))
        if wrong is not None and int(wrong) >= MOST_WRONG:
            raise TooManyWrong

    async def _count_wrong(self, tried: str) -> None:
        key = _WRONG + digest_of(tried)
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.set(key, 0, ex=WRONG_SECONDS, nx=True)
            pipe.incr(key)
            await pipe.execute()
