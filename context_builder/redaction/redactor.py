"""The redactor's protocol, the two redactors that look for nothing themselves, and the walk through nested values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class RedactorProtocol(Protocol):
    """Removes from a text what must not be shown; raises any exception when it cannot."""

    def redact(self, text: str) -> str:
        """Return ``text`` without what must not be shown."""
        ...


class NoopRedactor:
    """Removes nothing."""

    def redact(self, text: str) -> str:
        return text


class RedactorChain:
    """Applies one redactor after the other: secrets, then personal data."""

    def __init__(self, *redactors: RedactorProtocol) -> None:
        self._redactors = redactors

    def redact(self, text: str) -> str:
        for redactor in self._redactors:
            text = redactor.redact(text)
        return text


def redact_nested(value: Any, redact: Callable[[str], str]) -> Any:
    """Return ``value`` with ``redact`` applied to every text in its mappings, lists and tuples; keys stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_nested(inner, redact) for key, inner in value.items()}
    return [redact_nested(inner, redact) for inner in value] if isinstance(value, list | tuple) else value
