"""A completion that came as a stream of events, put together to the one that it would have been otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pydantic_core import from_json

_JOINED: Final = ("content", "reasoning_content", "reasoning", "refusal")


def joined(body: bytes) -> Any:
    """Return the completion in a body of events; one that is no stream is read as JSON. Raises :class:`ValueError`."""
    if body.lstrip()[:1] in (b"{", b"[") or b"data:" not in body:
        return from_json(body)
    pieces: dict[str, list[Any]] = {"content": []}
    choice: dict[str, Any] = {}
    whole: dict[str, Any] = {"choices": [choice]}
    for event in _events(body):
        if event.get("error"):
            return event
        if event.get("usage"):
            whole["usage"] = event["usage"]
        choices = event.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, dict):
            continue
        if first.get("finish_reason"):
            choice["finish_reason"] = first["finish_reason"]
        delta = first.get("delta") or first.get("message")
        if not isinstance(delta, dict):
            continue
        for name in _JOINED:
            if piece := delta.get(name):
                pieces.setdefault(name, []).append(piece)
    choice["message"] = {name: _together(all_pieces) for name, all_pieces in pieces.items()}
    return whole


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
            continue
        event = from_json(line[5:].strip())
        if isinstance(event, dict):
            yield event


def _together(pieces: list[Any]) -> Any:
    """Return pieces of a text as one, or as the parts of a content if some of them are."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    lists = (piece if isinstance(piece, list) else [{"type": "text", "text": piece}] for piece in pieces)
    return [part for parts in lists for part in parts]
