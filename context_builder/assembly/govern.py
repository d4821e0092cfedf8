"""What may be shown: redaction, before anything is counted or kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from context_builder.assembly.tally import Message
from context_builder.redaction.redactor import NoopRedactor, RedactorProtocol

WITHHELD: Final = "[withheld: it could not be redacted]"

_CACHED_TEXTS: Final = 4_096


@dataclass(frozen=True, slots=True)
class Ruling:
    """A text as it may be shown; None when it may not be. ``altered`` says what was done to it, if anything."""

    text: str | None
    altered: str = ""


class Governor:
    """Sends every text through a redactor, once; what the redactor fails at is withheld, never let through."""

    def __init__(self, redactor: RedactorProtocol) -> None:
        self._free = isinstance(redactor, NoopRedactor)
        self._redactor = redactor
        self._ruling = lru_cache(maxsize=_CACHED_TEXTS)(self._ask)

    def text(self, text: str) -> Ruling:
        """The ruling on one text."""
        if self._free:
            return Ruling(text)
        ruling = self._ruling(text)
        if ruling.text is None:
            self._ruling.cache_clear()  # the next turn asks again: the failure may have passed
        return ruling

    def message(self, message: Message) -> tuple[Message, str]:
        """A chat message as it may be shown, and what was done to it: texts inside of other values are redacted too."""
        if self._free:
            return message, ""
        notes: dict[str, None] = {}
        ruled = {key: value if key == "role" else self._value(value, notes) for key, value in message.items()}
        return ruled, ", ".join(notes)

    def _value(self, value: Any, notes: dict[str, None]) -> Any:
        if isinstance(value, str):
            ruling = self.text(value)
            if ruling.altered:
                notes[ruling.altered] = None
            return WITHHELD if ruling.text is None else ruling.text
        if isinstance(value, Mapping):
            return {key: self._value(inner, notes) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner, notes) for inner in value]
        return value

    def _ask(self, text: str) -> Ruling:
        try:
            redacted = self._redactor.redact(text)
        except Exception as error:  # noqa: BLE001 a redactor of any kind; whatever stops it, the text stays here
            return Ruling(None, f"withheld: the redactor failed with {type(error).__name__}")
        if not isinstance(redacted, str):
            return Ruling(None, f"withheld: the redactor returned {type(redacted).__name__}")
        return Ruling(redacted, "" if redacted == text else "redacted")
