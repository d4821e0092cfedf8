"""The database in a Supabase project, through the supabase client: SQL functions over RPC, and tables."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import orjson

from context_builder.database.database import EVERYTHING, PING, TIMEOUT
from context_builder.database.refusals import explained_by_api
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.storage.urls import refuse_redirects

if TYPE_CHECKING:
    import httpx
    import supabase

T = TypeVar("T")

_DOTS_OF_JWT: Final = 2

_PAGED: Final = {"context_knowledge_sources": "ref"}
"""Functions that only read and may return more rows than Supabase's API does at once, and what these are ordered by."""

_PAGE: Final = 1_000
"""Rows of a page."""


def is_token(key: str) -> bool:
    """Return whether an API key is a JWT, as keys were before ``sb_secret_…``."""
    return key.count(".") == _DOTS_OF_JWT


async def _without_token(request: httpx.Request) -> None:
    """Leave out the ``Authorization`` that the client makes of a key that is not a token, which a project refuses.

    https://supabase.com/docs/guides/api/api-keys: such keys stand in the header ``apikey`` alone.
    """
    request.headers.pop("Authorization", None)


class SupabaseDatabase:
    """Implements :class:`~context_builder.database.database.Database` in the project at ``url``, with its service key.

    The service role that ``key`` gives names the tenant. Connects at first use.
    """

    def __init__(self, url: str, key: str, *, timeout: float = TIMEOUT) -> None:
        self._project = _Project(url, key, timeout)
        self._is_part = False

    @property
    def name(self) -> str:
        return self._project.name

    def part(self, connections: int) -> SupabaseDatabase:
        """Return the database for one who does not close it."""
        part = copy(self)
        part._is_part = True
        return part

    async def call(self, function: str, tenant_id: str, arguments: Mapping[str, Any]) -> list[Any]:
        client = await self.client()
        from postgrest.types import CountMethod

        passed = {"tenant": tenant_id, **{name: _as_json(value) for name, value in arguments.items()}}
        rows: list[Any] = []
        with self.translated(f"function {function}"):
            while True:  # the API returns so many rows at most: 1,000, if nothing else is set
                request = client.rpc(function, passed, count=CountMethod.exact)
                if function in _PAGED:
                    request = request.order(_PAGED[function]).range(len(rows), len(rows) + _PAGE - 1)
                answer = await self.bounded(request.execute())
                if not isinstance(answer.data, list):
                    return [answer.data]
                rows += answer.data
                if len(rows) >= (answer.count or 0):
                    return rows
                if function not in _PAGED or not answer.data:
                    cut = f"returns {len(rows)} of {answer.count} rows; raise its limit of rows (Settings, API)"
                    raise DatabaseRejected(f"{self.name} {cut}")

    async def ping(self) -> None:
        await self.call(PING, "context_builder", {})

    async def client(self) -> supabase.AsyncClient:
        """Return the project's client, for what tables are asked."""
        if "supabase" not in sys.modules:
            await asyncio.to_thread(importlib.import_module, "supabase")  # takes about a second
        with self.translated():
            return await self._project.client()

    async def bounded(self, request: Awaitable[T]) -> T:
        """Return the answer to a request. The client repeats some by itself; this bounds all of them together."""
        async with asyncio.timeout(self._project.timeout):
            return await request

    async def close(self) -> None:
        if not self._is_part:
            await self._project.close()

    @contextmanager
    def translated(self, asked: str = EVERYTHING) -> Iterator[None]:
        """Raise the client's errors as ours.

        Of an error of the API only the code is told: its message may quote the row. Of errors below HTTP only the type
        is told: the text of one about a header quotes the key.
        """
        import httpx
        from postgrest import APIError
        from supabase import AsyncSupabaseException

        try:
            yield
        except APIError as error:
            raise explained_by_api(self.name, asked, str(error.code or "")) from None
        except (AsyncSupabaseException, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError):
            malformed = "cannot be asked: SUPABASE_URL or SUPABASE_KEY is malformed"
            raise DatabaseRejected(f"{self.name} {malformed}") from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise DatabaseUnavailable(f"{self.name} cannot be reached: {type(error).__name__}") from None


class _Project:
    """A project's one client is shared by all parts of its database."""

    def __init__(self, url: str, key: str, timeout: float) -> None:
        self._url = url
        self._key = key
        self.timeout = timeout
        self._http: httpx.AsyncClient | None = None
        self._client: supabase.AsyncClient | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"Supabase at {urlsplit(self._url).netloc.rpartition('@')[2]}"

    async def client(self) -> supabase.AsyncClient:
        async with self._opening:
            if self._client is None:
                import supabase

                self._http = self._http or await asyncio.to_thread(self._http_client)
                options = supabase.AsyncClientOptions(
                    auto_refresh_token=False, persist_session=False, httpx_client=self._http
                )
                self._client = await supabase.acreate_client(self._url, self._key, options)
            return self._client

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self._http = self._client = None

    def _http_client(self) -> httpx.AsyncClient:
        """Make the client in a thread, because it reads the certificate authorities."""
        import httpx

        from context_builder.storage.bounded_http import trusted_authorities

        hooks: dict[str, list[Any]] = {**refuse_redirects(self.name, "SUPABASE_URL", DatabaseUnavailable)}
        if not is_token(self._key):
            hooks["request"] = [_without_token]
        return httpx.AsyncClient(timeout=self.timeout, event_hooks=hooks, verify=trusted_authorities())


def _as_json(value: Any) -> Any:
    """The Supabase client takes what JSON has."""
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    return value.isoformat() if isinstance(value, date) else value
