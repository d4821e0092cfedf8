"""Policy texts become a policy set: parsed, validated by the schema, immutable, and named by a hash of the texts.

Policies decide by the attributes of an agent, a source and the context, which are encoded for Cedar here.

A text is split into Cedar's tokens, and refused if passing it to Cedar's parser would not be safe: that recurses over
nested expressions without a limit, and some hundred brackets inside one another overflow the stack, which ends the
process. So depth and number of operators are limited here, on the tokens that Cedar's own lexer makes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import orjson

from context_builder.clock import in_utc
from context_builder.errors import PolicyError
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.governance import cedar

CONTEXT_ATTRIBUTES: Final = frozenset({"intent", "time"})
SOURCE_ATTRIBUTES: Final = frozenset(
    {"tenant", "kind", "sensitivity", "status", "project", "module", "session", "tags"}
)

_ADMIN: Final = "admin"
_SENSITIVITIES: Final = frozenset(Sensitivity)


class NotUnicode(Exception):
    """Raised for an attribute with half of a surrogate pair, which Cedar cannot be told."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The caller as the credential says; ``roles`` are Cedar's.

    One that ``oversees`` the tenant may know of everything there, as those of Cedar's role ``admin`` may.
    """

    tenant: str
    roles: frozenset[str]
    sub: str
    oversees: bool = False

    @property
    def knows_all(self) -> bool:
        """Return whether the agent may know that a source exists, whatever it is."""
        return self.oversees or _ADMIN in self.roles

    def attributes(self) -> str:
        """Return what Cedar is told of the agent, JSON. Raises :class:`NotUnicode`."""
        return _json({"tenant": self.tenant, "roles": sorted(self.roles), "sub": self.sub})


@dataclass(frozen=True, slots=True)
class GovernedSource:
    """What policies know of a source; an unknown attribute is empty.

    A ``sensitivity`` that is no :class:`~context_builder.knowledge.artifact.Sensitivity` counts as ``restricted``.
    """

    ref: str
    tenant: str
    kind: str = ""
    sensitivity: str = ""
    status: str = ""
    project: str = ""
    module: str = ""
    session: str = ""
    tags: frozenset[str] = frozenset()

    def attributes(self, read: frozenset[str] = SOURCE_ATTRIBUTES) -> str:
        """Return what Cedar is told of the source beside its ref, JSON, of the attributes that are ``read``.

        Raises :class:`NotUnicode`, for a ref too.
        """
        _json(self.ref)
        attributes = {
            "tenant": self.tenant,
            "kind": self.kind,
            "sensitivity": self.sensitivity if self.sensitivity in _SENSITIVITIES else Sensitivity.RESTRICTED,
            "status": self.status,
            "project": self.project,
            "module": self.module,
            "session": self.session,
            "tags": sorted(self.tags),
        }
        return _json({name: value for name, value in attributes.items() if name in read})


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """The purpose and the time of a request, to the millisecond; a time without an offset is local.

    ``governance`` is the version that held when the request began, where decisions may still be by that: another one
    follows by which all is decided.
    """

    intent: str
    time: datetime
    governance: int | None = None

    def attributes(self, read: frozenset[str]) -> str:
        """Return Cedar's context, JSON, of the attributes that are ``read``; half of a surrogate pair becomes ``?``.

        Cedar reads the context anew for each request, which takes half of the time where no policy reads any of it.
        """
        context: dict[str, object] = {}
        if "intent" in read:
            context["intent"] = self.intent.encode("utf-8", "replace").decode()
        if "time" in read:
            time = in_utc(self.time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            context["time"] = {"__extn": {"fn": "datetime", "arg": time}}
        return json.dumps(context)


def entity(kind: str, name: str, attributes: str) -> str:
    """Return Cedar's entity, JSON. Raises :class:`NotUnicode`."""
    return f'{{"uid": {_json({"type": kind, "id": name})}, "attrs": {attributes}, "parents": []}}'


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        raise NotUnicode from None


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
    """One token, and where it begins, in characters from the beginning of the text."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class TokenizedPolicies:
    """A text of policies under its name, split into tokens; ``policies`` has those of each policy, in order."""

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


if TYPE_CHECKING:
    import cedarpy

MAX_TEXTS: Final = 2_000
"""Policy texts of one tenant."""

MAX_POLICIES: Final = 2_000
"""Policies of one tenant, in all its texts."""

MAX_CHARACTERS: Final = 100 * MAX_BYTES
"""Characters of all of a tenant's policy texts."""

_KEPT: Final = 4_000
"""Texts that are not read again when another one of their tenant changes."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ID: Final = re.compile(r'"([A-Za-z][A-Za-z0-9._-]{0,63})"')


@dataclass(frozen=True, slots=True)
class PolicySet:
    """A tenant's policies; made by :func:`parse_policies`.

    ``version`` is ``sha256:…`` of the names and texts; ``policy_ids`` are in the order of Cedar's own ``policy0``, ….
    ``context_read`` and ``source_read`` name the attributes of the context and of sources that some policy may read.
    Unless a policy ``names_sources`` by their refs, sources that are equal in these are decided alike. Without
    ``cedar``, which another process has, nothing can be decided by it here.
    """

    version: str
    policy_ids: tuple[str, ...]
    context_read: frozenset[str]
    source_read: frozenset[str]
    names_sources: bool
    cedar: cedarpy.PolicySet | None = field(repr=False, compare=False)

    @property
    def reads_time(self) -> bool:
        """Return whether a decision may change as time goes by, so that it must not be reused."""
        return "time" in self.context_read

    @property
    def is_by_sensitivity(self) -> bool:
        """Return whether sources of one tenant and sensitivity are decided alike."""
        return not self.names_sources and self.source_read <= {"tenant", "sensitivity"}


@dataclass(frozen=True, slots=True)
class _ReadText:
    """One text that has been checked, as a policy set is made of it."""

    name: str
    text: str
    policy_ids: tuple[str, ...]
    context_read: frozenset[str]
    source_read: frozenset[str]
    names_sources: bool


@cache
def default_policies() -> Mapping[str, str]:
    """Return the policies of the start, which are named ``default``."""
    return MappingProxyType({"default": files(__package__).joinpath("default.cedar").read_text("utf-8")})


def parse_policies(texts: Mapping[str, str]) -> PolicySet:
    """Return the policy set of a tenant's texts by name; without texts it permits nothing.

    A policy's id is its text's name with its place there, from 1, or with its ``@id`` where no other policy of the text
    has the same: ``default#2``, ``default#open``. Raises :class:`PolicyError` for a text that does not parse, does not
    fit the schema, has templates or is too large, and :class:`~context_builder.errors.MissingExtra`.
    """
    cedar.require_cedar()
    named = sorted(texts.items())
    if len(named) > MAX_TEXTS:
        raise PolicyError(named[MAX_TEXTS][0], 1, 1, f"more than {MAX_TEXTS:,} policy texts")
    if sum(len(text) for _, text in named) > MAX_CHARACTERS:
        raise PolicyError(named[-1][0], 1, 1, f"more than {MAX_CHARACTERS:,} characters in all texts")
    read = [_read(name, text) for name, text in named]
    ids = tuple(one for text in read for one in text.policy_ids)
    return PolicySet(
        version="sha256:" + sha256(json.dumps(named).encode()).hexdigest(),
        policy_ids=ids,
        context_read=frozenset().union(*(text.context_read for text in read)),
        source_read=frozenset().union(*(text.source_read for text in read)),
        names_sources=any(text.names_sources for text in read),
        cedar=_read_together(read, len(ids)),
    )


@lru_cache(_KEPT)
def _read(name: str, text: str) -> _ReadText:
    if not _NAME.fullmatch(name):
        raise PolicyError(ascii(name), 1, 1, "a name has up to 128 letters, digits, dots, hyphens and underscores")
    read = TokenizedPolicies.read(name, text)
    try:
        error = _error(read)
    except cedar.CedarFailure as failure:
        raise PolicyError(name, 1, 1, str(failure)) from None
    if error is not None:
        raise error
    return _ReadText(
        name,
        text,
        tuple(_policy_ids(read)),
        frozenset().union(*(attributes_read(one, "context", CONTEXT_ATTRIBUTES) for one in read.policies)),
        frozenset().union(*(attributes_read(one, "resource", SOURCE_ATTRIBUTES) for one in read.policies)),
        any(map(names_sources, read.policies)),
    )


def _error(read: TokenizedPolicies) -> PolicyError | None:
    """Return what Cedar says against a text, at the beginning of the policy that it says it of; None if nothing."""
    if (message := cedar.parse_error(read.text)) is not None:
        for policy in read.policies:
            if (of_policy := cedar.parse_error(read.text[policy[0].start : policy[-1].end])) is not None:
                return read.error(policy[0].start, of_policy)
        return read.error(0, message)
    for policy in read.policies:
        if any(token.text.startswith("?") for token in policy):
            return read.error(policy[0].start, "templates are not supported")
    if (found := cedar.schema_error(read.text)) is not None:
        place, message = found
        return read.error(read.policies[place][0].start, message)
    return None


def _read_together(texts: list[_ReadText], count: int) -> cedarpy.PolicySet:
    """Return the policies of all texts as one set, which has ``count``. Raises :class:`PolicyError`."""
    name = texts[-1].name if texts else ""
    if count > MAX_POLICIES:
        raise PolicyError(name, 1, 1, f"more than {MAX_POLICIES:,} policies")
    try:
        together = cedar.read_policies("\n".join(text.text for text in texts))
    except cedar.CedarFailure as failure:
        raise PolicyError(name, 1, 1, str(failure)) from None
    if len(together) != count:  # ids are told by places, so each policy must be where it was counted
        raise PolicyError(name, 1, 1, f"Cedar read {len(together)} policies where {count} were written")
    return together


def _policy_ids(text: TokenizedPolicies) -> list[str]:
    annotations = [_id_annotation(policy) for policy in text.policies]
    times = Counter(annotations)
    return [
        f"{text.name}#{annotation if annotation and times[annotation] == 1 else place}"
        for place, annotation in enumerate(annotations, 1)
    ]


def _id_annotation(policy: tuple[Token, ...]) -> str | None:
    """Return the ``@id`` of a policy, if it is a plain name."""
    words = [token.text for token in policy]
    for place in range(len(words) - 4):
        if words[place] == "{":  # annotations stand before the conditions
            return None
        if words[place : place + 3] == ["@", "id", "("] and (found := _ID.fullmatch(words[place + 3])):
            return found[1]
    return None
