"""Masking of personal data: mail addresses, phone, card and bank account numbers, SSNs, IP addresses.

Needs the extra ``pii``. Found by the pattern recognizers of Presidio (Microsoft, MIT), called directly: without
its engine no language model is needed. Nothing is downloaded. Mail addresses and phone numbers are also found as people
say them and speech recognition writes them: ``nine eight oh…``, ``ann dot lee at mail dot com``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final, NamedTuple

from context_builder.errors import require_extra
from context_builder.redaction.pii_in_parts import Checks, mail_addresses_in_parts, numbers_in_parts
from context_builder.redaction.readings import Reading, readings

_BEFORE: Final = 48
_SSN_SAID: Final = re.compile(r"\b(?:social|ssn|security)\b", re.IGNORECASE)

PRECEDENCE: Final = ("EMAIL_ADDRESS", "IBAN_CODE", "CREDIT_CARD", "IP_ADDRESS", "US_SSN", "PHONE_NUMBER")
"""Which kind wins where two are found in one place: the one with more checks behind it."""


class PiiSpan(NamedTuple):
    """Marks ``text[start:end]`` as this kind of personal data; kinds are named as Presidio names them."""

    start: int
    end: int
    kind: str


def apart(findings: Iterable[PiiSpan]) -> list[PiiSpan]:
    """Return the findings in order, none overlapping another: by precedence, then the longer one."""
    kept: list[PiiSpan] = []
    for found in sorted(findings, key=lambda one: (PRECEDENCE.index(one.kind), one.start - one.end)):
        place = bisect_left(kept, found)
        before_ends = place == 0 or kept[place - 1].end <= found.start
        if before_ends and (place == len(kept) or found.end <= kept[place].start):
            kept.insert(place, found)
    return kept


_NAMES: Final = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_WORDS: Final = {name: str(digit) for digit, name in enumerate(_NAMES)} | {"oh": "0"}
_DIGIT: Final = rf"(?:\d|\b(?:{'|'.join(DIGIT_WORDS)})\b)"
_RUN: Final = re.compile(
    rf"(?<![\w.$€£])(?<!\d,)\+?\(?{_DIGIT}(?:[ ./()-]{{0,3}}{_DIGIT}){{6,}}(?![\w%])", re.IGNORECASE
)
_SAID: Final = re.compile(rf"\b(?:{'|'.join(DIGIT_WORDS)})\b|\d", re.IGNORECASE)

_ROW: Final = re.compile(r"[^\w\n]{0,8}\d(?:[^\w\n]{1,8}\d){4,63}[^\w\n]{0,8}", re.ASCII)
"""A line of single digits with signs between them."""
_LONGEST_ROW: Final = 600
_FEWEST_ROWS: Final = 3
_MORE_OR_LESS: Final = 2
"""Digits by which the rows of a table may differ."""
_AFTER: Final = 10
_CARD: Final = re.compile(r"\b(?:card|credit|debit|cc|visa|mastercard|amex|maestro)\b", re.IGNORECASE)
_PHONE: Final = re.compile(
    r"\b(?:(?:tele|cell)?phone|mobile|cell|call(?:ing|ed)?|dial|fax|tel|whatsapp|sms|text me|reach(?:ed)?|contact"
    r"|answering|voicemail|messages?|registered)\b",
    re.IGNORECASE,
)
_LINE_OF: Final = re.compile(r"[\s-]{0,3}(?:office|fax|mobile|home|work|cell)\b", re.IGNORECASE)

_SPOKEN_MAIL: Final = re.compile(
    r"\b(?!(?:me|us|him|her|them|you|it) at )(?:[\w+-]{1,64} (?:dot|underscore|dash|hyphen|plus) ){0,4}[\w+-]{1,64}"
    r" at [\w-]{1,64}(?:(?: dot |\.)[\w-]{1,24}){1,4}\b(?! (?:dot|at)\b|\.\w)",
    re.IGNORECASE,
)
_SIGNS: Final = re.compile(
    r"\s{0,2}[\[({<]\s?(?:(?P<at>at|@|ät|arroba|klammeraffe)|dot|\.|punkt|punto|point)\s?[\])}>]\s{0,2}", re.IGNORECASE
)
"""The signs of a mail address as they are written for people: ``[at]``, ``(dot)``."""

_NO_NAME: Final = re.compile(
    r"(?:apply|arriv|ask|availab|bas|book|bought|build|built|buy|check|click|download|found|glanc|go|host|learn|liv|log|look"
    r"|meet|more|met|order|page|point|post|purchas|read|regist|search|see|seen|shop|sho[pw]|sign|site|sold|star|start|stay"
    r"|stor|subscrib|visit|watch|web|work)(?:e|ed|es|s|ing|ped|ping|er|le|ing|up|in|site)?"
    r"|down|here|in|it|live|now|on|out|over|stuff|that|there|things?|this|today|up|was|is|are|were|be|been|good|bad|great",
    re.IGNORECASE,
)
"""Words before an ``at`` that tell where something is, and are not names."""
_DOMAIN_ENDS: Final = (
    r"(?:com|org|net|edu|gov|info|biz|io|ai|dev|app|eu|uk|us|de|fr|ch|at|nl|be|es|it|pt|se|no|dk|fi|pl|cz"
    r"|ie|in|jp|cn|ru|br|mx|au|nz|ca|za|example|test)"
)
_DOMAIN_SAID: Final = re.compile(rf" dot {_DOMAIN_ENDS}$", re.IGNORECASE)
_DOMAIN: Final = r"(?:[\w-]{{1,63}}\.){{1,4}}{}(?![\w-])"
_KNOWN_DOMAIN: Final = re.compile(_DOMAIN.format(_DOMAIN_ENDS), re.IGNORECASE)
_ANY_DOMAIN: Final = re.compile(_DOMAIN.format("[a-z]{2,24}"), re.IGNORECASE)
_MAIL_SAID: Final = re.compile(r"\b(?:e ?-?mail|mail|address|write|reach|contact|id)\b", re.IGNORECASE)


def numbers(text: str) -> Iterator[PiiSpan]:
    """Yield card and phone numbers among the runs of digits, in figures or in words."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        digits = "".join(DIGIT_WORDS.get(one.lower(), one) for one in _SAID.findall(match.group()))
        before = text[max(0, start - _BEFORE) : start]
        if _is_in_table(text, start, end) and not (_CARD.search(before) or _PHONE.search(before)):
            continue
        if _is_card(digits, before):
            yield PiiSpan(start, end, "CREDIT_CARD")
        elif len(digits) <= 15 and (
            _PHONE.search(before) or _LINE_OF.match(text[end : end + _AFTER]) or _is_spelled(match.group(), digits)
        ):
            yield PiiSpan(start, end, "PHONE_NUMBER")


def mail_addresses(text: str) -> Iterator[PiiSpan]:
    """Yield mail addresses spelled in words.

    They have a dot before the ``at``, words of mail before them, or a domain that is spelled out behind a name.
    """
    for match in _SPOKEN_MAIL.finditer(text):
        name, _, _ = match.group().partition(" at ")
        is_said = " " in name or _MAIL_SAID.search(text[max(0, match.start() - _BEFORE) : match.start()])
        if is_said or (_DOMAIN_SAID.search(match.group()) and not _NO_NAME.fullmatch(name)):
            yield PiiSpan(*match.span(), "EMAIL_ADDRESS")


def with_signs(reading: Reading) -> Reading:
    """Return the reading with signs for such as ``[at]``; itself without any."""
    return reading.replaced((*sign.span(), "@" if sign["at"] else ".") for sign in _SIGNS.finditer(reading.text))


_DIGIT_BY_DIGIT: Final = re.compile(
    r"(?<![\w+])[+\d](?P<between>[^A-Za-z0-9+]{1,8})(?:[\d-](?P=between)){8,24}\d(?![\w+])"
)
"""Signs of a number with the same others between all of them."""
_NUMBER_IN_DIGITS: Final = re.compile(
    r"\+\d{8,15}|\d{3}-\d{2}-\d{4}|3[47]\d{13}|(?:4\d|5[1-5]|6[05]|2[2-7])\d{14}", re.ASCII
)
"""Phone, social security and card numbers by how they begin: other digits are a list of numbers."""


def _is_in_table(text: str, start: int, end: int) -> bool:
    """Return whether a number is a row of single digits, among three or more with about as many: one in ten has a
    card's checksum by chance. Two rows may be a number that is said again, or a card's with its expiry date.
    """
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    size = _digits_of_row(text, first, last if last >= 0 else len(text))
    if not size:
        return False
    rows, at = 1, first
    while at and rows < _FEWEST_ROWS:
        above = text.rfind("\n", max(0, at - 1 - _LONGEST_ROW), at - 1) + 1
        if abs(_digits_of_row(text, above, at - 1) - size) > _MORE_OR_LESS:
            break
        rows, at = rows + 1, above
    while last >= 0 and rows < _FEWEST_ROWS:
        below = text.find("\n", last + 1, last + 2 + _LONGEST_ROW)
        if abs(_digits_of_row(text, last + 1, below if below >= 0 else len(text)) - size) > _MORE_OR_LESS:
            break
        rows, last = rows + 1, below
    return rows == _FEWEST_ROWS


def _digits_of_row(text: str, first: int, last: int) -> int:
    """Return how many digits a line has that is a row of single ones; 0 for any other."""
    if last - first > _LONGEST_ROW or not _ROW.fullmatch(text, first, last):
        return 0
    return sum(map(str.isdigit, text[first:last]))


def _digit_by_digit(reading: Reading) -> Reading:
    """Return the reading with numbers put together that are written digit by digit; itself without any."""
    found = []
    for spelled in _DIGIT_BY_DIGIT.finditer(reading.text):
        if _is_in_table(reading.text, *spelled.span()) and not _CARD.search(
            reading.text, max(0, spelled.start() - _BEFORE), spelled.start()
        ):
            continue
        number = spelled.group()[:: 1 + len(spelled["between"])]
        if _NUMBER_IN_DIGITS.fullmatch(number) and ("-" in number or "+" in number or luhn(number)):
            found.append((*spelled.span(), number))
    return reading.replaced(found)


def _is_card(digits: str, before: str) -> bool:
    """Return whether 12 to 19 digits (ISO/IEC 7812) are called a card, or 14 and more pass its checksum."""
    if not 12 <= len(digits) <= 19:
        return False
    return bool(_CARD.search(before)) or (len(digits) >= 14 and luhn(digits))


def _is_spelled(run: str, digits: str) -> bool:
    """Return whether a number was said digit by digit; it is a phone number more often than anything else."""
    return len(digits) >= 9 and len(_SAID.findall(run)) == len(run.split())


def luhn(digits: str) -> bool:
    """Return whether the checksum of card numbers (ISO/IEC 7812-1, annex B) holds; a run of one digit has none."""
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits)))
    return len(set(digits)) > 1 and sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


REGIONS: Final = ("US", "GB", "DE", "FR", "IN", "IL", "CA", "BR", "AU", "ES", "IT")
"""Countries whose national phone numbers are known; those with a ``+`` are, of all."""

_WINDOW: Final = 4096
_OVERLAP: Final = 256
"""Characters: a long text is looked at in overlapping windows; a recognizer's time grows faster than its text."""

_LEAST_SCORE: Final = 0.4
_MAIL: Final = re.compile(
    r"(?<![\w.+-])[\w!#$%&'*+/=?^`{|}~-][\w.!#$%&'*+/=?^`{|}~-]{0,63}@(?:[\w-]{1,63}\.)+[\w-]{2,63}"
)
_DATE: Final = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4}")
_WORTH_A_LOOK: Final = re.compile(rf"\d|@|::|\b(?:at|{'|'.join(DIGIT_WORDS)})\b", re.IGNORECASE)
_LEAST_PHONE_DIGITS: Final = 7
_EXTENSION: Final = r"(?:E?XT(?:ENSI(?:O\u0301?|[Óó]))?N?|X|INT|ANEXO)[^\dA-Z]{0,16}"
_ENOUGH_DIGITS: Final = re.compile(rf"(?:\d[^\dA-Z]{{0,16}}(?:{_EXTENSION})?){{{_LEAST_PHONE_DIGITS - 1}}}\d")
"""Every phone number has so many digits, with signs or the name of an extension between them at most."""
_SINGLE_DIGITS: Final = re.compile(r"(?:(?<![\dA-Z])\d[^\dA-Z+]{1,4}){20,}")
"""Single digits, more than a number has: a list, in which the matcher would look for a number at each place."""
_UPPER: Final = str.maketrans(ascii_lowercase, ascii_uppercase)


class PiiRedactor:
    """Puts ``<KIND>`` in place of personal data, such as ``<EMAIL_ADDRESS>``."""

    def __init__(self, regions: Sequence[str] = REGIONS) -> None:
        """Load the analyser; raises :class:`~context_builder.errors.MissingExtra` when the extra is not installed."""
        require_extra("pii", "presidio_analyzer", "masking personal data")
        from phonenumbers import PhoneNumberMatcher
        from presidio_analyzer import predefined_recognizers as known

        self._recognizers: dict[str, Any] = {
            "IBAN_CODE": known.IbanRecognizer(),
            "CREDIT_CARD": known.CreditCardRecognizer(),
            "IP_ADDRESS": known.IpRecognizer(),
            "US_SSN": known.UsSsnRecognizer(),
        }
        iban = self._recognizers["IBAN_CODE"]
        self._checks = Checks(
            is_iban=lambda text: bool(iban.validate_result(text.upper())),
            is_card=lambda text: 13 <= len(text) <= 19 and text.isdigit() and luhn(text),
            card_said=lambda before: bool(_CARD.search(before)),
            phone_said=lambda before: bool(_PHONE.search(before)),
        )
        self._phone_matcher = PhoneNumberMatcher
        self._regions = tuple(regions)

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
        others = (with_signs(read[-1]), *map(_digit_by_digit, read))
        return apart(
            PiiSpan(*reading.place(one.start, one.end), one.kind)
            for reading in (*read, *(one for one in others if not any(one is known for known in read)))
            for one in chain(self._in_windows(reading.text), self._in_parts(reading.text))
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
        upper = text.translate(_UPPER)
        for kind, recognizer in self._recognizers.items():
            for found in recognizer.analyze(upper, [kind], None):
                if found.score >= _LEAST_SCORE or (kind == "US_SSN" and _said(text, found.start)):
                    yield PiiSpan(found.start, found.end, kind)
        yield from self._phone_numbers(upper)

    def _in_parts(self, text: str) -> Iterator[PiiSpan]:
        for start, end in mail_addresses_in_parts(text, _KNOWN_DOMAIN, _ANY_DOMAIN):
            yield PiiSpan(start, end, "EMAIL_ADDRESS")
        for start, end, kind in numbers_in_parts(text, self._checks):
            yield PiiSpan(start, end, kind)

    def _phone_numbers(self, text: str) -> Iterator[PiiSpan]:
        text = _SINGLE_DIGITS.sub(lambda listed: "A" * (len(listed.group()) - 1) + " ", text)
        for region in self._regions if _ENOUGH_DIGITS.search(text) else ():
            for found in self._phone_matcher(text, region, min_candidate_length=_LEAST_PHONE_DIGITS):
                if _is_phone(found.raw_string):
                    yield PiiSpan(found.start, found.end, "PHONE_NUMBER")


def _is_phone(written: str) -> bool:
    """Return whether a number that has the form of a phone number is long enough, and not a date."""
    return sum(map(str.isdigit, written)) >= _LEAST_PHONE_DIGITS and not _DATE.fullmatch(written)


def _said(text: str, start: int) -> bool:
    """Return whether the words before say that a number is a social security number."""
    return bool(_SSN_SAID.search(text[max(0, start - _BEFORE) : start]))
