"""A caller is identified by the credential alone: tenant, roles, and the name for access decisions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from context_builder.knowledge.governance import Agent


def digest_of(credential: str) -> str:
    """Return the hash that a credential is kept as."""
    return sha256(credential.encode("utf-8", "surrogatepass")).hexdigest()


class Role(StrEnum):
    """Says what a caller may do; each includes those before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller; ``roles`` are all that count for calls, included ones too; those of ``agent`` are for policies."""

    tenant_id: str
    sub: str
    roles: frozenset[Role]
    agent: Agent


def caller_of(tenant_id: str, sub: str, roles: frozenset[str], policy_roles: frozenset[str] | None = None) -> Caller:
    """Return the caller; role names that are not a :class:`Role` count for policies alone."""
    highest = max((place for place, role in enumerate(Role) if role.value in roles), default=-1)
    known = frozenset(list(Role)[: highest + 1])
    agent = Agent(tenant_id, roles if policy_roles is None else policy_roles, sub, oversees=Role.ADMIN in known)
    return Caller(tenant_id, sub, known, agent)


def local_caller(tenant_id: str) -> Caller:
    """Return who this user is as a caller."""
    return caller_of(tenant_id, "local", frozenset({"admin"}), frozenset({"writer"}))
