"""The memory store in a Supabase project: the same SQL functions, called over RPC through the supabase client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory
from context_builder.storage.store_errors import MEMORY_ERRORS
from context_builder.storage.supabase import TIMEOUT, SupabaseProject


class SupabaseFunctions:
    """Calls the functions in the project at ``url``; the service role that ``key`` gives names the tenant."""

    def __init__(self, url: str, key: str, *, timeout: float = TIMEOUT) -> None:
        self._project = SupabaseProject(url, key, MEMORY_ERRORS, timeout=timeout)

    @property
    def name(self) -> str:
        return self._project.name

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        client = await self._project.client()
        with self._project.translated():
            request = client.rpc(function, {"tenant": tenant_id, **arguments}).execute()
            answer = (await self._project.bounded(request)).data
        return answer if isinstance(answer, list) else [answer]

    async def close(self) -> None:
        await self._project.close()


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
    ) -> None:
        super().__init__(SupabaseFunctions(url, key, timeout=timeout), embedder, options, query_time=query_time)
