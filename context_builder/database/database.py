"""The protocol of the database: what archive, memory and knowledge ask, each by a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

TIMEOUT: Final = 5.0
"""Seconds to connect, and for a statement or a request, before the database counts as unavailable."""

PING: Final = "context_access_any"
"""The function that a ping calls: it reads next to nothing, and is every tenant's."""

EVERYTHING: Final = "tables and functions of context_builder"
"""What a database is asked for where no part of it is named."""


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
