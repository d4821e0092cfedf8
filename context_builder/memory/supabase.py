"""The memory store in a Supabase project: the same SQL functions, called over RPC through the supabase client."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from context_builder.errors import MemoryDataRejected, MemoryRejected, MemoryStoreError, MemoryUnavailable
from context_builder.memory.embedder import Embedder
from context_builder.memory.sql_errors import explained
from context_builder.memory.sql_memory import QUERY_TIME, SearchOptions, SqlMemory
from context_builder.storage.redirects import refuse_redirects
from context_builder.storage.sqlstate import SQLSTATE_LENGTH

if TYPE_CHECKING:
    import httpx
    import postgrest
    import supabase

TIMEOUT: Final = 5.0
"""Seconds for one request before the memory counts as unavailable."""

_KEY_REFUSED: Final = "refuses SUPABASE_KEY; use the project's service key"
_ADVICE: Final = {
    "PGRST202": "lacks the functions of the memory; run the SQL that `context-builder migrate` prints",
    "PGRST301": _KEY_REFUSED,
    "PGRST302": _KEY_REFUSED,
    "PGRST303": _KEY_REFUSED,
    "401": _KEY_REFUSED,
    "403": _KEY_REFUSED,
    "42501": _KEY_REFUSED,
}
# The API cannot reach its database, asks to slow down, or something before it failed.
_TRANSIENT: Final = re.compile(r"PGRST00\d|408|429|5\d\d")
# The API, or something before it, takes no such body: malformed, too large.
_INVALID_DATA: Final = ("PGRST102", "400", "413", "422")


class SupabaseFunctions:
    """Calls the functions in the project at ``url``; the service role that ``key`` gives names the tenant."""

    def __init__(self, url: str, key: str, *, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._key = key
        self._timeout = timeout
        self._http: httpx.AsyncClient | None = None
        self._client: supabase.AsyncClient | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"Supabase at {urlsplit(self._url).netloc.rpartition('@')[2]}"

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        client = await self._connected()
        with self._translated():
            async with asyncio.timeout(self._timeout):
                answer = (await client.rpc(function, {"tenant": tenant_id, **arguments}).execute()).data
        return answer if isinstance(answer, list) else [answer]

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self._http = self._client = None

    async def _connected(self) -> supabase.AsyncClient:
        async with self._opening:
            if self._client is None:
                vendor = await asyncio.to_thread(importlib.import_module, "supabase")  # takes about a second
                self._http = self._http or await asyncio.to_thread(self._http_client)
                options = vendor.AsyncClientOptions(
                    auto_refresh_token=False, persist_session=False, httpx_client=self._http
                )
                with self._translated():
                    self._client = await vendor.acreate_client(self._url, self._key, options)
            return self._client

    def _http_client(self) -> httpx.AsyncClient:
        """Made in a thread, because it reads the certificate authorities."""
        import httpx

        hooks = refuse_redirects(self.name, "SUPABASE_URL", MemoryUnavailable)
        return httpx.AsyncClient(timeout=self._timeout, event_hooks=hooks)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise the client's errors as the memory store's; of those below HTTP only the type: they quote keys."""
        import httpx
        from postgrest import APIError
        from supabase import AsyncSupabaseException

        try:
            yield
        except APIError as error:
            raise self._explained(error) from None
        except (AsyncSupabaseException, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError):
            raise MemoryRejected(f"{self.name} cannot be asked: SUPABASE_URL or SUPABASE_KEY is malformed") from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise MemoryUnavailable(f"{self.name} cannot be reached: {type(error).__name__}") from None

    def _explained(self, error: postgrest.APIError) -> MemoryStoreError:
        code, message = str(error.code or ""), error.message or "no reason given"
        if _TRANSIENT.fullmatch(code):
            return MemoryUnavailable(f"{self.name}: {message} ({code})")
        if code in _ADVICE:
            return MemoryRejected(f"{self.name} {_ADVICE[code]}")
        if code in _INVALID_DATA:
            return MemoryDataRejected(f"{self.name} refuses: {message} ({code})")
        if len(code) == SQLSTATE_LENGTH:
            return explained(self.name, code, message)
        return MemoryRejected(f"{self.name} refuses: {message} ({code})")


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
