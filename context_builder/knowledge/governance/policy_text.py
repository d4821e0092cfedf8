"""A policy text is split into Cedar's tokens, and refused if passing it to Cedar's parser would not be safe.

Cedar recurses over nested expressions without a limit: some hundred brackets inside one another overflow the stack,
which ends the process. So depth and number of operators are limited here, on the tokens that Cedar's own lexer makes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from context_builder.errors import PolicyError

MAX_BYTES: Final = 65_536
"""Bytes of UTF-8 of one policy text."""

MAX_DEPTH: Final = 24
"""Brackets of any kind inside one another. On a stack of 1 MB, Cedar overflows between 30 and 100."""

MAX_OPERATORS: Final = 200
"""Operators of one policy, attribute accesses, conditions and ``if`` among them; on 1 MB, 300 are still safe."""

_LEXEMES: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n\r]*)
      | (?P<token>"(?:\\.|[^"\\])*"|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|\?[A-Za-z_][A-Za-z0-9_]*
        |::|==|!=|<=|>=|&&|\|\||[-+*/%!=<>@.,;:(){}\[\]])""",
    re.VERBOSE,
)
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_OPERATORS: Final = frozenset("== != <= >= && || < > = + - * / % ! . [ in like has is if then else when unless".split())
_LONGEST_MESSAGE: Final = 300
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Token:
    """Holds one token, and where it begins, in characters from the text's beginning."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class TokenizedPolicies:
    """Holds a text of policies under its name, cut into tokens; ``policies`` has those of each policy, in order."""

    name: str
    text: str
    policies: tuple[tuple[Token, ...], ...]

    @classmethod
    def read(cls, name: str, text: str) -> TokenizedPolicies:
        """Return the text in tokens.

        Raises :class:`PolicyError` where it is too large, too deep, or has characters that begin no token.
        """
        if half := _SURROGATE.search(text):
            raise policy_error(name, text, half.start(), "half of a surrogate pair")
        if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
            raise PolicyError(name, 1, 1, f"larger than {MAX_BYTES:,} bytes")
        policies: list[tuple[Token, ...]] = []
        policy: list[Token] = []
        depth = operators = 0
        for token in _tokens(name, text):
            policy.append(token)
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            operators += token.text in _OPERATORS
            if depth > MAX_DEPTH:
                raise policy_error(name, text, token.start, f"more than {MAX_DEPTH} brackets inside one another")
            if operators > MAX_OPERATORS:
                raise policy_error(name, text, token.start, f"more than {MAX_OPERATORS} operators in one policy")
            if token.text == ";":
                policies.append(tuple(policy))
                policy = []
                depth = operators = 0
        if policy:  # without its ";", which Cedar's parser will miss
            policies.append(tuple(policy))
        return cls(name, text, tuple(policies))

    def error(self, at: int, message: str) -> PolicyError:
        """Return the error of this text at a place, in characters from the beginning."""
        return policy_error(self.name, self.text, at, message)


def policy_error(name: str, text: str, at: int, message: str) -> PolicyError:
    """Return the error with the line and column of a place; both begin at 1, columns count characters."""
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + "…"
    return PolicyError(name, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at), message)


def attributes_read(policy: Sequence[Token], variable: str, known: frozenset[str]) -> frozenset[str]:
    """Return which of the ``known`` attributes of ``context`` or ``resource`` the policy's conditions may read: all of
    them where that is not plain to see."""
    read: set[str] = set()
    words = [token.text for token in policy]
    conditions = words.index("{") if "{" in words else len(words)
    for place in range(conditions, len(words)):
        if words[place] == variable:
            match words[place + 1 : place + 4]:
                case ["." | "has", name, *_] | ["[", name, "]"] if name.strip('"') in known:
                    read.add(name.strip('"'))
                case _:
                    return known
    return frozenset(read)


def names_sources(policy: Sequence[Token]) -> bool:
    """Return whether the policy may name a source by its ref, as in ``resource == Source::"artifact:protocol"``."""
    words = [token.text for token in policy]
    return any(pair == ("Source", "::") for pair in pairwise(words))


def _tokens(name: str, text: str) -> list[Token]:
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _LEXEMES.match(text, at)
        if found is None:
            what = "a string that does not end" if text[at] == '"' else f"invalid character {text[at]!a}"
            raise policy_error(name, text, at, what)
        if found["token"]:
            tokens.append(Token(found["token"], at))
        at = found.end()
    return tokens
