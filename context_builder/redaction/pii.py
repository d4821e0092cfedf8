"""Masking of personal data: mail addresses, phone, card and bank account numbers, SSNs, IP addresses.

Needs the extra ``pii``. Found by the pattern recognizers of Presidio (Microsoft, MIT), called directly: without
its engine no language model is needed. Nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

from context_builder.errors import require_extra
from context_builder.redaction.readings import readings
from context_builder.redaction.spoken_pii import (
    DIGIT_WORDS,
    PiiSpan,
    apart,
    mail_addresses,
    numbers,
    with_signs,
)

REGIONS: Final = ("US", "GB", "DE", "FR", "IN", "IL", "CA", "BR", "AU", "ES", "IT")
"""Countries whose national phone numbers are known; those with a ``+`` are, of all."""

_WINDOW: Final = 4096
_OVERLAP: Final = 256
"""Characters: a long text is looked at in overlapping windows; a recognizer's time grows faster than its text."""

_LEAST_SCORE: Final = 0.4
_BEFORE: Final = 48
_SSN_SAID: Final = re.compile(r"\b(?:social|ssn|security)\b", re.IGNORECASE)
_MAIL: Final = re.compile(
    r"(?<![\w.+-])[\w!#$%&'*+/=?^`{|}~-][\w.!#$%&'*+/=?^`{|}~-]{0,63}@(?:[\w-]{1,63}\.)+[\w-]{2,63}"
)
_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4}")
_WORTH_A_LOOK: Final = re.compile(rf"\d|@|::|\b(?:at|{'|'.join(DIGIT_WORDS)})\b", re.IGNORECASE)
_LEAST_PHONE_DIGITS: Final = 7
_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)


class PiiRedactor:
    """Puts ``<KIND>`` in place of personal data, such as ``<EMAIL_ADDRESS>``."""

    def __init__(self, regions: Sequence[str] = REGIONS) -> None:
        """Load the analyser; raises :class:`~context_builder.errors.MissingExtra` when the extra is not installed."""
        require_extra("pii", "presidio_analyzer", "masking personal data")
        from presidio_analyzer import predefined_recognizers as known

        self._recognizers: dict[str, Any] = {
            "IBAN_CODE": known.IbanRecognizer(),
            "CREDIT_CARD": known.CreditCardRecognizer(),
            "IP_ADDRESS": known.IpRecognizer(),
            "US_SSN": known.UsSsnRecognizer(),
            "PHONE_NUMBER": known.PhoneRecognizer(supported_regions=tuple(regions), leniency=1),
        }

    def redact(self, text: str) -> str:
        """Return ``text`` with personal data masked."""
        shown: list[str] = []
        at = 0
        for found in self.find(text):
            shown += (text[at : found.start], f"<{found.kind}>")
            at = found.end
        return "".join((*shown, text[at:]))

    def find(self, text: str) -> list[PiiSpan]:
        """Return the personal data in ``text``, in order."""
        read = readings(text)
        signed = with_signs(read[-1])
        return apart(
            PiiSpan(*reading.place(one.start, one.end), one.kind)
            for reading in (read if signed is read[-1] else (*read, signed))
            for one in self._in_windows(reading.text)
        )

    def _in_windows(self, text: str) -> Iterator[PiiSpan]:
        for start in range(0, max(len(text) - _OVERLAP, 1), _WINDOW - _OVERLAP):
            window = text[start : start + _WINDOW]
            if _WORTH_A_LOOK.search(window):
                yield from (PiiSpan(start + one.start, start + one.end, one.kind) for one in self._within(window))

    def _within(self, text: str) -> Iterator[PiiSpan]:
        yield from numbers(text)
        yield from mail_addresses(text)
        yield from (PiiSpan(*match.span(), "EMAIL_ADDRESS") for match in _MAIL.finditer(text))
        for kind, recognizer in self._recognizers.items():
            for found in recognizer.analyze(text.translate(_UPPER), [kind], None):
                written = text[found.start : found.end]
                if found.score < _LEAST_SCORE and not (kind == "US_SSN" and _said(text, found.start)):
                    continue
                if kind != "PHONE_NUMBER" or _is_phone(written):
                    yield PiiSpan(found.start, found.end, kind)


def _is_phone(written: str) -> bool:
    """Return whether a number that has the form of a phone number is no date and long enough."""
    return sum(map(str.isdigit, written)) >= _LEAST_PHONE_DIGITS and not _DATE.fullmatch(written)


def _said(text: str, start: int) -> bool:
    """Return whether the words before say that a number is a social security number."""
    return bool(_SSN_SAID.search(text[max(0, start - _BEFORE) : start]))
