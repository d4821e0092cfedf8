"""The memory store in any PostgreSQL, the embedded one included."""

from __future__ import annotations

from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory
from context_builder.storage.database_errors import MEMORY_ERRORS
from context_builder.storage.postgres import TIMEOUT, MovingDatabase
from context_builder.storage.sql_functions import CONNECTIONS, PostgresFunctions


class PostgresMemory(SqlMemory):
    """Keeps memories at ``url``, apart by tenant, over at most ``connections``. See
    :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(
        self,
        url: str | MovingDatabase,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        query_time: float = QUERY_TIME,
        in_background: bool = False,
        connections: int = CONNECTIONS,
    ) -> None:
        functions = PostgresFunctions(url, MEMORY_ERRORS, timeout=timeout, connections=connections)
        super().__init__(functions, embedder, options, query_time=query_time, in_background=in_background)
