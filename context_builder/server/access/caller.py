"""A caller is identified by the credential alone: tenant, roles, and the name for access decisions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from context_builder.knowledge.governance import Agent


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
    """Holds a caller; ``roles`` are for calls, those of ``agent`` for policies."""

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
