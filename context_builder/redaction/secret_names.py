"""Names such as ``dbPassword``, ``api_token`` mark their value as a secret; ``token_count`` does not."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final

HINTS: Final = (
    "pass", "pw", "secret", "token", "key", "cred", "auth", "pat", "jwt", "bearer", "webhook", "kennwort", "contrase",
    "senha", "wachtwoord", "парол", "密", "パスワード", "비밀번호", "비번", "암호", "패스워드", "hasło", "heslo",
    "lösenord", "jelszó", "şifre", "parola", "토큰", "токен", "令牌", "トークン",
)  # fmt: skip
"""Every line with the name of a secret has one of these, in lower case."""


class NameKind(IntEnum):
    """What a name says about its value; a greater kind is a surer sign of a secret."""

    UNKNOWN = 0
    HARMLESS = 1  # a public key, the length of a token, the name of a secret
    KEY = 2  # of some kind: of a cache, a map, a door
    TOKEN = 3  # or a secret, an API key, credentials
    PASSWORD = 4


_PASSWORDS: Final = (
    "password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "contraseña", "senha", "wachtwoord",
    "пароль", "密码", "密碼", "パスワード", "비밀번호", "비번", "암호", "패스워드", "hasło", "heslo",
    "lösenord", "jelszó", "şifre", "parola",
)  # fmt: skip
_PASSWORD_WORDS: Final = frozenset(("pass", "passe", "passw", "psw", "pw", "pwd"))
_KEYS: Final = (
    "access", "account", "api", "auth", "encryption", "license", "master", "private", "session", "shared", "signing",
    "subscription",
)  # fmt: skip
_TOKENS: Final = (
    "secret",
    "token",
    "토큰",
    "токен",
    "令牌",
    "トークン",
    "credential",
    *(f"{kind}key" for kind in _KEYS),
)
_TOKEN_WORDS: Final = frozenset(("auth", "authorization", "creds", "cred"))
_KEY_WORDS: Final = frozenset(("key", "keys"))
_VAGUE_WORDS: Final = frozenset(("bearer", "jwt", "pat", "webhook"))
_OTHER_WORDS: Final = (
    "bypass",
    "compass",
    "overpass",
    "surpass",
    "trespass",
    "underpass",
    "secretar",
    "secretion",
    "tokeniz",
    "tokenis",
    "passwordless",
)

_HARMLESS_BEFORE: Final = frozenset(
    "authenticity bogus bos bucket cache cancellation cls completion composite continuation csrf dummy eos example fake"
    " foreign hash hot idx input invalid mask max min mock natural next non not num output pad page partition primary"
    " prompt pub public schema sep sequence sort special stop sync total translation unique unk used xsrf".split()
)
_HARMLESS_AFTER: Final = frozenset(
    "address age alg algo algorithm alias arg args arn at audience board budget checksum class code column count"
    " counter created date digest dir directory down email enabled endpoint env event expiration expired expires"
    " expiry field file filename fingerprint folder form format frame hash header hint host id identifier ids"
    " index input issuer kind label left len length lifetime limit line link list location manager max mesh"
    " message meta min mode name names ns num number object offset owner page pair path pattern placeholder policy"
    " port position prefix pressed price prompt provider reader ref reference regex required reset right ring"
    " rotation rule scope scopes selector service signature signatures size status stone store strategy strength"
    " symbol table tag time timeout title ttl type types up updated uri url usage used user username validator"
    " variable vault version word words".split()
)
_HARMLESS_PARTS: Final = ("sha", "md5", "integrity", "cert", "rev")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+")


@lru_cache(maxsize=8192)
def kind_of_name(name: str) -> NameKind:
    """Return what a name says of its value; a word beside the telling one may say that it is no secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    kinds = [_kind_of_word(words, place) for place in range(len(words))]
    last = max((place for place, kind in enumerate(kinds) if kind), default=None)
    if last is None:
        return NameKind.UNKNOWN
    if not _HARMLESS_BEFORE.isdisjoint(words[:last]) or not _HARMLESS_AFTER.isdisjoint(words[last + 1 :]):
        return NameKind.HARMLESS
    is_vague = max(kinds) == NameKind.KEY or words[last] in _TOKEN_WORDS
    return NameKind.UNKNOWN if is_vague and last != len(words) - 1 else max(kinds)


def is_harmless(name: str) -> bool:
    """Return whether a name says that its value is public, or a checksum, however random it looks."""
    words = {word.lower() for word in _WORDS.findall(name)}
    return not words.isdisjoint(_HARMLESS_BEFORE | _HARMLESS_AFTER) or any(
        part in name.lower() for part in _HARMLESS_PARTS
    )


def _kind_of_word(words: list[str], place: int) -> NameKind:
    """Return what one word says, together with the one before it: ``api`` and ``key``."""
    word = words[place]
    if word in _PASSWORD_WORDS or word.endswith(("pass", "pwd")) or any(part in word for part in _PASSWORDS):
        return NameKind.UNKNOWN if any(part in word for part in _OTHER_WORDS) else NameKind.PASSWORD
    if word in _VAGUE_WORDS:
        return NameKind.KEY
    if word in _KEY_WORDS:
        return NameKind.TOKEN if place and words[place - 1].endswith(_KEYS) else NameKind.KEY
    if word in _TOKEN_WORDS or any(part in word for part in _TOKENS):
        return NameKind.UNKNOWN if any(part in word for part in _OTHER_WORDS) else NameKind.TOKEN
    return NameKind.UNKNOWN
