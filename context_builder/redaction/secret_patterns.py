"""Where secrets are in one line of text.

The formats of keys and tokens come from the detectors of ``detect-secrets`` (Yelp, Apache 2.0), and from a short
list of newer ones. Left out of it are those for a file's variables and for random strings, which take much of
plain talk for secrets, and two whose patterns need quadratic time on text made for it (npm, OpenAI).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final

_DETECTORS: Final = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
    "cloudant": "CloudantDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector",
    "ibm_cos_hmac": "IbmCosHmacDetector",
    "mailchimp": "MailchimpDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "softlayer": "SoftlayerDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}

_IN_GROUP: Final = frozenset({"aws", "basic_auth", "cloudant", "ibm_cloud_iam", "ibm_cos_hmac", "softlayer"})
"""Detectors whose last group is the secret; what stands before it tells where it belongs, and stays."""

_NEWER: Final = (
    ("API_KEY", r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}"),
    (
        "AWS_SECRET_KEY",
        r"(?i:\baws|\bsecret[ _]?(?:access[ _]?)?key).{0,40}?"
        r"(?<![A-Za-z0-9/+=])(?![0-9a-f]{40}\b)([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    ("GITHUB_TOKEN", r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("GOOGLE_API_KEY", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("GOOGLE_TOKEN", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("HUGGING_FACE_TOKEN", r"\bhf_[A-Za-z0-9]{30,}"),
    ("JSON_WEB_TOKEN", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,3}"),
    ("NPM_TOKEN", r"\bnpm_[A-Za-z0-9]{36}|(?<=:_authToken=)[A-Za-z0-9-]{8,}"),
    ("SLACK_TOKEN", r"\bxapp-[A-Za-z0-9-]{20,}"),
    ("STRIPE_KEY", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("BEARER_TOKEN", r"(?i:\bbearer\s{1,4})([A-Za-z0-9._~+/=-]{16,})"),
)

_NAMED: Final = (
    r"(?i:(?P<password>pass(?:word|wd|phrase|code)|pwd|(?<![a-z])pw(?![a-z]))|secret|token|api[ _-]?key|access[ _-]?key"
    r"|secret[ _-]?key|auth[ _-]?key|private[ _-]?key|client[ _-]?secret|credentials?)\w{0,20}[\"'\]]{0,2}"
)
_VALUE: Final = (
    r"(?:\"(?P<double>[^\"]{4,})\"|'(?P<single>[^']{4,})'|`(?P<back>[^`]{4,})`|[“‘](?P<curly>[^”’]{4,})[”’]"
    r"|[\"'`“‘]?(?P<bare>[^\s\"',;]{4,}))"
)
_ASSIGNED: Final = re.compile(rf"{_NAMED}\s{{0,4}}(?::=|=>|={{1,3}})\s{{0,4}}{_VALUE}")
_TOLD: Final = re.compile(rf"{_NAMED}(?:\s{{1,4}}(?i:is|was)(?=[\s:])\s{{0,4}}:?|\s{{0,4}}:)\s{{0,4}}{_VALUE}")
_NAMES: Final = ("pass", "pw", "secret", "token", "key", "credential")
_LIKE_A_KEY: Final = re.compile(r"[A-Za-z0-9_+/=.:-]{16}|://")
"""What every line with a key in it has: a run of 16 characters of keys, or an address; most lines have neither."""

_PLACEHOLDER: Final = re.compile(r"§§secret\([^)\s]{0,64}\)")
_REST_OF_TOKEN: Final = re.compile(r"[A-Za-z0-9_+/=-]*")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret's place in a line, and what it is."""

    start: int
    end: int
    kind: str


def secrets_in(line: str) -> list[Secret]:
    """The secrets of one line in order, none overlapping another; placeholders are none."""
    found = sorted((*_formats(line), *_named(line)), key=lambda secret: (secret.start, -secret.end))
    apart: list[Secret] = []
    for secret in found:
        if apart and secret.start < apart[-1].end:
            last = apart[-1]
            apart[-1] = Secret(last.start, max(last.end, secret.end), last.kind)
        else:
            apart.append(secret)
    return apart


def load() -> None:
    """Import the detectors now."""
    _patterns()


def _formats(line: str) -> Iterator[Secret]:
    if not _LIKE_A_KEY.search(line):
        return
    for kind, pattern, in_group in _patterns():
        at = 0
        while match := pattern.search(line, at):
            start, end = match.span(match.lastindex if in_group and match.lastindex else 0)
            rest = _REST_OF_TOKEN.match(line, end)
            at = max(match.end(), rest.end() if rest else end)
            yield Secret(start, rest.end() if rest else end, kind)


def _named(line: str) -> Iterator[Secret]:
    """What is called a password, a key or a token; what is only told must look like one."""
    lower = line.lower()
    if not any(name in lower for name in _NAMES):
        return
    held = [match.span() for match in _PLACEHOLDER.finditer(line)]
    for pattern in (_ASSIGNED, _TOLD):
        for match in pattern.finditer(line):
            kind = "PASSWORD" if match["password"] else "KEY"
            start, end = match.span(str(match.lastgroup))
            if pattern is _TOLD and match["bare"]:
                end = start + len(match["bare"].rstrip(".!?)`”’"))
            is_phrase = kind == "PASSWORD" and not match["bare"]
            for begun, ended in _outside(held, start, end):
                value = line[begun:ended]
                if _looks_made_up(value) if pattern is _TOLD and not is_phrase else _says(value):
                    yield Secret(begun, ended, kind)


def _outside(held: Sequence[tuple[int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretches from ``start`` to ``end`` that no placeholder covers."""
    for begun, ended in held:
        if begun < end and start < ended:
            if start < begun:
                yield start, begun
            start = ended
    if start < end:
        yield start, end


def _says(value: str) -> bool:
    """Whether a value is one: not only the full stop or bracket after a placeholder."""
    return len(value) >= 4 or any(map(str.isalnum, value))


def _looks_made_up(word: str) -> bool:
    """Whether a word has digits or signs inside, as passwords do and words of talk do not."""
    return len(word) >= 6 and any(char.isdigit() or char in "!@#$%^&*+=_~" for char in word)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], bool], ...]:
    patterns = [(kind, re.compile(pattern), True) for kind, pattern in _NEWER]
    for module, name in _DETECTORS.items():
        detector = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        kind = re.sub(r"\W+", "_", detector.secret_type).strip("_").upper()
        patterns += [(kind, pattern, module in _IN_GROUP) for pattern in detector.denylist]
    return tuple(patterns)
