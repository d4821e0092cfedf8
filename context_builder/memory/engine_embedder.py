"""This embedder asks the embedded embedding engine."""

from __future__ import annotations

import asyncio
import base64
import json
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from context_builder.errors import DatabaseUnavailable, EngineError
from context_builder.memory.embedder import Embedding
from context_builder.memory.rows import storable

LONGEST: Final = 2_000
"""Characters of a text that are embedded: about the model's window of 512 tokens, and a second's work. Of a longer text
the model would take the mean of several windows, which says little of each."""

TIMEOUT: Final = 120.0
"""Seconds for one text: the engine stands back behind whatever else keeps the machine busy."""


class EngineEmbedder:
    """Asks the engine at the URL that ``start`` returns; asked for at first use, because it takes half a second.

    Where nothing answers any more, ``restart`` returns the URL of the engine started again, or None if somebody stopped
    it. Both block, and may raise :class:`EngineError`. Passages go out one a request. Nothing is charged. Implements
    :class:`~context_builder.memory.embedder.Embedder`.
    """

    def __init__(self, name: str, start: Callable[[], str | None], restart: Callable[[], str | None]) -> None:
        self.name = name
        self._locate = start
        self._restart = restart
        self._locating: asyncio.Task[str | None] | None = None

    async def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return [await self._ask("passage", text) for text in texts]

    async def embed_query(self, text: str) -> Embedding:
        return await self._ask("query", text)

    async def close(self) -> None:
        """Close nothing: a connection lasts for one request."""

    async def _ask(self, input_type: str, text: str) -> Embedding:
        url = await self._located()
        asked = {"input": storable(text[:LONGEST]), "input_type": input_type, "encoding_format": "base64"}
        body = json.dumps(asked).encode()
        try:
            answer = await self._post(url, body)
        except (OSError, EOFError):
            url = await self._located(again=True)
            try:
                answer = await self._post(url, body)
            except (OSError, EOFError) as error:
                raise DatabaseUnavailable(f"the embedded engine cannot be reached: {type(error).__name__}") from None
        return _embedding_in(answer)

    async def _located(self, *, again: bool = False) -> str:
        """Return the engine's URL. A query that has no time to wait for a start leaves it to go on."""
        if self._locating is None or (again and self._locating.done()):
            self._locating = asyncio.create_task(asyncio.to_thread(self._locate), name="embedding engine")
        try:
            url = await asyncio.shield(self._locating)
        except EngineError as error:
            self._locating = None
            raise DatabaseUnavailable(str(error)) from None
        if url is None:
            self._locating = None
            raise DatabaseUnavailable("the embedded engine was stopped: `context-builder engines start`")
        self._locate = self._restart  # what somebody stops from now on stays stopped
        return url

    async def _post(self, url: str, body: bytes) -> bytes:
        """Return the answer's body. Raises :class:`OSError`, or :class:`EOFError` when the engine dies meanwhile."""
        where = urlsplit(url)
        head = (
            f"POST {where.path}/embeddings HTTP/1.0\r\nAuthorization: Bearer {where.password}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            try:
                writer.write(head.encode() + body)
                answer = await reader.read()  # HTTP/1.0: the end of the answer is the end of the connection
            finally:
                writer.close()
        _, _, content = answer.partition(b"\r\n\r\n")
        if not content:
            raise EOFError
        return content


def _embedding_in(body: bytes) -> Embedding:
    try:
        answer: Any = json.loads(body)
        return array("f", base64.b64decode(answer["data"][0]["embedding"])).tolist()
    except (ValueError, TypeError, LookupError):
        raise DatabaseUnavailable("the embedded engine answers with no embedding") from None
