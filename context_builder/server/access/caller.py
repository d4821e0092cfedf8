"""A caller is identified by the credential alone: tenant, roles, and the name for access decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from context_builder.knowledge.governance import Agent


class CredentialKind(StrEnum):
    """Says what a credential is."""

    KEY = "key"
    JWT = "jwt"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class CredentialReference:
    """Refers to a credential. ``name`` is an API key's id, or the key that a JWT is signed with; ``digest`` a hash.

    Of a JWT, which nobody else keeps, it says what was verified: ``tenant_id``, ``sub``, ``roles``, and the epoch
    second at which it expires.
    """

    kind: CredentialKind
    name: str | None
    digest: str
    tenant_id: str = ""
    sub: str = ""
    roles: tuple[str, ...] = ()
    expires_at: float | None = None

    def wire(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> CredentialReference:
        return cls(**{**fields, "kind": CredentialKind(fields["kind"]), "roles": tuple(fields["roles"])})


def digest_of(credential: str) -> str:
    """Return the hash that a credential is kept as."""
    return sha256(credential.encode("utf-8", "surrogatepass")).hexdigest()


class Role(StrEnum):
    """Says what a caller may do; each includes those before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller; ``roles`` are for calls, those of ``agent`` for policies."""

    tenant_id: str
    sub: str
    roles: frozenset[Role]
    agent: Agent

    def may(self, needed: Role) -> bool:
        """Return whether a role of the caller is or includes ``needed``."""
        return any(role.rank >= needed.rank for role in self.roles)


def caller_of(tenant_id: str, sub: str, roles: frozenset[str], policy_roles: frozenset[str] | None = None) -> Caller:
    """Return the caller; role names that are no :class:`Role` count for policies alone."""
    known = frozenset(role for role in Role if role.value in roles)
    agent = Agent(tenant_id, roles if policy_roles is None else policy_roles, sub, oversees=Role.ADMIN in known)
    return Caller(tenant_id, sub, known, agent)
