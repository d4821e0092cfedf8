"""An HTTP client that bounds the size and time of an answer, for servers that are not trusted to do so."""

from __future__ import annotations

import asyncio
import codecs
import ssl
from functools import cache
from typing import Any, Final

import httpx

_OF_THE_TRANSFER: Final = frozenset({b"content-encoding", b"content-length", b"transfer-encoding"})
"""Headers about the transfer of a body, which do not hold for the part that was read."""


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Return the certificate authorities that clients trust, read once: that holds up the loop for 20 ms."""
    return httpx.create_ssl_context()


class BoundedClient(httpx.AsyncClient):
    """Reads at most ``most_bytes`` of a response's body, unpacked, and waits at most ``seconds`` for all of it.

    The rest of a longer body is left out, which whoever parses it notices. No redirect is followed: a request holds
    what people said, and the key of the server that it was meant for. ``options`` are httpx's own.
    """

    def __init__(self, *, most_bytes: int, seconds: float, **options: Any) -> None:
        super().__init__(timeout=seconds, verify=trusted_authorities(), **options)
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
            content=bytes(body[: self._most_bytes]).removeprefix(codecs.BOM_UTF8),
            request=response.request,
        )
