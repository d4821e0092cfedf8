"""Personal data as people say it and speech recognition writes it: ``nine eight oh…``, ``ann dot lee at mail dot com``.

:class:`PiiSpan` tells where something personal is in a text, however it was found.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from context_builder.redaction.readings import Reading

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

_BEFORE: Final = 48
_AFTER: Final = 10
_CARD: Final = re.compile(r"\b(?:card|credit|debit|cc|visa|mastercard|amex|maestro)\b", re.IGNORECASE)
_PHONE: Final = re.compile(
    r"\b(?:(?:tele|cell)?phone|mobile|cell|call(?:ing|ed)?|dial|fax|tel|whatsapp|sms|text me|reach(?:ed)?|contact"
    r"|answering|voicemail|messages?|registered)\b",
    re.IGNORECASE,
)
_LINE_OF: Final = re.compile(r"[\s-]{0,3}(?:office|fax|mobile|home|work|cell)\b", re.IGNORECASE)

_MAIL: Final = re.compile(
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
"""Words before an ``at`` that tell where something is, and are no name."""
_DOMAIN_SAID: Final = re.compile(
    r" dot (?:com|org|net|edu|gov|info|biz|io|ai|dev|app|eu|uk|us|de|fr|ch|at|nl|be|es|it|pt|se|no|dk|fi|pl|cz"
    r"|ie|in|jp|cn|ru|br|mx|au|nz|ca|za|example|test)$",
    re.IGNORECASE,
)
_MAIL_SAID: Final = re.compile(r"\b(?:e ?-?mail|mail|address|write|reach|contact|id)\b", re.IGNORECASE)


def numbers(text: str) -> Iterator[PiiSpan]:
    """Yield card and phone numbers among the runs of digits, in figures or in words."""
    for match in _RUN.finditer(text):
        start, end = match.span()
        digits = "".join(DIGIT_WORDS.get(one.lower(), one) for one in _SAID.findall(match.group()))
        before = text[max(0, start - _BEFORE) : start]
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
    for match in _MAIL.finditer(text):
        name, _, _ = match.group().partition(" at ")
        is_said = " " in name or _MAIL_SAID.search(text[max(0, match.start() - _BEFORE) : match.start()])
        if is_said or (_DOMAIN_SAID.search(match.group()) and not _NO_NAME.fullmatch(name)):
            yield PiiSpan(*match.span(), "EMAIL_ADDRESS")


def with_signs(reading: Reading) -> Reading:
    """Return the reading with signs in place of such as ``[at]``; itself without any."""
    return reading.replaced((*sign.span(), "@" if sign["at"] else ".") for sign in _SIGNS.finditer(reading.text))


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
