"""Prompts that were asked for before with exactly the same content."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import fields
from hashlib import sha256
from typing import Any

from context_builder.assembly.turn import Turn


class ContextCache:
    """Keeps at most ``size`` prompts for ``seconds`` on a clock that never goes back; none with 0 seconds."""

    def __init__(self, seconds: float, size: int) -> None:
        self.is_on = seconds > 0
        self._seconds = seconds
        self._size = size
        self._kept: dict[Hashable, tuple[float, Any]] = {}

    def get(self, key: Hashable, now: float) -> Any:
        """Return a copy of the prompt kept under ``key``; None when there is none, or it has expired."""
        until, prompt = self._kept.get(key, (now, None))
        return None if prompt is None or now >= until else prompt.copied(cached=True)

    def put(self, key: Hashable, prompt: Any, now: float) -> None:
        """Keep ``prompt`` as it is now, and drop the oldest where there are too many."""
        if self.is_on and key is not None:
            self._kept.pop(key, None)
            self._kept[key] = (now + self._seconds, prompt.copied())
            while len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]

    def clear(self) -> None:
        """Forget all prompts, because the memories that they were made of have changed."""
        self._kept.clear()


def digest_of(turn: Turn, limit: int) -> bytes:
    """Return a digest of everything a turn's prompt is made from, its token limit included."""
    parts = {field.name: getattr(turn, field.name) for field in fields(turn)}
    if turn.query_embedding is not None:
        parts["query_embedding"] = [float(part) for part in turn.query_embedding]
    content = json.dumps([parts, limit], default=str)
    return sha256(content.encode("utf-8", "surrogatepass")).digest()
