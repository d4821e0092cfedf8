"""A Supabase project, through the supabase client, and what the errors of its API mean."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from context_builder.errors import ContextBuilderError
from context_builder.storage.database_errors import DatabaseErrors
from context_builder.storage.postgres import SQLSTATE_LENGTH, explained
from context_builder.storage.urls import refuse_redirects

if TYPE_CHECKING:
    import httpx
    import postgrest
    import supabase

T = TypeVar("T")

TIMEOUT: Final = 5.0
"""Seconds for one request before a store counts as unavailable."""

_DOTS_OF_JWT: Final = 2

# The API cannot reach its database, asks to slow down, or something before it failed.
_TRANSIENT: Final = re.compile(r"PGRST00\d|408|429|5\d\d")
# The API, or something before it, takes no such body: malformed, too large.
_INVALID_DATA: Final = ("PGRST102", "400", "413", "422")


def is_token(key: str) -> bool:
    """Return whether an API key is a JWT, as keys were before ``sb_secret_…``."""
    return key.count(".") == _DOTS_OF_JWT


async def _without_token(request: httpx.Request) -> None:
    """Leave out the ``Authorization`` that the client makes of a key that is no token: a project that reads it refuses.

    https://supabase.com/docs/guides/api/api-keys: such keys stand in the header ``apikey`` alone.
    """
    request.headers.pop("Authorization", None)


class SupabaseProject:
    """Asks the project at ``url`` with its service key. Connects at first use."""

    def __init__(self, url: str, key: str, errors: DatabaseErrors, *, timeout: float = TIMEOUT) -> None:
        self._url = url
        self._key = key
        self._errors = errors
        self._timeout = timeout
        self._http: httpx.AsyncClient | None = None
        self._client: supabase.AsyncClient | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"Supabase at {urlsplit(self._url).netloc.rpartition('@')[2]}"

    async def client(self) -> supabase.AsyncClient:
        async with self._opening:
            if self._client is None:
                vendor = await asyncio.to_thread(importlib.import_module, "supabase")  # takes about a second
                self._http = self._http or await asyncio.to_thread(self._http_client)
                options = vendor.AsyncClientOptions(
                    auto_refresh_token=False, persist_session=False, httpx_client=self._http
                )
                with self.translated():
                    self._client = await vendor.acreate_client(self._url, self._key, options)
            return self._client

    async def bounded(self, request: Awaitable[T]) -> T:
        """Return the answer to a request. The client repeats some by itself; this bounds all of them together."""
        async with asyncio.timeout(self._timeout):
            return await request

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self._http = self._client = None

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise the client's errors as the store's.

        Of errors below HTTP only the type is told: the text of one about a header quotes the key.
        """
        import httpx
        from postgrest import APIError
        from supabase import AsyncSupabaseException

        try:
            yield
        except APIError as error:
            raise self._explained(error) from None
        except (AsyncSupabaseException, httpx.LocalProtocolError, httpx.InvalidURL, UnicodeError):
            malformed = "cannot be asked: SUPABASE_URL or SUPABASE_KEY is malformed"
            raise self._errors.rejected(f"{self.name} {malformed}") from None
        except (httpx.HTTPError, TimeoutError) as error:
            raise self._errors.unavailable(f"{self.name} cannot be reached: {type(error).__name__}") from None

    def _http_client(self) -> httpx.AsyncClient:
        """Make the client in a thread, because it reads the certificate authorities."""
        import httpx

        from context_builder.storage.bounded_http import trusted_authorities

        hooks: dict[str, list[Any]] = {**refuse_redirects(self.name, "SUPABASE_URL", self._errors.unavailable)}
        if not is_token(self._key):
            hooks["request"] = [_without_token]
        return httpx.AsyncClient(timeout=self._timeout, event_hooks=hooks, verify=trusted_authorities())

    def _explained(self, error: postgrest.APIError) -> ContextBuilderError:
        """Return the store's error for an error of the API, with its code alone: its message may quote the row."""
        code = str(error.code or "")
        code = code if re.fullmatch(r"[A-Za-z0-9_]{1,32}", code) else "no code"
        if _TRANSIENT.fullmatch(code):
            return self._errors.unavailable(f"{self.name} cannot answer now ({code})")
        if code in self._errors.api_advice:
            return self._errors.rejected(f"{self.name} {self._errors.api_advice[code]}")
        if code in _INVALID_DATA:
            return self._errors.data_rejected(f"{self.name} refuses it ({code}); its own log says why")
        if len(code) == SQLSTATE_LENGTH:
            return explained(self.name, self._errors, code)
        return self._errors.rejected(f"{self.name} refuses it ({code}); its own log says why")
