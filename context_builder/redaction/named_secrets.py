"""Secrets that have no form of their own, but a name: ``password = …``, ``"api_token": "…"``, ``the password is …``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import Final

from context_builder.redaction.secret import PLACEHOLDER, Secret, has_one_of
from context_builder.redaction.secret_values import (
    HINTS,
    NameKind,
    is_code,
    is_dummy,
    is_label,
    is_like_a_password,
    is_mixed,
    is_random,
    is_random_key,
    is_sequential,
    kind_of_name,
)

SECRET_KINDS: Final = {NameKind.PASSWORD: "PASSWORD", NameKind.TOKEN: "KEY", NameKind.KEY: "KEY"}
NAME: Final = re.compile(
    r"(?:(?:access|api|auth|client|encryption|license|private|secret|signing|wi-?fi|wlan|wpa\d?)\s"
    r"(?=key|token|secret|pass|credential)|pass\s(?=phrase))?(?:p[a4@][s5$]{2}w[o0]rd(?![\w.$-])|[^\W\d][\w.$-]{0,80})",
    re.IGNORECASE,
)

# Between a name and its value. Each part is bounded, so that a line takes a time linear in its length.
_CLOSED: Final = r"(?=[\\\"'`\])*])(?:\\{0,3}[\"'`]|[\])]|\*{1,3}){0,3}"
_IN_ENTRY: Final = r"[\"'],?\s{0,4}[\"']?(?i:value|val|v)[\"']?(?=\s{0,3}[=:])"  # <add key="name" value="…">
_TYPED: Final = (
    r"(?:\[\w{0,8}\])?"
    r"(?:\s{0,2}:\s{0,2}[A-Za-z&][\w&<>\[\]. |]{0,24}?(?=\s{0,3}=)|\s[A-Za-z*&][\w*&<>\[\]:.]{0,20}(?=\s{0,3}=))?"
)
_IS: Final = (
    r"(?i:is|was|remains|reads|becomes|es|est|ist|lautet|heißt|är|jest|to|è|é)"
    r"(?:\s{1,2}(?i:now|still|(?:set|changed|reset)\sto)(?![^\s:]))?"
)
_OPERATOR: Final = (
    r"(?P<compared>[!=]={1,2}|\|\||\?\?|(?<=[)\]]\s)or(?=\s[\"']))|(?P<assigned>:{1,3}=|[?+.|]{0,2}=>?)"
    rf"|(?P<told>:(?:\*{{1,3}}(?=\s))?|(?<=\s){_IS}(?=[\s:])\s{{0,4}}:?)"
    r"|(?P<dashed>(?<=\s)(?:(?:-{1,8}>?|[–—→|])(?=\s)|\((?=[^\s()\"'`,]{6,128}\))))"
    r"|(?P<called>\()|(?P<listed>,)|(?P<element>>)"
)
_WRAPPED: Final = (
    r"(?:(?:[@$bfruBFRUL]{1,2}|[\w.:\[\]]{0,30}(?:[Ss]tr(?:ing)?|from|bytes?|Secret\w{0,8})\()(?=[\"'`]))?"
)
_QUOTED: Final = (
    r"\\{0,3}(?:\"(?P<double>[^\"]{1,1000}?)\\{0,3}\"|'(?P<single>[^']{1,1000}?)\\{0,3}'|`(?P<back>[^`]{1,1000})`"
    r"|[“‘](?P<curly>[^”’]{1,1000})[”’])"
)
_RUN: Final = r"[^\s\"'`,;<&\\]"
_BETWEEN_RUNS: Final = r"(?:<(?!/)|\\(?![nrtu\"'`\\])|[,;&](?![\s\"'`\\]|\w{1,40}\s{0,2}[=:]|$))"
_BARE: Final = rf"\\{{0,3}}[\"'`“‘]?(?P<bare>{_RUN}{{1,128}}(?:{_BETWEEN_RUNS}{_RUN}{{0,64}}){{0,8}})"
_REST_OF_BARE: Final = re.compile(rf"{_RUN}*")
_AFTER_NAME: Final = re.compile(
    rf"(?:{_IN_ENTRY}|{_CLOSED}|{_TYPED})\s{{0,8}}(?:{_OPERATOR})\s{{0,8}}{_WRAPPED}(?:{_QUOTED}|{_BARE})"
)
_BESIDE_NAME: Final = re.compile(rf"\s{{0,4}}{_QUOTED}(?P<stated>\s{{0,2}};)?")
_TOLD_LATER: Final = re.compile(  # the password of the door is …
    rf"\s(?i:for|of|in|on|to|at)(?:\s[\w@./'’-]{{1,40}}){{1,4}}?(?:\s{_IS}\s|\s?:\s?)(?:{_QUOTED}|{_BARE})"
)
_SENTENCE: Final = re.compile(r"(?:[^.!?]|[.!?](?!\s)){0,60}")
_WORD: Final = re.compile(r"(?<![^\s()])[^\s\"'`,;:<>()\[\]{}=]{8,256}")
"""What may be a generated secret in a sentence that speaks of one."""
_MOST_WORDS: Final = 3
_LONGEST_WORD: Final = 256
_BEFORE_ON_OWN_LINE: Final = 200
_ON_OWN_LINE: Final = re.compile(r"\s{1,8}(?P<bare>[^\s\"'`,;<]{4,256})\s{0,8}$")
_BESIDE_AT_END: Final = re.compile(r"\s(?P<bare>[^\s\"'`,;:<>()=]{8,64}?)[.!?]?\s{0,8}$")
_AFTER_FLAG: Final = re.compile(r"\s{1,4}(?P<bare>[^\s\"'`,;<-][^\s\"'`,;<]{3,256})")
_BEFORE_NAME: Final = re.compile(
    r"(?P<quote>[\"'`])(?P<value>(?:(?!(?P=quote)).){4,200})(?P=quote)\s{0,4}[!=]={1,2}\s{0,4}(?P<name>[\w.$-]{2,80})"
)

_GLUED: Final = re.compile(  # scripts without blanks between words
    r"(?:密码|密碼|パスワード|비밀번호|비번|암호|패스워드)[是为為はがを은는이가]{0,2}\s{0,2}(?![:=])(?P<bare>[!-~]{4,128})"
)
_TOLD_FIRST: Final = re.compile(  # … is the password
    r"(?<![^\s(\"'“‘])(?P<bare>[^\s\"'`,;<>()“”‘’]{6,128})[\"'”’]?\s(?i:is|was)\s(?i:the|my|our|your|his|her|their)\s"
    r"(?:[\w-]{1,20}\s){0,2}?(?i:password|passphrase|passcode)\b"
)

_AFTER_CODE: Final = ")]};:,"
_AFTER_TOLD: Final = ".!?)`”’"
_APOSTROPHE: Final = re.compile(r"(?<=[A-Za-z])'(?=[A-Za-z])")
_LONGEST_STRING: Final = 1000
_LEAST: Final = 4
_LEAST_TOKEN: Final = 8
_PATH: Final = re.compile(r"[\w.~-]*(?:/[\w.-]*){3,}")
_FIRST_ARGUMENT: Final = re.compile(r"\(\s{0,2}[\"'`]$")
_DASHES: Final = re.compile(r"(?:--|\s-)$")  # of an option, and of a parameter in PowerShell
_SETTERS: Final = ("ENV", "setenv", "setx")  # of a Dockerfile, of csh, of Windows
_WORD_BEFORE: Final = re.compile(r"[A-Za-z][,;]? $")


class Syntax(Enum):
    """How a value is written beside its name."""

    COMPARED = "compared"  # name == value
    ASSIGNED = "assigned"  # name = value
    TOLD = "told"  # name: value, name is value
    DASHED = "dashed"  # name - value, name -> value
    CALLED = "called"  # name("value")
    LISTED = "listed"  # name, value
    ELEMENT = "element"  # <name>value</name>
    STATED = "stated"  # name "value";
    BESIDE = "beside"  # name "value"
    FLAG = "flag"  # --name value, -Name value
    ARGUMENT = "argument"  # call("name", "value")


_VALUES: Final = frozenset(("bare", "double", "single", "back", "curly"))


def named_secrets(line: str) -> Iterator[Secret]:
    """Yield the secrets of one line that a name marks; a value that is only told must look like one."""
    if not has_one_of(HINTS, line.lower()):
        return
    at = 0
    while name := NAME.search(line, at):
        at = name.end()
        kind = kind_of_name(name.group())
        if kind >= NameKind.KEY and (secret := _value_of(line, name, kind) or _in_sentence(line, name, kind)):
            at = max(at, secret.end)
            yield secret
    for match in (*_GLUED.finditer(line), *_TOLD_FIRST.finditer(line)):
        value = _trimmed(match["bare"], Syntax.TOLD)
        if _has_letters_and_digits(value) and is_secret_value(value, NameKind.PASSWORD, Syntax.TOLD, quoted=False):
            yield Secret(match.start("bare"), match.start("bare") + len(value), SECRET_KINDS[NameKind.PASSWORD])
    for match in _BEFORE_NAME.finditer(line):
        kind = kind_of_name(match["name"])
        if kind > NameKind.KEY and is_secret_value(match["value"], kind, Syntax.COMPARED, quoted=True):
            yield Secret(*match.span("value"), SECRET_KINDS[kind])


def is_secret_value(value: str, kind: NameKind, syntax: Syntax, *, quoted: bool) -> bool:
    """Return whether a value beside a name of this kind is a secret, and not a dummy, a path or a piece of code."""
    value = PLACEHOLDER.sub("§", value)
    if len(value) < _LEAST or is_dummy(value) or _PATH.fullmatch(value):
        return False
    if not quoted and is_code(value.rstrip(_AFTER_CODE)):
        return False
    if kind == NameKind.KEY:
        return is_random_key(value)
    if syntax == Syntax.ARGUMENT:
        return len(value) >= _LEAST_TOKEN and is_like_a_password(value) and not is_label(value) and " " not in value
    if syntax == Syntax.LISTED:
        return is_random(value)
    if syntax == Syntax.DASHED:  # talk goes on behind a dash: one word with letters and digits, or a random one
        return _has_letters_and_digits(value) if kind == NameKind.PASSWORD else is_random(value)
    if not quoted and syntax in (Syntax.COMPARED, Syntax.CALLED):
        return False
    return (_is_password if kind == NameKind.PASSWORD else _is_token)(value, syntax, quoted=quoted)


def _has_letters_and_digits(value: str) -> bool:
    """Return whether a value is one word of letters and digits, and no label such as ``ticket-12``."""
    has_both = any(map(str.isalpha, value)) and any(map(str.isdigit, value))
    return has_both and is_like_a_password(value) and " " not in value and not is_label(value)


def _is_password(value: str, syntax: Syntax, *, quoted: bool) -> bool:
    """Return whether a value is a password; one in quotes may be a phrase."""
    if syntax in (Syntax.ASSIGNED, Syntax.STATED, Syntax.ELEMENT):
        return True
    return is_like_a_password(value) or (quoted and syntax in (Syntax.COMPARED, Syntax.TOLD))


def _is_token(value: str, syntax: Syntax, *, quoted: bool) -> bool:
    """Return whether a value is a token: one word, no sequence, and no label unless it was assigned."""
    if len(value.split()) > 1:
        return False
    if syntax in (Syntax.ASSIGNED, Syntax.STATED, Syntax.ELEMENT):
        is_token = is_like_a_password(value) or (quoted and len(value) >= _LEAST_TOKEN)
    else:
        is_token = is_like_a_password(value) and (quoted or (len(value) >= _LEAST_TOKEN and not is_label(value)))
    return is_token and not is_sequential(value)


def _value_of(line: str, name: re.Match[str], kind: NameKind) -> Secret | None:
    """Return the secret that a name has, if any."""
    start, end = name.start(), name.start() + len(name.group().rstrip(".-"))
    match, syntax = _match_after(line, start, end)
    if match is None or _is_in_talk(line, name, syntax):
        return None
    group = next(way for way, value in match.groupdict().items() if value and way in _VALUES)
    quoted = group != "bare"
    if quoted and line[start - 1 : start] == "/":
        return None  # the end of a path
    begun, ended = match.span(group)
    if not quoted:
        ended = begun + len(_trimmed(match["bare"], syntax))
    value = line[begun:ended]
    if value == line[start:end] or (syntax == Syntax.ELEMENT and not line.startswith("</", ended)):
        return None
    if syntax == Syntax.CALLED and not _is_value_given(line[start:end]):
        return None
    if not is_secret_value(value, kind, syntax, quoted=quoted):
        return None
    rest = _REST_OF_BARE.match(line, ended) if not quoted and ended == match.end("bare") else None
    return Secret(begun, rest.end() if rest else ended, SECRET_KINDS[kind])


def _match_after(line: str, start: int, end: int) -> tuple[re.Match[str] | None, Syntax]:
    """Return what follows the name from ``start`` to ``end``, and how it is written."""
    match = _AFTER_NAME.match(line, end)
    if match and not match["bare"] and _closes_a_string(line, match.start(match.lastgroup or 0) - 1):
        return None, Syntax.TOLD
    if match and match["listed"] and not match["bare"] and _FIRST_ARGUMENT.search(line, max(0, start - 4), start):
        return match, Syntax.ARGUMENT
    if match:
        return match, next(syntax for syntax in Syntax if match.groupdict().get(syntax.value))
    is_quoted = line[start - 1 : start] in ('"', "'", "`") and line.startswith(line[start - 1], end)
    if not is_quoted and (match := _BESIDE_NAME.match(line, end)):
        return match, Syntax.STATED if match["stated"] else Syntax.BESIDE
    if start <= _BEFORE_ON_OWN_LINE and line[:start].isspace() and (match := _ON_OWN_LINE.match(line, end)):
        return match, Syntax.TOLD
    is_set = _DASHES.search(line, max(start - 2, 0), start) or line[: min(start, 12)].strip() in _SETTERS
    if is_set and (match := _AFTER_FLAG.match(line, end)):
        return match, Syntax.FLAG
    return _TOLD_LATER.match(line, end), Syntax.TOLD


def _closes_a_string(line: str, place: int) -> bool:
    """Return whether the quote at ``place`` ends a string that began before the name: ``"password: " + name``."""
    quote, begun = line[place], max(0, place - _LONGEST_STRING)
    if line[place - 1 : place] == "\\":
        return bool(line.count("\\" + quote, begun, place - 1) % 2)
    apostrophes = _APOSTROPHE.findall(line, begun, place) if quote == "'" else ()
    return bool((line.count(quote, begun, place) - line.count("\\" + quote, begun, place) - len(apostrophes)) % 2)


def _is_in_talk(line: str, name: re.Match[str], syntax: Syntax) -> bool:
    """Return whether ``pass`` is the verb: another word is before it, or what is passed stands beside it."""
    if name.group().lower() != "pass":
        return False
    return syntax == Syntax.BESIDE or bool(_WORD_BEFORE.search(line, max(0, name.start() - 8), name.start()))


def _is_value_given(called: str) -> bool:
    """Return whether a call takes the secret, like ``secret("…")``; ``token.of("…")`` does not."""
    return kind_of_name(called.removesuffix(".assign").rpartition(".")[2]) > NameKind.KEY


def _trimmed(bare: str, syntax: Syntax) -> str:
    """Return an unquoted value without what belongs to the sentence or the list around it."""
    if syntax == Syntax.LISTED:
        return bare.partition(",")[0]
    return bare.rstrip(_AFTER_TOLD) if syntax in (Syntax.TOLD, Syntax.DASHED) else bare


def _in_sentence(line: str, name: re.Match[str], kind: NameKind) -> Secret | None:
    """Return the first word after a name, in the same sentence, that looks generated; a password may end the line."""
    if kind == NameKind.PASSWORD and (beside := _BESIDE_AT_END.match(line, name.end())):
        value = beside["bare"]
        if _has_letters_and_digits(value) and sum(map(str.isdigit, value)) > 1 and not is_code(value):
            return Secret(*beside.span("bare"), SECRET_KINDS[kind])
    sentence = _SENTENCE.match(line, name.end())
    if kind == NameKind.KEY or name.group().lower() == "pass" or sentence is None:
        return None
    for word in islice(_WORD.finditer(line, name.end(), sentence.end() + _LONGEST_WORD), _MOST_WORDS):
        value = word.group().rstrip(_AFTER_TOLD)
        if word.start() >= sentence.end():
            break
        is_cut_off = word.group().endswith(("..", "…"))
        looks_generated = is_mixed(value) or is_mixed(value.rpartition("/")[2])
        if looks_generated and not is_cut_off and not is_dummy(value) and not _PATH.fullmatch(value):
            return Secret(word.start(), word.start() + len(value), SECRET_KINDS[kind])
    return None
