"""An embedder that needs no model: texts are alike when they have the same letters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from context_builder.errors import DatabaseUnavailable


class LetterEmbedder:
    """Counts letters. Keeps what it embedded; raises while ``failing``, and answers only when ``gate`` is set.

    ``asked`` is set at the first call.
    """

    name = "letters"

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.failing = False
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.set()
        await self.gate.wait()
        if self.failing:
            raise DatabaseUnavailable("the model is away")
        self.embedded += texts
        return [
            [float(text.lower().count(chr(letter))) + 0.01 for letter in range(ord("a"), ord("z") + 1)]
            for text in texts
        ]

    async def embed_query(self, text: str) -> list[float]:
        return (await self.embed([text]))[0]

    async def close(self) -> None:
        return None
