"""A JWT (RFC 7519) identifies the caller if a key of the set signed it: claims ``tenant``, ``roles`` and ``sub``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import jwt

from context_builder.clock import SystemClock
from context_builder.server.access.caller import Caller, caller_of
from context_builder.server.access.key_set import KeySet

LEEWAY: Final = 2.0
"""Seconds by which a token may be used before its time, as clocks differ; its expiry holds to the second."""

SUBJECT: Final = "jwt:"
"""Begins the name of whoever shows a JWT, who so is never taken for an API key or for this machine's user."""

MOST_CHARS: Final = 16_384
MOST_ROLES: Final = 100

_NAME: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,200}")


@dataclass(frozen=True, slots=True)
class VerifiedJwt:
    """The claims of a JWT that the key ``signed_by`` signed; it expires at an epoch second."""

    caller: Caller
    signed_by: str | None
    expires_at: float


class JwtVerifier:
    """Verifies JWTs for ``audience`` by ``issuer``; both, and an expiry, must be in the token."""

    def __init__(self, keys: KeySet, audience: str, issuer: str) -> None:
        self._keys = keys
        self._audience = audience
        self._issuer = issuer

    async def caller(self, token: str) -> Caller | None:
        """Return who asks; None for a token that does not hold, for whatever reason."""
        verified = await self.verified(token)
        return None if verified is None else verified.caller

    async def has_key(self, name: str | None) -> bool:
        """Return whether what that key signed is still taken."""
        return await self._keys.find(name) is not None

    async def verified(self, token: str) -> VerifiedJwt | None:
        """Return what the token says; None for one that does not hold, for whatever reason."""
        if len(token) > MOST_CHARS or not token.isascii():
            return None
        try:
            header = jwt.get_unverified_header(token)
            name = header.get("kid")
            if "crit" in header or not (name is None or isinstance(name, str)):
                return None
            key = await self._keys.find(name)
            if key is None:
                return None
            claims = self._claims(token, key.key, key.algorithms)
            caller, expires_at = _caller(claims), float(claims["exp"])
            if caller is None or SystemClock().now().wall >= expires_at:
                return None
            return VerifiedJwt(caller, name, expires_at)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
            return None

    def _claims(self, token: str, key: Any, algorithms: tuple[str, ...]) -> dict[str, Any]:
        required = ["exp", "sub", "tenant", "aud", "iss"]
        return jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY,
            options={"require": required},
        )


def _caller(claims: dict[str, Any]) -> Caller | None:
    tenant, sub, roles = claims["tenant"], claims["sub"], claims.get("roles", [])
    if (
        not isinstance(roles, list)
        or len(roles) > MOST_ROLES
        or not all(_is_name(one) for one in (tenant, sub, *roles))
    ):
        return None
    return caller_of(tenant, f"{SUBJECT}{sub}", frozenset(roles))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
