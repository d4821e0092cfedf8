"""The protocol of the database: what archive, memory and knowledge ask, each by a part of it.

All processes of one database share a random key, which is nowhere in Redis: whoever writes there cannot sign.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from secrets import token_hex
from typing import Any, Final, Protocol

TIMEOUT: Final = 5.0
"""Seconds to connect, and for a statement or a request, before the database counts as unavailable."""

PING: Final = "context_access_any"
"""The function that a ping calls: it reads next to nothing, and is every tenant's."""

EVERYTHING: Final = "tables and functions of context_builder"
"""Name of what is asked of a database, for errors that concern no part of it."""


class Database(Protocol):
    """Calls the SQL functions of ``database/sql``. Every call raises :class:`~context_builder.errors.DatabaseError`."""

    @property
    def name(self) -> str:
        """Return the database's name for people, free of secrets."""
        ...

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the function's rows as JSON values; one for a function that returns a value.

        Arguments are what JSON has, also as a fragment of orjson, and times and dates.
        """
        ...

    async def ping(self) -> None:
        """Raise the error that makes the functions unusable: unreachable, lacking, not allowed."""
        ...

    async def close(self) -> None:
        """Close connections; a part of a database leaves them to the whole."""
        ...


_OWNER = "context_builder"
"""Stands in for a tenant: the key is every tenant's."""


class SharedSecret:
    """Signs what is kept where others may write; the key is made by the first process that asks for it.

    Everything raises the errors of the database until it was read once.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._key: bytes | None = None
        self._one_at_a_time = asyncio.Lock()

    async def signature(self, *parts: str | bytes) -> str:
        """Return the signature of the parts in their order, in hexadecimal."""
        key = self._key or await self._read()
        return hmac(key, b"".join(_framed(parts)), sha256).hexdigest()

    async def has_signed(self, signature: str, *parts: str | bytes) -> bool:
        """Return whether the signature is that of the parts."""
        return compare_digest((await self.signature(*parts)).encode(), signature.encode("utf-8", "surrogatepass"))

    async def _read(self) -> bytes:
        async with self._one_at_a_time:
            if self._key is None:
                rows = await self._database.call("context_access_secret", _OWNER, {"proposed": token_hex(32)})
                self._key = bytes.fromhex(rows[0])
            return self._key


def _framed(parts: Iterable[str | bytes]) -> Iterable[bytes]:
    """Yield the parts so that what ends one and begins the next cannot be moved between them."""
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        yield len(raw).to_bytes(8, "big")
        yield raw
