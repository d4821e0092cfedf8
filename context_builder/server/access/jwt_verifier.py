"""A JWT (RFC 7519) identifies the caller if a key of the set signed it: claims ``tenant``, ``roles`` and ``sub``.

A JSON Web Key Set (RFC 7517) gives the public keys: from a file, or from a URL. Only asymmetric keys for signatures
count, and only their public half; each verifies by its own kind of algorithm.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import jwt
import orjson
import structlog

from context_builder.clock import Clock, SystemClock
from context_builder.errors import SettingError
from context_builder.server.access.caller import Caller, caller_of

log = structlog.get_logger(__name__)

HOLDS_FOR: Final = 300.0
"""Seconds after which a URL is asked again."""

COOLDOWN: Final = 10.0
"""Least seconds between two requests, however many unknown keys are named."""

TIMEOUT: Final = 3.0
MOST_BYTES: Final = 1_000_000
_LEAST_RSA_BITS: Final = 2048

_PUBLIC: Final = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
_ALGORITHMS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("RSA", ""): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
    ("OKP", "Ed448"): ("EdDSA",),
}


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key and the algorithms that it may verify."""

    key: Any
    algorithms: tuple[str, ...]


Keys = Mapping[str | None, VerificationKey]


class KeySet(Protocol):
    """Gives the key of a name; the only key there is, where a token names none."""

    async def find(self, name: str | None) -> VerificationKey | None: ...


def read_keys(text: bytes | str) -> Keys:
    """Return the usable keys of a set by their name. Raises :class:`ValueError` when it is not a set, or has none."""
    try:
        listed = orjson.loads(text)["keys"]
        keys = {one.get("kid"): key for one in listed if (key := _verification_key(one)) is not None}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        raise ValueError("is not a JSON Web Key Set") from None
    if not keys:
        raise ValueError("holds no public key for signatures (RSA of 2,048 bits, EC or Ed25519)")
    return keys


def _verification_key(described: Mapping[str, Any]) -> VerificationKey | None:
    kind = described.get("kty")
    curve = described.get("crv", "") if kind != "RSA" else ""
    algorithms = _ALGORITHMS.get((str(kind), str(curve)))
    if algorithms is None or described.get("use", "sig") != "sig":
        return None
    if "alg" in described:
        algorithms = tuple(one for one in algorithms if one == described["alg"])
    public = {"kty": kind, **{name: described.get(name) for name in _PUBLIC[str(kind)]}}
    try:
        key = jwt.PyJWK(public, algorithm=algorithms[0]).key if algorithms else None
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    if key is None or (kind == "RSA" and key.key_size < _LEAST_RSA_BITS):
        return None
    return VerificationKey(key, algorithms)


def _chosen(keys: Keys, name: str | None) -> VerificationKey | None:
    if name is None and len(keys) == 1:
        return next(iter(keys.values()))
    return keys.get(name) if name is not None else None


class FileKeySet:
    """Reads the set from a file, again when that changes. Raises :class:`SettingError` at first for another file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read_as: tuple[int, int] | None = None
        self._keys: Keys = {}
        try:
            self._refresh()
        except OSError as error:
            raise SettingError(f"AUTH_JWKS_FILE: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise SettingError(f"AUTH_JWKS_FILE: {error}") from None

    async def find(self, name: str | None) -> VerificationKey | None:
        try:
            self._refresh()
        except (OSError, ValueError) as error:  # half written, perhaps
            log.warning("jwks.unread", error=type(error).__name__)
        return _chosen(self._keys, name)

    def _refresh(self) -> None:
        status = self._file.stat()
        if (state := (status.st_mtime_ns, status.st_size)) != self._read_as:
            self._keys, self._read_as = read_keys(self._file.read_bytes()), state


class UrlKeySet:
    """Fetches the set from a URL, again when it is old or a key is not in it. While the server fails, the last one
    holds; without one, no token is verified."""

    def __init__(self, fetch: Callable[[], Any], clock: Clock | None = None) -> None:
        self._fetch = fetch
        self._clock = clock or SystemClock()
        self._keys: Keys = {}
        self._asked_at = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def find(self, name: str | None) -> VerificationKey | None:
        age = self._clock.now().monotonic - self._asked_at
        if age > HOLDS_FOR or _chosen(self._keys, name) is None:
            await self._refresh(HOLDS_FOR if _chosen(self._keys, name) else COOLDOWN)
        return _chosen(self._keys, name)

    async def _refresh(self, older_than: float) -> None:
        async with self._one_at_a_time:
            now = self._clock.now().monotonic
            if now - self._asked_at <= older_than:
                return
            self._asked_at = now
            try:
                self._keys = read_keys(await self._fetch())
            except ValueError as error:
                log.warning("jwks.unread", error=str(error))


def fetch_from(url: str) -> Callable[[], Any]:
    """Return a function that fetches ``url``, bounded in time and size; it raises :class:`ValueError`."""

    async def fetch() -> bytes:
        import httpx

        from context_builder.storage.bounded_http import BoundedClient

        try:
            async with BoundedClient(most_bytes=MOST_BYTES, seconds=TIMEOUT) as client:
                answer = await client.get(url)
        except httpx.HTTPError as error:
            raise ValueError(f"AUTH_JWKS_URL cannot be reached: {type(error).__name__}") from None
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"AUTH_JWKS_URL answers {answer.status_code}")
        return answer.content

    return fetch


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
