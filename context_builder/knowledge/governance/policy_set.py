"""Policy texts become a policy set: parsed, validated by the schema, immutable, and named by a hash of the texts."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from context_builder.errors import PolicyError
from context_builder.knowledge.governance import cedar
from context_builder.knowledge.governance.attributes import CONTEXT_ATTRIBUTES, SOURCE_ATTRIBUTES
from context_builder.knowledge.governance.policy_text import (
    MAX_BYTES,
    Token,
    TokenizedPolicies,
    attributes_read,
    names_sources,
)

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
    """Holds a tenant's policies; made by :func:`parse_policies`.

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


@dataclass(frozen=True, slots=True)
class _ReadText:
    """Holds what a policy set is made of, for one text that has been checked."""

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
