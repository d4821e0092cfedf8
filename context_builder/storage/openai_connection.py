"""A connection to an OpenAI-compatible server, whose client is made when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from context_builder.storage.bounded_http import BoundedClient

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_DOTS_OF_JWT: Final = 2


def openai_client(
    base_url: str | None, api_key: str | None, *, timeout: float, retries: int, most_bytes: int
) -> AsyncOpenAI:
    """Return a client of an OpenAI-compatible server, bounded as
    :class:`~context_builder.storage.bounded_http.BoundedClient` is; slow at its first call.

    A query of ``base_url`` goes with each request. Azure's deployments, whose URLs have an api-version in it, take
    a key in a header of their own, and a token of Entra ID, which is a JWT, as others do.
    """
    from openai import AsyncOpenAI

    http: Any = BoundedClient(most_bytes=most_bytes, seconds=timeout)
    where = urlsplit(base_url or "")
    query = dict(parse_qsl(where.query, keep_blank_values=True))
    has_key = api_key is not None and not (api_key.startswith("eyJ") and api_key.count(".") == _DOTS_OF_JWT)
    return AsyncOpenAI(
        api_key=api_key or "none",
        base_url=where._replace(query="").geturl() or None,
        default_query=query,
        default_headers={"api-key": api_key} if api_key and has_key and "api-version" in query else {},
        timeout=timeout,
        max_retries=retries,
        http_client=http,
    )


class OpenAIConnection:
    """A client that is made at its first use, in a thread, as loading the package would hold up the loop for a second.

    A client asked for after it was closed is a new one.
    """

    def __init__(self, make: Callable[[], AsyncOpenAI]) -> None:
        self._make = make
        self._making = asyncio.Lock()
        self._client: AsyncOpenAI | None = None

    async def client(self) -> AsyncOpenAI:
        """Return the client."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make)
            return self._client

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
