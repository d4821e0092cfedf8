"""Embeddings that cost nothing to make, and as much to search as real ones."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

import orjson

from context_builder.engines.engine import LOOPBACK

DIMENSIONS: Final = 384


class RandomEmbedder:
    """Embeddings around fifty centres: as costly to search as real ones."""

    name = "random"

    def __init__(self) -> None:
        self._random = random.Random(1)
        self._centres = [[self._random.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(50)]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, _: str) -> list[float]:
        return [round(value + self._random.gauss(0, 0.7), 3) for value in self._random.choice(self._centres)]

    async def close(self) -> None:
        return None


class TextEmbedder:
    """Embeddings around fifty centres, of length 1; the same text has the same one in every run."""

    name = "random-by-text"

    def __init__(self) -> None:
        choose = random.Random(1)
        self._centres = [[choose.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(50)]

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        choose = random.Random(text)
        embedding = [value + choose.gauss(0, 0.7) for value in choose.choice(self._centres)]
        length = math.hypot(*embedding)
        return [value / length for value in embedding]

    async def close(self) -> None:
        return None


@contextmanager
def serve_random_embeddings() -> Iterator[str]:
    """The URL of an OpenAI-compatible API that gives random embeddings."""
    embedder = RandomEmbedder()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
            embeddings = asyncio.run(embedder.embed(asked["input"]))
            data = [{"index": place, "embedding": embedding} for place, embedding in enumerate(embeddings)]
            body = orjson.dumps({"data": data})
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer((LOOPBACK, 0), Answer)
    Thread(target=server.serve_forever, name="random embeddings", daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
