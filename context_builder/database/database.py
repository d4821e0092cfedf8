"""The protocol of the database: what archive, memory and knowledge ask, each by a part of it.

Its rows are read as this project writes them; one into which somebody else wrote is named, and left as it is.
All processes of one database share a random key, which is nowhere in Redis: whoever writes there cannot sign.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from hmac import compare_digest
from hmac import new as hmac
from secrets import token_hex
from typing import Any, Final, Protocol, TypeVar

import structlog
from pydantic import ValidationError

from context_builder.errors import DataRejected, RowDamaged
from context_builder.json_shape import Misshapen

log = structlog.get_logger(__name__)

T = TypeVar("T")

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


_DAMAGED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    DataRejected,
)
"""Errors of what reads a row that this project did not write."""


@contextmanager
def reading_row(table: str, row: str) -> Iterator[None]:
    """Raise :class:`RowDamaged`, which names table and row, in place of errors of what this project did not write."""
    try:
        yield
    except _DAMAGED as error:
        raise damaged_row(table, row, error) from None


def damaged_row(table: str, row: str, error: Exception) -> RowDamaged:
    """Return what says which row is damaged, and what to do; it quotes nothing that is stored."""
    return RowDamaged(
        f"row {row} of {table} is damaged ({_told(error)}); it is left as it is. Correct it, or restore a backup"
    )


def readable_rows(
    table: str, key: str, decode: Callable[[Mapping[str, Any]], T], rows: Iterable[Mapping[str, Any]]
) -> Iterator[T]:
    """Yield what the rows hold; those that are damaged are left out, and the log names them by the column ``key``."""
    for row in rows:
        try:
            yield decode(row)
        except _DAMAGED as error:
            log.warning("database.row_damaged", reason=str(damaged_row(table, str(row.get(key)), error)))


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] != "extra_forbidden" and first["loc"]:  # else the name is of what is stored
            return f"{first['loc'][0]}: {first['type']}"
    return str(error) if isinstance(error, Misshapen) else type(error).__name__  # others quote what is stored
