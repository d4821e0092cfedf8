"""Contexts that were asked for before with exactly the same content."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from hashlib import sha256

from context_builder.assembly.prompt.built_context import BuiltContext
from context_builder.assembly.turn import Turn


class ContextCache:
    """Keeps contexts for ``seconds`` on a clock that never goes back, ``size`` of them at most; 0 seconds, none."""

    def __init__(self, seconds: float, size: int) -> None:
        self._seconds = seconds
        self._size = size
        self._kept: dict[bytes, tuple[float, BuiltContext]] = {}

    def key(self, turn: Turn, limit: int) -> bytes:
        """What stands for a turn and its token limit: all that a context is made from."""
        if not self._seconds:
            return b""
        parts = {field.name: getattr(turn, field.name) for field in fields(turn)}
        if turn.query_embedding is not None:
            parts["query_embedding"] = [float(part) for part in turn.query_embedding]
        content = json.dumps([parts, limit], default=str)
        return sha256(content.encode("utf-8", "surrogatepass")).digest()

    def get(self, key: bytes, now: float) -> BuiltContext | None:
        """The context kept under ``key``, as a copy; None when there is none, or its time is over."""
        until, context = self._kept.get(key, (now, None))
        if context is None or now >= until:
            return None
        return _copied(context, cached=True)

    def put(self, key: bytes, context: BuiltContext, now: float) -> None:
        """Keep ``context`` as it is now; the oldest makes room."""
        if self._seconds:
            self._kept.pop(key, None)
            self._kept[key] = (now + self._seconds, _copied(context))
            while len(self._kept) > self._size:
                del self._kept[next(iter(self._kept))]

    def clear(self) -> None:
        """Forget all contexts: the memories that they were made of have changed."""
        self._kept.clear()


def _copied(context: BuiltContext, **marks: bool) -> BuiltContext:
    return replace(
        context,
        messages=copy.deepcopy(context.messages),
        history=copy.deepcopy(context.history),
        snippets=copy.deepcopy(context.snippets),
        token_counts=dict(context.token_counts),
        debug=copy.deepcopy(context.debug) | marks,
    )
