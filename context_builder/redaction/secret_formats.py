"""Keys and tokens that show by their form what they are are found here.

The formats are in ``secret_formats.toml``, each with its source.
"""

from __future__ import annotations

import json
import re
import tomllib
import zlib
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64Error
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any, Final

from context_builder.redaction.secret import Secret
from context_builder.redaction.secret_values import entropy

_BEGINS: Final = r"(?:(?<![A-Za-z0-9_+])|(?<=\\[nrt])|(?<=%[0-9A-F][0-9A-F]))"
"""Where a token may begin: not within a word, but right behind an escaped line break or a URL-encoded sign."""

_REST_OF_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/=-]{0,4000}")
_BEFORE: Final = 80
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

    def find(self, line: str) -> Iterator[Secret]:
        """Yield the secrets of this format in ``line``."""
        at = 0
        while match := self.compiled.search(line, at):
            start, end = match.span(match.lastindex or 0)
            rest = _REST_OF_TOKEN.match(line, end)
            end = rest.end() if rest else end
            at = max(match.end(), end, at + 1)
            is_named = not self.named or self._named.search(line, max(0, start - _BEFORE), start)
            if is_named and self._is_secret(match[match.lastindex or 0]):
                yield Secret(start, end, self.kind)

    @cached_property
    def _named(self) -> re.Pattern[str]:
        """Return what stands before a secret of this format that needs a name: one with a keyword in it."""
        return re.compile(rf"(?i:{'|'.join(map(re.escape, self.keywords))}){_AFTER_KEYWORD}")

    def _is_secret(self, token: str) -> bool:
        """Return whether a token is one, and not a dummy such as ``ghp_xxxx``."""
        if self.checksum == "crc32" and has_checksum(token):
            return True
        if self.checksum == "header" and not has_header(token):
            return False
        return not self.min_entropy or (entropy(token) >= self.min_entropy and not _DUMMY.search(token))


def formatted_secrets(line: str) -> Iterator[Secret]:
    """Yield the secrets in one line that their form gives away."""
    lower = line.lower()
    for form in dict.fromkeys(form for keyword, form in _formats_by_keyword() if keyword in lower):
        yield from form.find(line)


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


@cache
def _formats_by_keyword() -> tuple[tuple[str, SecretFormat], ...]:
    return tuple((keyword, form) for form in secret_formats() for keyword in form.keywords)


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
