"""The memory store in any PostgreSQL, with connections of its own."""

from __future__ import annotations

from context_builder.database.database import TIMEOUT
from context_builder.database.postgres import CONNECTIONS, PostgresDatabase
from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory


class PostgresMemory(SqlMemory):
    """Keeps memories at ``url``, apart by tenant, over at most ``connections``. See
    :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(
        self,
        url: str,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        query_time: float = QUERY_TIME,
        in_background: bool = False,
        connections: int = CONNECTIONS,
    ) -> None:
        database = PostgresDatabase(url, connections=connections, timeout=timeout)
        super().__init__(database, embedder, options, query_time=query_time, in_background=in_background)
