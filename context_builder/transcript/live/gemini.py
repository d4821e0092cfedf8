"""Gemini Live: what it heard and what it says come in fragments, until a turn is complete or the other one speaks.

https://ai.google.dev/api/live#BidiGenerateContentServerContent
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from context_builder.transcript.fields import inner
from context_builder.transcript.live.stream import Message, Stream
from context_builder.transcript.utterance import Utterance

_SIDES: Final = {"inputTranscription": "user", "outputTranscription": "model"}
_ENDS: Final = ("turnComplete", "generationComplete", "interrupted")


def is_gemini(message: Message) -> bool:
    return "serverContent" in message or "setupComplete" in message


def read_gemini(message: Message, stream: Stream) -> Iterator[Utterance]:
    """Yield what a message completes."""
    content = inner(message, "serverContent")
    for field, who in _SIDES.items():
        if isinstance(text := inner(content, field).get("text"), str) and text:
            for other in _SIDES.values():
                if other != who:
                    yield from _said(other, stream)
            stream.hold(f"gemini {who}", [Utterance(who, text)], blankless=True)
    if any(content.get(key) is True for key in _ENDS):
        for who in _SIDES.values():
            yield from _said(who, stream)


def _said(who: str, stream: Stream) -> Iterator[Utterance]:
    for one in stream.release(f"gemini {who}"):
        if words := " ".join(one.text.split()):
            yield Utterance(one.speaker, words)
