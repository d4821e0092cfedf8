"""What a redactor does, and the two that look for nothing themselves."""

from __future__ import annotations

from typing import Protocol


class RedactorProtocol(Protocol):
    """Takes out of a text what must not be shown; raises whatever it likes when it cannot."""

    def redact(self, text: str) -> str:
        """``text`` without what must not be shown."""
        ...


class NoopRedactor:
    """Shows everything."""

    def redact(self, text: str) -> str:
        return text


class RedactorChain:
    """One redactor after the other: secrets, then personal data."""

    def __init__(self, *redactors: RedactorProtocol) -> None:
        self._redactors = redactors

    def redact(self, text: str) -> str:
        for redactor in self._redactors:
            text = redactor.redact(text)
        return text
