"""The memory store in a Supabase project: the same SQL functions, called over RPC through the supabase client."""

from __future__ import annotations

from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory
from context_builder.storage.database_errors import MEMORY_ERRORS
from context_builder.storage.sql_functions import SupabaseFunctions
from context_builder.storage.supabase import TIMEOUT


class SupabaseMemory(SqlMemory):
    """Keeps memories in a project, apart by tenant. See :class:`~context_builder.memory.memory.MemoryStore`."""

    def __init__(
        self,
        url: str,
        key: str,
        embedder: Embedder | None = None,
        options: SearchOptions | None = None,
        *,
        timeout: float = TIMEOUT,
        query_time: float = QUERY_TIME,
        in_background: bool = False,
    ) -> None:
        functions = SupabaseFunctions(url, key, MEMORY_ERRORS, timeout=timeout)
        super().__init__(functions, embedder, options, query_time=query_time, in_background=in_background)
