"""The memory store in any PostgreSQL, the embedded one included."""

from __future__ import annotations

from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory
from context_builder.storage.postgres import TIMEOUT
from context_builder.storage.sql_functions import PostgresFunctions
from context_builder.storage.store_errors import MEMORY_ERRORS


class PostgresMemory(SqlMemory):
    """Keeps memories at ``url``, apart by tenant. See :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(
        self,
        url: str,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        query_time: float = QUERY_TIME,
        in_background: bool = False,
    ) -> None:
        functions = PostgresFunctions(url, MEMORY_ERRORS, timeout=timeout)
        super().__init__(functions, embedder, options, query_time=query_time, in_background=in_background)
