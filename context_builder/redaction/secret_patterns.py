"""Secrets in one line of text are found by their form, by their name, in addresses, or by their randomness."""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from binascii import Error as NotBase64Error
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final

from context_builder.redaction.named_secrets import named_secrets
from context_builder.redaction.readings import readings
from context_builder.redaction.secret import PLACEHOLDER, Secret, has_one_of
from context_builder.redaction.secret_formats import formatted_secrets
from context_builder.redaction.secret_names import is_harmless
from context_builder.redaction.secret_values import is_dummy, is_like_a_password, is_random_without_context

LIKE_A_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9_+/=.:~-])(?=[A-Za-z0-9_+/=.:~-]{12})[A-Za-z+/.:-]*(?:[0-9_=~]|(?<=[A-Z]{2}))"
)
"""What almost every line with a key has: 12 characters of keys, with a digit, a sign or two capitals among them."""

_SHORT_SECRETS: Final = (
    "authorization", "identified ", "securestring", " login ", "mysql", "sshpass", "redis-cli", "networkcredential(",
    "directoryentry(", "psexec", "sqlcmd ", "bcp ", "ldap", "mongo", "pass:",
)  # fmt: skip
"""Words of lines in which a format is looked for without that."""

_IN_ADDRESS: Final = re.compile(r"://[^\s:/\"'<>]{0,100}:([^\s\"'<]{1,200})@(?=[\w.\[-])")
_PORT: Final = re.compile(r"\d{1,5}(?:/.*)?", re.DOTALL)
_USER_OPTION: Final = re.compile(
    r"(?<!\S)(?:-u|--user|--proxy-user)(?:=|\s{0,5})[\"']?(?P<user>[^\s:\"']{0,100})[\"']?:"
    r"(?!//)[\"']?(?P<password>[^\s\"']{0,200})"
)
_LEAST_WITHOUT_DIGITS: Final = 8
_MOST_SAID_AGAIN: Final = 8

_RANDOM: Final = re.compile(r"(?<![\w+/.%@:&?#~$§\\-])[A-Za-z0-9+/_-]{32,128}={0,2}(?![\w+/=-])")
_NO_SECRET: Final = re.compile(r"sha\d|AAAA|pk_(?:live|test)", re.IGNORECASE)  # a digest, a public key
_NAME_BEFORE: Final = re.compile(
    r"([\w.$-]{1,80})[\"'`\])]{0,3}(?:,?\s{1,4}[\"']?(?i:value)[\"']?)?\s{0,3}[:=>,]{0,3}\s{0,3}[\"'`@]{0,2}(?:ssh-\w{1,10}\s)?$"
)
_BEFORE: Final = 110
_BASE64: Final = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{20,4000}={0,2}(?![A-Za-z0-9+/=_-])")


def secrets_in(line: str, *, without_context: bool = True) -> list[Secret]:
    """Return the secrets of one line in order, none overlapping another; placeholders are none.

    ``without_context`` also finds those that only look random.
    """
    found = [
        Secret(*reading.place(one.start, one.end), one.kind)
        for reading in readings(line)
        for one in chain(by_form(reading.text, without_context=without_context), named_secrets(reading.text))
    ]
    if not found:
        return found
    found = list(_outside_placeholders(line, found))
    return _merged((*found, *_said_again(line, found)))


def by_form(line: str, *, without_context: bool) -> Iterator[Secret]:
    """Yield the secrets that their form gives away; ``without_context`` also those that only look random."""
    if "://" in line or "-u" in line:
        yield from _in_addresses(line)
    if not LIKE_A_KEY.search(line) and not has_one_of(_SHORT_SECRETS, line.lower()):
        return
    yield from formatted_secrets(line)
    yield from _encoded(line)
    if without_context:
        yield from _random(line)


def _in_addresses(line: str) -> Iterator[Secret]:
    """Yield the passwords in ``scheme://user:password@host``, and of the option ``-u user:password``."""
    for match in _IN_ADDRESS.finditer(line):
        if not is_dummy(match[1]) and not _PORT.fullmatch(match[1]):
            yield Secret(*match.span(1), "BASIC_AUTH_CREDENTIALS")
    for match in _USER_OPTION.finditer(line):
        user, password = match["user"], match["password"]
        value = password or user
        is_long = len(password) >= _LEAST_WITHOUT_DIGITS and password != user
        if (is_long or is_like_a_password(value)) and not is_dummy(value):
            yield Secret(*match.span("password" if password else "user"), "BASIC_AUTH_CREDENTIALS")


def _random(line: str) -> Iterator[Secret]:
    """Yield what looks so random that it can be nothing else, unless the word before says that it is public."""
    for match in _RANDOM.finditer(line):
        value = match.group()
        if not is_random_without_context(value) or _NO_SECRET.match(value) or _decoded(value).startswith("{"):
            continue
        before = line[max(0, match.start() - _BEFORE) : match.start()]
        name = _NAME_BEFORE.search(before)
        is_in_address = "://" in before.rpartition(" ")[2]
        if not is_in_address and not (name and is_harmless(name[1])):
            yield Secret(*match.span(), "KEY")


def _encoded(line: str) -> Iterator[Secret]:
    """Yield what has a secret in it when decoded from base64."""
    for match in _BASE64.finditer(line):
        text = _decoded(match.group())
        found = next(chain(formatted_secrets(text), named_secrets(text)), None) if text else None
        if found:
            yield Secret(*match.span(), found.kind)


def _decoded(encoded: str) -> str:
    """Return what is encoded in base64, in either alphabet; empty if that is no readable text."""
    decode = urlsafe_b64decode if "-" in encoded or "_" in encoded else b64decode
    digits = encoded.rstrip("=")
    try:
        text = decode(digits + "=" * (-len(digits) % 4)).decode("ascii")
    except (NotBase64Error, UnicodeDecodeError):
        return ""
    return text if text.replace("\n", "").isprintable() else ""


def _outside_placeholders(line: str, found: Iterable[Secret]) -> Iterator[Secret]:
    """Yield the parts of secrets that no placeholder covers."""
    spans = [match.span() for match in PLACEHOLDER.finditer(line)]
    ends = [ended for _, ended in spans]
    for start, end, kind in found:
        at = start
        for begun, ended in islice(spans, bisect_right(ends, start), None):
            if begun >= end:
                break
            yield Secret(at, begun, kind)
            at = ended
        yield Secret(at, end, kind)


def _said_again(line: str, found: list[Secret]) -> Iterator[Secret]:
    """Yield the other places where a line has one of the first secrets in it."""
    values = {line[one.start : one.end]: one.kind for one in found[:_MOST_SAID_AGAIN] if one.end - one.start >= 8}
    for value, kind in values.items():
        at = -1
        while (at := line.find(value, at + len(value) if at >= 0 else 0)) >= 0:
            yield Secret(at, at + len(value), kind)


def _merged(found: Iterable[Secret]) -> list[Secret]:
    """Return the secrets in order; those that overlap are one, of the kind of the first and longest."""
    merged: list[Secret] = []
    for secret in sorted(found, key=lambda one: (one.start, -one.end)):
        if secret.start >= secret.end:
            continue
        if merged and secret.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Secret(last.start, max(last.end, secret.end), last.kind)
        else:
            merged.append(secret)
    return merged
