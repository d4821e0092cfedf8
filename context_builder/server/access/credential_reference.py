"""A credential reference is enough to check whether a credential is still valid, but cannot be used as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any


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
