"""A caller is identified by the credential alone: tenant, roles, and the name for access decisions.

The local token lets programs of this user in: a file that only they can read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import Any, Final

from context_builder.engines.home import make_home
from context_builder.errors import SettingError
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


FILE: Final = "serve.token"
_SHORTEST: Final = 32


class LocalToken:
    """Compares a credential with the token; who has it may do all, as ``writer`` for policies."""

    def __init__(self, token: str, tenant_id: str) -> None:
        self._token = token.encode()
        self._caller = local_caller(tenant_id)

    def caller(self, credential: str) -> Caller | None:
        same = compare_digest(self._token, credential.encode("utf-8", "surrogatepass"))
        return self._caller if same else None

    @property
    def digest(self) -> str:
        """Return the hash that tells this token from one made later."""
        return digest_of(self._token.decode())

    def caller_by_digest(self, digest: str) -> Caller | None:
        return self._caller if compare_digest(self.digest, digest) else None


def local_caller(tenant_id: str) -> Caller:
    """Return who this user is as a caller."""
    return caller_of(tenant_id, "local", frozenset({"admin"}), frozenset({"writer"}))


def local_token(home: Path) -> str:
    """Return the token of this home, made at first. Raises :class:`SettingError` when it cannot be kept."""
    file = make_home(home) / FILE
    try:
        if not file.exists():
            _make(file)
        if file.stat().st_mode & 0o077:
            file.chmod(0o600)
        token = file.read_text().strip()
    except (OSError, UnicodeError) as error:
        raise SettingError(f"CONTEXT_BUILDER_HOME: {file} cannot be read: {type(error).__name__}") from None
    if len(token) < _SHORTEST:
        raise SettingError(f"CONTEXT_BUILDER_HOME: {file} holds no token; delete it, and another one is made")
    return token


def _make(file: Path) -> None:
    """Write a new token whole; of several servers that start at once, the first one's stays."""
    unfinished = file.with_name(f"{file.name}.{token_hex(8)}")
    unfinished.touch(mode=0o600, exist_ok=False)
    try:
        unfinished.write_text(f"cbl_{token_urlsafe(32)}\n")
        with suppress(FileExistsError):
            os.link(unfinished, file)
    finally:
        unfinished.unlink()
