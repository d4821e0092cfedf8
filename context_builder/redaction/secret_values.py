"""Values are classified here: random, chosen by a person, a dummy such as ``changeme``, or a piece of code.

Names such as ``dbPassword`` or ``api_token`` mark their value as a secret; ``token_count`` does not.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Final

HINTS: Final = (
    "pass", "pw", "secret", "token", "key", "cred", "auth", "pat", "jwt", "bearer", "webhook", "kennwort", "contrase",
    "senha", "wachtwoord", "парол", "密", "パスワード", "비밀번호", "비번", "암호", "패스워드", "hasło", "heslo",
    "lösenord", "jelszó", "şifre", "parola", "토큰", "токен", "令牌", "トークン", "ssw", "$$w", "55w", "mdp", "wpa",
    "psk",
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
_PASSWORD_WORDS: Final = frozenset(("mdp", "pass", "passe", "passw", "psw", "pw", "pwd"))
_KEYS: Final = (
    "access", "account", "api", "auth", "encryption", "license", "master", "private", "session", "shared", "signing",
    "subscription", "wifi", "wlan", "wpa",
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
_TOKEN_WORDS: Final = frozenset(("auth", "authorization", "creds", "cred", "psk", "wpa"))
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
_PASSWORD_DISGUISED: Final = re.compile(r"p[a4@][s5$]{2}w[o0]rd", re.IGNORECASE)
_NAME_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+")


@lru_cache(maxsize=8192)
def kind_of_name(name: str) -> NameKind:
    """Return what a name says of its value; a word beside the telling one may say that it is not a secret."""
    words = [word.lower() for word in _NAME_WORDS.findall(_PASSWORD_DISGUISED.sub("password", name))]
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
    words = {word.lower() for word in _NAME_WORDS.findall(name)}
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


_LOOKED_AT: Final = 128
"""Characters of a value that are looked at: they tell what it is, however long it goes on."""

_DUMMY_PARTS: Final = (
    "changeit", "changeme", "dummy", "example", "fake", "placeholder", "redacted", "sample", "xxxx", "****", "####",
    "0123456789abcdef", "abcdefghijklm",
)  # fmt: skip
_DUMMY_WORDS: Final = frozenset(
    "abc access account add api app auth bar blank change client confirm create credential credentials db default"
    " demo edit empty enter false fill foo foobar forgot goes here hidden hide insert key login my n na new nil no"
    " none not null old omitted optional pass passphrase passwd password pw pwd real removed replace required reset"
    " root secret see set show some string tba tbd test the this todo token true undefined unknown unset update user"
    " username value with xxx yes your yours yyy".split()
)
_DUMMY: Final = re.compile(
    r"(?:my|the|some|test|user|new|old)(?:password|passwd|pass|pwd|secret|token|apikey|key)|your[a-z]{0,20}"
    r"|(.{1,4})\1{3,}.{0,3}"  # the same few characters over and over
)
_REFERENCE: Final = re.compile(
    r"""[$%#@]?\{.*\}?  # ${NAME}, {{ name }}, %{name}
    | \$\(.* | \$\w+$ | %\w+%?$ | <[^>]*>? | \[[^\]]*\]? | \$\d?$
    | \$[A-Za-z_]\w{2,80}(?:[./:-].*)? | &lt;.*
    | <%.*%> | !\w{1,20}\s.*  # <% template %>, !Ref in YAML
    | (?:ENC|vault|op|ssm|secretsmanager|arn|env|file)[:\[(].* | \w[\w+.-]{0,30}://.*""",
    re.VERBOSE | re.DOTALL,
)
_INTERPOLATED: Final = re.compile(r"[$#%]?\{[A-Za-z_][\w.]{0,80}\}|%\(\w{1,80}\)s")
_TEMPLATE: Final = re.compile(r"[A-Za-z_:. -]*(?:(?:[$#%]?\{\w{0,80}\}|%[sdv])[A-Za-z_:. -]*){1,8}|[A-Za-z_. -]+:\s*")
"""A string that a program fills in or goes on with: ``prefix_{}``, ``Bearer %s``, ``application:``."""

_PART: Final = r"[A-Za-z_]+(?:\d{1,6}[A-Za-z_]*)?"
_CODE: Final = re.compile(
    r"\([A-Za-z].*"  # (char *) key
    rf"|[$@*&]?{_PART}(?:(?:\.|->|::){_PART}){{1,8}}"  # settings.password
    r"|[A-Za-z_$][\w$]{0,60}(?:(?:\.|->|::)[A-Za-z_]\w{0,60}){0,8}(?:\(.*|\[[\"'\w]*\]?.*)",  # load_key(), argv[1]
    re.DOTALL,
)
_VARIABLE: Final = re.compile(r"[A-Za-z_]+(?:\d{1,5}[A-Za-z_]+)?")
_LONGEST_WORD: Final = 12
_IN_VARIABLES: Final = ("auth", "credential", "key", "passw", "secret", "token")
_LABEL: Final = re.compile(r"(?:[A-Za-z]+\d{0,2}|\d+)(?:[-_.:/=&+]+(?:[A-Za-z]+\d{0,2}|\d+))+")

_WORDS: Final = re.compile(r"[A-Za-z]+|\d+")
_CASE_PARTS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DIGIT_OR_SYMBOL: Final = re.compile(r"[\d!@#$%^&*+=~]")
_LETTER_BY_DIGIT: Final = re.compile(r"[A-Za-z](?=\d)|\d(?=[A-Za-z])")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_CHARACTER_CLASSES: Final = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]"))
_DICTIONARY_WORD: Final = re.compile(r"[a-z]{9}|[A-Z]{9}")


def entropy(value: str) -> float:
    """Return Shannon's entropy of a value's characters, in bits a character."""
    value = value[:_LOOKED_AT]
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def is_dummy(value: str) -> bool:
    """Return whether a value is a stand-in: ``changeme``, ``<your key>``, ``${TOKEN}``, ``xxxx``."""
    value = value[:_LOOKED_AT].strip("\"'`") if not value.endswith(("...", "…")) else ""
    if not any(map(str.isalnum, value)) or _is_monotonous(value):
        return True
    if _REFERENCE.fullmatch(value) or _TEMPLATE.fullmatch(value):
        return True
    lower = _INTERPOLATED.sub("", value).lower()
    if _DUMMY.fullmatch(lower) or any(part in lower for part in _DUMMY_PARTS):
        return True
    words = _WORDS.findall(lower)
    return "your" in words or all(word in _DUMMY_WORDS for word in words)


def is_code(value: str) -> bool:
    """Return whether an unquoted value is a program's expression: ``settings.password``, ``load_key()``."""
    if _VARIABLE.fullmatch(value):
        is_phrase = len(value) > _LONGEST_WORD and value.islower() and "_" not in value
        return not is_phrase and any(name in value.lower() for name in _IN_VARIABLES)
    return bool(_CODE.fullmatch(value))


def is_label(value: str) -> bool:
    """Return whether a value is words and numbers joined by signs, as names and versions are: ``api-2.11.0``."""
    return bool(_LABEL.fullmatch(value)) and not _is_jumbled(value)


def is_like_a_password(value: str) -> bool:
    """Return whether a word has inner digits or symbols, or capitals anywhere, as passwords do."""
    return len(value) >= 6 and bool(_DIGIT_OR_SYMBOL.search(value) or _is_jumbled(value))


def is_mixed(value: str) -> bool:
    """Return whether a word mixes small letters, capitals and digits as generated ones do, unlike iPhone15."""
    if not all(kind.search(value) for kind in _CHARACTER_CLASSES) or is_label(value) or _CODE.fullmatch(value):
        return False
    parts = _CASE_PARTS.findall(value[:_LOOKED_AT])
    return len(_LETTER_BY_DIGIT.findall(value)) >= 3 or sum(map(len, parts)) < 3 * len(parts)


def _is_jumbled(value: str) -> bool:
    """Return whether small and capital letters change so often that they spell no words, not even joined ones."""
    parts = _CASE_PARTS.findall(value[:_LOOKED_AT])
    return len(parts) >= 5 and sum(map(len, parts)) < 3 * len(parts)


def is_random(value: str) -> bool:
    """Return whether a value is long and mixed enough to be generated; UUIDs are."""
    value = value[:_LOOKED_AT]
    return bool(_UUID.fullmatch(value)) or (
        len(value) >= 12
        and (len(_LETTER_BY_DIGIT.findall(value)) >= 3 or _is_jumbled(value))
        and entropy(value) >= 2.8
        and not is_label(value)
        and not re.search(r"\s", value)
    )


def is_random_key(value: str) -> bool:
    """Return whether a value is random enough for a vague name such as ``key``; ids (UUIDs) are not."""
    return is_random(value) and not _UUID.fullmatch(value)


def is_random_without_context(value: str) -> bool:
    """Return whether a value needs no name to be taken for a key: small and capital letters and digits, much mixed."""
    if not all(kind.search(value) for kind in _CHARACTER_CLASSES) or _DICTIONARY_WORD.search(value):
        return False
    kinds = [0 if char.islower() else 1 if char.isupper() else 2 for char in value if char.isalnum()]
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes >= 0.4 * len(kinds) and entropy(value) >= 4.0


def is_sequential(value: str) -> bool:
    """Return whether most of a value is one sequence: ``abcdef0123456789``, ``key-1234567890``."""
    value = value[:_LOOKED_AT].lower()
    run = longest = 1
    for before, after in pairwise(value):
        run = run + 1 if ord(after) - ord(before) == 1 or before + after == "90" else 1
        longest = max(longest, run)
    return longest >= 0.6 * len(value)


def _is_monotonous(value: str) -> bool:
    """Return whether one character makes up most of a value."""
    return Counter(value.lower()).most_common(1)[0][1] > 0.6 * len(value)
