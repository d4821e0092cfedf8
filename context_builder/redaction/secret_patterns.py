"""Secrets in one line of text are found by their form, by their name, in addresses, or by their randomness.

The forms are in ``secret_formats.toml``, each with its source.
"""

from __future__ import annotations

import json
import re
import tomllib
import zlib
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64Error
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain, islice
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final

from context_builder.redaction.codes import codes_in
from context_builder.redaction.encodings import decoded_base64
from context_builder.redaction.named_secrets import named_secrets
from context_builder.redaction.pieces import in_pieces
from context_builder.redaction.readings import readings
from context_builder.redaction.secret import PLACEHOLDER, Secret, has_one_of, merged
from context_builder.redaction.secret_values import (
    entropy,
    is_dummy,
    is_harmless,
    is_like_a_password,
    is_random_without_context,
)
from context_builder.redaction.seed_phrases import seed_phrases

_BEGINS: Final = r"(?:(?<![A-Za-z0-9_+])|(?<=\\[nrt])|(?<=%[0-9A-F][0-9A-F]))"
"""Where a token may begin: not within a word, but right behind an escaped line break or a URL-encoded sign."""

_REST_OF_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/=-]{0,4000}")
_BEFORE_FORM: Final = 80
_AFTER_KEYWORD: Final = r"[\w.:-]{0,40}[\\\"'`\])]{0,4}\s{0,8}[:=?+.|>,-]{0,4}\s{0,8}[\\@\"'`]{0,3}$"
"""The rest of a name, and what may stand between it and its value."""
_LEAST_ENTROPY: Final = 2.5
_DUMMY: Final = re.compile(
    r"(?<![A-Z0-9])(?:your|example|placeholder|insert|replace|changeme|dummy|here)(?![A-Z0-9])"
    r"|(?-i:abcdefghijklmnopqrst)",
    re.IGNORECASE,
)
_BASE62: Final = digits + ascii_uppercase + ascii_lowercase
_CHECKSUM_LENGTH: Final = 6


@dataclass(frozen=True, eq=False)
class SecretFormat:
    """One format, as ``secret_formats.toml`` describes it."""

    kind: str
    pattern: str
    keywords: tuple[str, ...]
    named: bool = False
    inside: bool = False
    min_entropy: float = _LEAST_ENTROPY
    checksum: str = ""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the pattern, compiled when a text has one of its keywords for the first time."""
        return re.compile(self.pattern if self.inside else _BEGINS + self.pattern)

    @cached_property
    def anywhere(self) -> re.Pattern[str]:
        """Return the pattern without what must stand before it."""
        return re.compile(self.pattern)

    def find(self, line: str) -> Iterator[Secret]:
        """Yield the secrets of this format in ``line``."""
        at = 0
        while match := self.compiled.search(line, at):
            start, end = match.span(match.lastindex or 0)
            rest = _REST_OF_TOKEN.match(line, end)
            end = rest.end() if rest else end
            at = max(match.end(), end, at + 1)
            is_named = not self.named or self._named.search(line, max(0, start - _BEFORE_FORM), start)
            if is_named and self.is_secret(match[match.lastindex or 0]):
                yield Secret(start, end, self.kind)

    @cached_property
    def _named(self) -> re.Pattern[str]:
        """Return what stands before a secret of this format that needs a name: one with a keyword in it."""
        return re.compile(rf"(?i:{'|'.join(map(re.escape, self.keywords))}){_AFTER_KEYWORD}")

    def is_secret(self, token: str) -> bool:
        """Return whether a token is one, and not a dummy such as ``ghp_xxxx``."""
        if self.checksum == "crc32" and has_checksum(token):
            return True
        if self.checksum == "header" and not has_header(token):
            return False
        return not self.min_entropy or (entropy(token) >= self.min_entropy and not _DUMMY.search(token))


def formatted_secrets(line: str) -> Iterator[Secret]:
    """Yield the secrets in one line that their form gives away."""
    for form in dict.fromkeys(form for _, form in _all_formats().beside(line.lower())):
        yield from form.find(line)


def secrets_in_pieces(text: str) -> Iterator[Secret]:
    """Yield the secrets that their form gives away once their pieces are put together."""
    joined = _NO_KEY.sub("", text)
    if LIKE_A_KEY.search(joined):
        yield from in_pieces(text, _distinct_formats().beside(joined.lower()))


def has_checksum(token: str) -> bool:
    """Return whether the last six characters are the base-62 CRC-32 of what precedes them behind the prefix.

    Source: GitHub's blog, "Behind GitHub's new authentication token formats"; npm's tokens have the same.
    """
    body = token.rpartition("_")[2]
    rest, given = body[:-_CHECKSUM_LENGTH], body[-_CHECKSUM_LENGTH:]
    value, written = zlib.crc32(rest.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        value, digit = divmod(value, len(_BASE62))
        written = _BASE62[digit] + written
    return bool(rest) and written == given


def has_header(token: str) -> bool:
    """Return whether what is before the first dot is a JSON object in base64, as RFC 7515 has it."""
    header = token.partition(".")[0]
    try:
        return isinstance(json.loads(urlsafe_b64decode(header + "=" * (-len(header) % 4))), dict)
    except (NotBase64Error, ValueError, RecursionError):
        return False


@cache
def secret_formats() -> tuple[SecretFormat, ...]:
    """Return all formats, which are read once."""
    listed = tomllib.loads(files("context_builder.redaction").joinpath("secret_formats.toml").read_text("utf-8"))
    return tuple(map(_format_of, listed["format"]))


class _Keywords:
    """Formats by their keywords, which are looked for all at once."""

    def __init__(self, forms: Iterable[SecretFormat]) -> None:
        self._forms = [(keyword, form) for form in forms for keyword in form.keywords]
        self._places = {pair: place for place, pair in enumerate(self._forms)}
        words = {keyword for keyword, _ in self._forms}
        short = {one for one in words if not any(one != other and one.startswith(other) for other in words)}
        self._longer = {one: [pair for pair in self._forms if pair[0].startswith(one)] for one in short}
        self._pattern = re.compile(f"(?=({_any_of(short)}))")

    def beside(self, lower: str) -> list[tuple[str, SecretFormat]]:
        """Return each keyword that a text in lower case has, with its format, in the order of the formats."""
        found = [pair for one in set(self._pattern.findall(lower)) for pair in self._longer[one] if pair[0] in lower]
        return sorted(found, key=self._places.__getitem__) if len(found) > 1 else found


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern of words none of which begins another: a tree of their letters, which is fast."""
    rest: dict[str, list[str]] = {}
    for word in sorted(words):
        rest.setdefault(word[:1], []).append(word[1:])
    branches = [re.escape(letter) + (_any_of(ends) if letter else "") for letter, ends in rest.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


@cache
def _all_formats() -> _Keywords:
    return _Keywords(secret_formats())


@cache
def _distinct_formats() -> _Keywords:
    """Return the formats that need no name, nor anything around them."""
    return _Keywords(
        replace(form, keywords=kept)
        for form in secret_formats()
        if not form.named and not form.inside and (kept := tuple(one for one in form.keywords if len(one) > 2))
    )


def _format_of(entry: dict[str, Any]) -> SecretFormat:
    return SecretFormat(
        kind=entry["kind"],
        pattern=entry["pattern"],
        keywords=tuple(entry["keywords"]),
        named=entry.get("named", False),
        inside=entry.get("inside", False),
        min_entropy=entry.get("min_entropy", _LEAST_ENTROPY),
        checksum=entry.get("checksum", ""),
    )


LIKE_A_KEY: Final = re.compile(
    r"(?<![A-Za-z0-9_+/=.:~-])(?=[A-Za-z0-9_+/=.:~-]{12})[A-Za-z+/.:-]*(?:[0-9_=~]|(?<=[A-Z]{2}))"
)
"""What almost every line with a key has: 12 characters of keys, with a digit, a sign or two capitals among them."""

_NO_KEY: Final = re.compile(r"\s[^\w\s]{1,3}\s|\.{2,4}|[^A-Za-z0-9_+/=.:~-]+")

_SHORT_SECRETS: Final = (
    "authorization", "identified ", "securestring", " login ", "mysql", "sshpass", "redis-cli", "networkcredential(",
    "directoryentry(", "psexec", "sqlcmd ", "bcp ", "ldap", "mongo", "pass:", "wifi:",
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


def secrets_in(line: str, *, without_context: bool = True) -> list[Secret]:
    """Return the secrets of one line in order, none overlapping another; placeholders do not count.

    ``without_context`` also finds those that only look random.
    """
    found = [
        Secret(*reading.place(one.start, one.end), one.kind)
        for reading in readings(line)
        for one in chain(
            by_form(reading.text, without_context=without_context),
            named_secrets(reading.text),
            codes_in(reading.text),
            secrets_in_pieces(reading.text),
            seed_phrases(reading.text) if reading.text != line else (),  # of the text as it is, they are found whole
        )
    ]
    if not found:
        return found
    found = list(_outside_placeholders(line, found))
    return merged((*found, *_said_again(line, found)))


def by_form(line: str, *, without_context: bool) -> Iterator[Secret]:
    """Yield the secrets that their form gives away; ``without_context`` also those that only look random."""
    if "://" in line or "-u" in line:
        yield from _in_addresses(line)
    if not LIKE_A_KEY.search(line) and not has_one_of(_SHORT_SECRETS, line.lower()):
        return
    yield from formatted_secrets(line)
    yield from _reversed(line)
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


def _reversed(line: str) -> Iterator[Secret]:
    """Yield the secrets that their form gives away from the end to the beginning."""
    backwards = line[::-1]
    for form in dict.fromkeys(form for _, form in _distinct_formats().beside(backwards.lower())):
        for one in form.find(backwards):
            yield Secret(len(line) - one.end, len(line) - one.start, one.kind)


def _random(line: str) -> Iterator[Secret]:
    """Yield what looks so random that it can be nothing else, unless the word before says that it is public."""
    for match in _RANDOM.finditer(line):
        value = match.group()
        if not is_random_without_context(value) or _NO_SECRET.match(value) or decoded_base64(value).startswith("{"):
            continue
        before = line[max(0, match.start() - _BEFORE) : match.start()]
        name = _NAME_BEFORE.search(before)
        is_in_address = "://" in before.rpartition(" ")[2]
        if not is_in_address and not (name and is_harmless(name[1])):
            yield Secret(*match.span(), "KEY")


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
