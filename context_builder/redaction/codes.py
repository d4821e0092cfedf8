"""Short secrets that people say or are sent: PINs, what is spelled, a user's name with a password, lists of codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from context_builder.redaction.pii import DIGIT_WORDS
from context_builder.redaction.secret import Secret, has_one_of
from context_builder.redaction.secret_values import is_dummy, is_label, is_like_a_password, is_mixed
from context_builder.redaction.seed_phrases import SEED_HINTS, SEED_NAME, SEED_WORD

_PIN_HINTS: Final = ("pin", "code", "otp", "cvv", "cvc", "puk", "geheimzahl", "combination")
_CODES_HINTS: Final = ("code", "key", "secret", "seed", "totp", "bitlocker", "2fa")
_HINTS: Final = (
    *_PIN_HINTS, "login", "log in", "logon", "log on", "sign in", "signin", "cred", "zugang", "wifi", "wi-fi", "wlan",
    "pass", "kennwort", "contrase", "senha", "phrase", "2fa", "mfa", "recovery", "backup", "bitlocker",
    "authenticat", "seed", "mnemonic", "bip39", "bip-39",
)  # fmt: skip
"""Every line with the name of such a secret has one of these, in lower case."""

_DIGIT: Final = rf"(?:\d|(?:(?:double|triple)\s)?(?:{'|'.join(DIGIT_WORDS)}))"
_NUMBER: Final = (
    r"(?!(?:19|20)\d\d[–-](?:19|20)?\d\d(?!\d))"  # a date, or two years
    rf"(?:\d{{4,12}}|\d{{2,4}}(?:[ -]\d{{2,4}}){{1,3}}|{_DIGIT}(?:,?[ -]{_DIGIT}){{1,11}})(?![\w%]|[.,:/–-]\d)"
)
_LEAST_DIGITS: Final = 4
_MULTIPLES: Final = {"double": 1, "triple": 2}
"""Digits that such a word adds to the one that it is said of."""
_DIGITS: Final = re.compile(rf"\d|(?:double|triple)|\b(?:{'|'.join(DIGIT_WORDS)})\b", re.IGNORECASE)
_COUNTED: Final = re.compile(
    r"[ -](?:(?P<people>people|users)|area|bytes|char(?:acter)?s|days|digits|dollars|edition|euros?|files|functions"
    r"|hours|items|lines|minutes|months|pages|percent|points|release|rows|seconds|tokens|version|words|years?)\b"
    r"(?!\s?[:=#]|\s(?:\d|(?:are|can|could|did|do|does|enter|get|had|has|have|is|know|may|might|must|need|shall|should"
    r"|use|was|were|will|would)\b))",
    re.IGNORECASE,
)
"""What behind a number tells that it is a count, a year or a place, and neither begins a sentence nor names a value."""
_EQUALS: Final = re.compile(r"(?:=|['’]s|\b(?:is|was|ist|lautet|now|still|to)):?[\s\"'`*(]{0,6}$", re.IGNORECASE)
"""Says that a code is the number behind it, which no people or users are."""
_IS: Final = (
    r"[\"'`*]{0,3}(?:\s(?:for|of|to)(?:\s(?!\d{4}(?!\s(?:is|was|ist)\b))[\w'’-]{1,20}){1,3}?)?"
    r"(?:\s{0,3}(?:[:=#|(–-]|->|→)|\s(?:is|was|ist|lautet|est|es|è)(?:\s(?:now|still|(?:set|changed|reset)\sto)|:)?"
    r"|\s(?:changed|set)\sto|['’]s(?=\s))\s{0,3}[\"'`*(]{0,2}"
)
_PIN_NAME: Final = (
    r"(?:(?:pin|(?:access|alarm|atm|card|confirmation|door|entry|entrance|garage|gate|lock|locker|lockbox|log-?in"
    r"|mfa|one[ -]time|safe|security|sign-?in|sms|two-factor|unlock|vault|verification|2fa)\s(?:pass)?"
    r"(?:pin|code|combination)|(?:code|combination)\s(?:for|of|to)\s(?:the|my|our|your)\s(?:[\w-]{1,20}\s)?(?:alarm|door|garage|gate|house|lock"
    r"|locker|lockbox|phone|safe|vault))(?:[ -](?:code|number))?|puk|t?otp|geheimzahl)"
)
_PIN: Final = re.compile(rf"\b(?<!gpio\s){_PIN_NAME}{_IS}(?P<value>(?:[A-Z]-)?{_NUMBER})", re.IGNORECASE)
_PIN_TOLD_FIRST: Final = re.compile(
    rf"(?<![\w.,:/-])(?<!ticket\s)(?<!issue\s)(?P<value>{_NUMBER})\s(?:is|was|as)\s(?:the|my|our|your|his|her|their)\s(?:[\w-]{{1,20}}\s)?"
    rf"{_PIN_NAME}\b",
    re.IGNORECASE,
)
_PIN_ENDS: Final = re.compile(rf"\b{_PIN_NAME}[\"'`*]{{0,3}}\s{{0,3}}[:|]?\s{{0,8}}$", re.IGNORECASE)
_PIN_ALONE: Final = re.compile(rf"[\s>|*#\"'`-]{{0,16}}(?P<value>{_NUMBER})[\s|*\"'`.]{{0,8}}$", re.IGNORECASE)
_PIN_BESIDE: Final = re.compile(
    rf"\b(?:PIN|(?i:(?:the|my|your|our|his|her|their|new|old)\s{_PIN_NAME}|(?!pin\b){_PIN_NAME}))\s{{1,3}}(?P<value>(?i:{_NUMBER}))"
)
_CARD_CODE: Final = re.compile(rf"\b(?:cvv2?|cvc2?)(?:{_IS}|\s{{1,3}})(?P<value>\d{{3,4}})(?!\w)", re.IGNORECASE)

_ALPHABET: Final = (
    "al[fp]ha|bravo|charlie|delta|echo|foxtrot|golf|hotel|india|juliett?|kilo|lima|mike|november|oscar|papa|quebec"
    "|romeo|sierra|tango|uniform|victor|whisk[e]?y|x-?ray|yankee|zulu"
)
_SIGN: Final = (
    rf"(?:(?:capital|(?:upper|lower)[ -]?case|small|big)\s)?(?:{_ALPHABET}|{'|'.join(DIGIT_WORDS)}|underscore|hyphen"
    r"|dash|dot|hash|star|exclamation\s(?:mark|point)|dollar(?:\ssign)?|ampersand|plus|percent|[A-Za-z0-9!#$%&*+=?@^_~])"
)
_SPELLED: Final = re.compile(
    r"\b(?:pass[ -]?(?:word|phrase|code)|passwort|kennwort|pwd?|pin|contraseña|senha|mot\sde\spasse)"
    r"(?:\s{0,2}(?:[,:=(–-]|(?:is|was|reads|goes|spelled|spelt|spelling|spells|out|as|letter\sby\sletter|ist|buchstabiert|lautet|est)\b)){1,5}\s{0,3}"
    rf"(?P<value>{_SIGN}(?:[ ,.-]{{1,3}}{_SIGN}){{3,63}})(?![\w'’])",
    re.IGNORECASE,
)

_LOGIN: Final = re.compile(
    r"\b(?:log(?:ged|ging)?[ -]?(?:in|on)|logins?|sign(?:ed)?[ -]?in|credentials?|creds|zugang(?:sdaten)?|wi-?fi|wlan)"
    r"(?:\s(?:as|with|using|via|is|are|for|of|to|the|data|details|network|user|username|mit|als)){0,4}\s{0,2}(?P<tells>[:=])?\s{0,2}"
    r"(?P<user>[\w.@+-]{2,64})(?P<between>\s{0,2}[/|:;]\s{0,2}|\s(?:and|with|und|mit)\s|,?\s)"
    r"(?P<value>[^\s\"'`,;<>()/|]{6,64})",
    re.IGNORECASE,
)
_MARKS: Final = ("/", "|", ":", ";")
"""Between a user's name and a password; words and blanks are between others too."""

_SEED_TOLD: Final = r"(?:\s(?:is|was|below|follows|here)\b|\s?\([^()]{0,40}\))"
_SEED_ENDS: Final = re.compile(
    rf"(?:^[\W_]{{0,16}}{SEED_NAME}{_SEED_TOLD}{{0,2}}|{SEED_NAME}(?:{_SEED_TOLD}{{1,2}}|{_SEED_TOLD}{{0,2}}\s{{0,3}}[:=|]))"
    r"[\s:*=|-]{0,8}$",
    re.IGNORECASE,
)
"""A line that ends with the name of a seed phrase, which stands alone or says that the phrase follows."""
_NUMBERED: Final = rf"\d{{1,2}}[.):]?\s{{0,3}}{SEED_WORD}"
_SEED_ALONE: Final = re.compile(
    rf"[\s>|*#\"'`-]{{0,16}}(?P<value>{_NUMBERED}(?:[\s,|]{{1,8}}{_NUMBERED}){{0,23}}"
    rf"|{SEED_WORD}(?:,?\s{{1,3}}{SEED_WORD}){{5,23}})[\s|*\"'`.,]{{0,8}}$",
    re.IGNORECASE,
)

_CODES_SAID: Final = r"(?=\s?[:=–-]|\s(?:is|are|was|were)\b)"
_CODES_NAME: Final = re.compile(
    r"(?<![^\W_])(?:(?:activation|authenticator|backup|emergency|licen[cs]e|mfa|one[ -]time|(?P<vague>product|setup)"
    r"|recovery|rescue|scratch|totp|two[ -]factor|2fa)[\s_-]?(?:codes?|keys?|secret|seed)|totp|2fa"
    r"|bitlocker(?:\s(?:recovery\s)?key)?)\b[\"'`*]{0,3}"
    rf"(?:\s(?:#?\d{{1,2}}{_CODES_SAID}|\([^()]{{0,40}}\)|(?:I|we|you)\s\w{{2,10}}{_CODES_SAID}"
    rf"|(?:for|of|from|to)(?:\s[\w'’.-]{{1,20}}){{1,3}}?{_CODES_SAID}))?"
    r"(?:\s{0,2}(?:[:=–-]|(?:is|are|was|were)\b)){0,3}(?=(?P<ends>[^.!?]{0,60}$)?)",
    re.IGNORECASE,
)
_CODE: Final = (
    r"(?:[A-Za-z0-9]{2}(?:[ -][A-Za-z0-9]{2}){3,31}|[A-Za-z0-9]{4}(?:[ -][A-Za-z0-9]{4}){1,11}"
    r"|[A-Za-z0-9]{5}(?:[ -][A-Za-z0-9]{5}){1,7}|[A-Za-z0-9]{6}(?:[ -][A-Za-z0-9]{6}){1,7}|[A-Za-z0-9]{6,64})(?![\w-])"
)
_NUMBER_IN_LIST: Final = r"(?:\[[ x]?\]\s{1,3}|\d{1,2}[.)]\s{1,3}|(?:un)?used:?\s{1,3})?"
_CODES: Final = re.compile(
    rf"[\s>|*#\"'`(\[~-]{{0,16}}?{_NUMBER_IN_LIST}[\"'`~]{{0,2}}(?P<value>{_CODE})", re.IGNORECASE
)
_NEXT_CODE: Final = re.compile(
    rf"[\s,;|\"'`]{{1,8}}(?:(?:and|or|und|oder|&)\s)?{_NUMBER_IN_LIST}[\"'`]?(?P<value>{_CODE})", re.IGNORECASE
)
_MOST_CODES: Final = 16
_LIST_ENDS: Final = re.compile(
    r"[\s|\"'`).,;~\]]{0,8}(?:[✓✗✔✘☑✅❌]|[(\[:→/–-]{0,2}\s?(?:already\s|not\s)?(?:(?:un)?used|spent|free|gone|left|lost|new"
    r"|old|valid|expired|done|taken|benutzt|verbraucht|frei)\b[^|]{0,30})?\s{0,4}$",
    re.IGNORECASE,
)
_WORD_WITH_NUMBER: Final = re.compile(r"\d?[A-Za-z]?[a-z]{5,}\d{1,4}")
_BASE32: Final = re.compile(r"[A-Z2-7 -]{14,99}")
_LEAST_LENGTH: Final = 8
_LONGEST_NAME: Final = 120


def codes_in(line: str) -> Iterator[Secret]:
    """Yield the PINs, spelled passwords, passwords beside a user's name and codes of one line."""
    lower = line.lower()
    if not has_one_of(_HINTS, lower):
        return
    for form in (_PIN, _PIN_TOLD_FIRST, _PIN_BESIDE, _CARD_CODE) if has_one_of(_PIN_HINTS, lower) else ():
        for match in form.finditer(line):
            if _is_pin(match):
                yield Secret(*match.span("value"), "PIN")
    for match in _SPELLED.finditer(line):
        yield Secret(*match.span("value"), "PASSWORD")
    for match in _LOGIN.finditer(line):
        value = match["value"].rstrip(".!?)")
        between = match["between"].strip()
        if _is_chosen(value, is_marked=between in _MARKS or (between == "," and bool(match["tells"]))):
            yield Secret(match.start("value"), match.start("value") + len(value), "PASSWORD")
    for name in _CODES_NAME.finditer(line):
        if found := _codes(line, name.end()):
            yield found


class CodeList:
    """Finds the codes below a line that says what they are, which are given line by line."""

    def __init__(self) -> None:
        self._is_open = False
        self._is_pin = False
        self._is_seed = False

    def secrets(self, line: str) -> Iterator[Secret]:
        """Yield the codes of the next line, if it is one of the list; any other line with words ends it."""
        if self._is_pin and (pin := _PIN_ALONE.match(line)) and _is_pin(pin):
            yield Secret(*pin.span("value"), "PIN")
        elif self._is_seed and (words := _SEED_ALONE.match(line)):
            yield Secret(*words.span("value"), "PASSWORD")
        elif self._is_open and (found := codes_alone(line)):
            yield found
        elif any(map(str.isalnum, line)):
            end = line[-_LONGEST_NAME:]
            names = _CODES_NAME.finditer(end) if has_one_of(_CODES_HINTS, end.lower()) else ()
            self._is_open = any(name["ends"] is not None and not name["vague"] for name in names)
            self._is_seed = has_one_of(SEED_HINTS, end.lower()) and bool(_SEED_ENDS.search(end))
            self._is_pin = has_one_of(_PIN_HINTS, end.lower()) and bool(_PIN_ENDS.search(end))


def codes_alone(text: str) -> Secret | None:
    """Return the codes that are all of a line or of a cell, but for whether they are used."""
    found = _codes(text, 0)
    return found if found and _LIST_ENDS.match(text, found.end) else None


def names_codes(head: str) -> bool:
    """Return whether the head of a column says that codes are below it."""
    names = _CODES_NAME.finditer(head) if has_one_of(_CODES_HINTS, head.lower()) else ()
    return any(name.end() == len(head) and not name["vague"] for name in names)


def _is_pin(found: re.Match[str]) -> bool:
    """Return whether a number beside the name of a PIN has enough digits, and counts nothing."""
    value, before = found["value"], found.string[max(0, found.start("value") - 12) : found.start("value")]
    if sum(_MULTIPLES.get(digit.lower(), 1) for digit in _DIGITS.findall(value)) < (
        3 if found.re is _CARD_CODE else _LEAST_DIGITS
    ):
        return False
    counted = _COUNTED.match(found.string, found.end("value"))
    return not counted or bool(counted["people"] and _EQUALS.search(before))


def _codes(line: str, start: int) -> Secret | None:
    """Return the codes at ``start``, up to the last one, as one secret; what is listed between them is of them."""
    first = code = _CODES.match(line, start)
    end = 0
    for _ in range(_MOST_CODES):
        if code is None:
            break
        is_code, at = _is_code(code["value"]), code.end()
        end = at if is_code else end
        code = _NEXT_CODE.match(line, at)
        if code and not is_code and line[at : code.start("value")].isspace():
            break
    return Secret(first.start("value"), end, "KEY") if first and end else None


def _is_code(value: str) -> bool:
    """Return whether a code has digits, and is not a word with a number, or has the letters of base32 alone."""
    if len(value) < _LEAST_LENGTH or _WORD_WITH_NUMBER.fullmatch(value):
        return False
    return any(map(str.isdigit, value)) or bool(_BASE32.fullmatch(value))


def _is_chosen(value: str, *, is_marked: bool) -> bool:
    """Return whether a word behind a user's name is a password; if no sign is between them it must look generated."""
    if is_dummy(value) or is_label(value) or not is_like_a_password(value):
        return False
    return is_mixed(value) or (is_marked and any(map(str.isalpha, value)) and sum(map(str.isdigit, value)) > 1)
