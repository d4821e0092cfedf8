"""Contexts that were asked for before with exactly the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

from context_builder.assembly.built_context import BuiltContext


class ContextCache:
    """Keeps contexts for ``seconds`` on a clock that never goes back, ``size`` of them at most; 0 seconds, none."""

    def __init__(self, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = size
        self._kept: dict[bytes, tuple[float, BuiltContext]] = {}

    def key(self, turn: Mapping[str, Any], limit: int) -> bytes:
        """What stands for a turn and its token limit: all that a context is made from."""
        if not self._seconds:
            return b""
        content = json.dumps([turn, limit], sort_keys=True, default=str)
        return sha256(content.encode("utf-8", "surrogatepass")).digest()

    def get(self, key: bytes, now: float) -> BuiltContext | None:
        """The context kept under ``key``, as a copy; None when there is none, or its time is over."""
        until, context = self._kept.get(key, (now, None))
        if context is None or now >= until:
            return None
        return replace(
            context,
            messages=[dict(message) for message in context.messages],
            history=[dict(message) for message in context.history],
            snippets=[dict(snippet) for snippet in context.snippets],
            token_counts=dict(context.token_counts),
            debug=context.debug | {"cached": True},
        )

    def put(self, key: bytes, context: BuiltContext, now: float) -> None:
        """Keep ``context``; the oldest makes room."""
        if self._seconds:
            self._kept.pop(key, None)
            self._kept[key] = (now + self._seconds, context)
            while len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]
