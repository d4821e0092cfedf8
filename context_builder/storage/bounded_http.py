"""HTTP clients here bound the size and time of an answer, for servers that are not trusted to do so.

Of a server that refuses a key, its own words are shown without the key.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx
from pydantic_core import from_json

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_DOTS_OF_JWT: Final = 2
_OF_THE_TRANSFER: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
"""Headers about the transfer of a body, which do not hold for the part that was read."""


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the certificate authorities that clients trust, read once: that holds up the loop for 20 ms."""
    return httpx.create_ssl_context()


class BoundedClient(httpx.AsyncClient):
    """Reads at most ``most_bytes`` of a response's body, unpacked, and waits at most ``seconds`` for all of it.

    The rest of a longer body is left out, which whoever parses it notices. No redirect is followed: a request holds
    what people said, and the key of the server that it was meant for.
    """

    def __init__(self, *, most_bytes: int, seconds: float) -> None:
        super().__init__(timeout=seconds, verify=trusted_authorities())
        self._most_bytes = most_bytes
        self._seconds = seconds

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send ``request``; the response is complete, whether or not ``stream`` asks for it piece by piece."""
        try:
            async with asyncio.timeout(self._seconds):
                response = await super().send(request, stream=True, **options)
                try:
                    return await self._read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise httpx.ReadTimeout("no whole answer in time", request=request) from None

    async def _read(self, response: httpx.Response) -> httpx.Response:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) >= self._most_bytes:
                break
        return httpx.Response(
            response.status_code,
            headers=[(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_TRANSFER],
            content=bytes(body[: self._most_bytes]),
            request=response.request,
        )


def openai_client(
    base_url: str | None, api_key: str | None, *, timeout: float, retries: int, most_bytes: int
) -> AsyncOpenAI:
    """Return a client of an OpenAI-compatible server, bounded as :class:`BoundedClient` is; slow at its first call.

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


_LONGEST: Final = 200
"""Characters of a server's words that are shown."""

_SEARCHED: Final = 1_000
"""Characters of a server's words that are looked at."""

_WORD: Final = re.compile(r"[\w.~+/=-]{6,}")
_LIKE_A_KEY: Final = re.compile(r"\bsk-[\w*-]+|(?=[\w-]*\d)[\w-]{16,}")


_MASKED: Final = re.compile(r"…[*…\w-]*")
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?…]) +(?=[A-Z])")
_ADDRESS: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_ECHO: Final = 16
"""Characters in a row from the request that make a server's words a quote of it."""


def words_of_refusal(body: bytes, key: str, sent: str) -> str:
    """Return the message of an answer that refuses ``key``, in one line and quotes; empty where there is none, or it
    quotes what was ``sent``.

    The key and its parts are masked, and so is what may be another, and addresses, which may hold a password. After
    the first sentence, those with something masked are left out.
    """
    try:
        said = from_json(body)
    except ValueError:
        return ""
    line = " ".join(_message(said)[:_SEARCHED].split())
    if _quotes(line, sent):
        return ""
    line = _ADDRESS.sub("…", line)
    if key:
        line = line.replace(key, "…")
        line = _WORD.sub(lambda word: "…" if word[0] in key else word[0], line)
    first, *others = _SENTENCE_ENDS.split(_MASKED.sub("…", _LIKE_A_KEY.sub("…", line)))
    line = " ".join([first, *(one for one in others if "…" not in one)])
    return f"“{line[: _LONGEST - 1]}…”" if len(line) > _LONGEST else f"“{line}”" if line else ""


def _quotes(line: str, sent: str) -> bool:
    """Return whether a line repeats something of what was sent."""
    said, known = line.casefold(), " ".join(sent.casefold().split())
    return any(said[start : start + _ECHO] in known for start in range(max(1, len(said) - _ECHO + 1))) and bool(said)


def _message(said: Any) -> str:
    if isinstance(said, list):
        said = said[0] if said else None
    if isinstance(said, dict):
        found = next((said[name] for name in ("error", "message", "detail") if said.get(name)), "")
        return _message(found) if isinstance(found, dict) else found if isinstance(found, str) else ""
    return ""
