"""The authenticator determines a credential's kind and passes it to the verifier of that kind.

The local token lets programs of this user in: a file that only they can read.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import Any, Final

from context_builder.clock import Clock, SystemClock
from context_builder.engines.home import make_home
from context_builder.errors import SettingError
from context_builder.server.access.api_keys import key_id_of
from context_builder.server.access.caller import Caller, caller_of, digest_of, local_caller
from context_builder.server.access.jwt_verifier import JwtVerifier


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


API_KEY = "cbk_"


def account_of(credential: str) -> str:
    """Return whose credential it claims to be: an API key's id, and of anything else what kind it is."""
    if credential.startswith(API_KEY):
        return key_id_of(credential) or API_KEY
    return "jwt" if credential.count(".") == 2 else "local"


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Knows API keys, also by their digests, and, where there are such, JWTs and the local token.

    Raises :class:`~context_builder.errors.DatabaseUnavailable` when the database of keys does not answer.
    """

    keys: CachedKeys
    tokens: JwtVerifier | None = None
    local: LocalToken | None = None
    key_digests: CachedKeys | None = None

    async def caller(self, credential: str) -> Caller | None:
        """Return who asks; None for a credential that does not hold, whatever the reason."""
        if self.local is not None and (caller := self.local.caller(credential)) is not None:
            return caller
        if credential.startswith(API_KEY):
            return await self.keys.caller(credential)
        return await self.tokens.caller(credential) if self.tokens is not None else None

    async def reference(self, credential: str) -> CredentialReference | None:
        """Return a reference to a credential, by which :meth:`caller_of` tells who asks for as long as it holds; None
        for one that does not hold.
        """
        if await self.caller(credential) is None:
            return None
        if self.local is not None and self.local.caller(credential) is not None:
            return self.local_reference()
        digest = digest_of(credential)
        if credential.startswith(API_KEY):
            return CredentialReference(CredentialKind.KEY, key_id_of(credential), digest)
        jwt = await self.tokens.verified(credential) if self.tokens is not None else None
        if jwt is None:
            return None
        tenant_id, sub, roles = jwt.caller.tenant_id, jwt.caller.sub, tuple(sorted(jwt.caller.agent.roles))
        return CredentialReference(CredentialKind.JWT, jwt.signed_by, digest, tenant_id, sub, roles, jwt.expires_at)

    def local_reference(self) -> CredentialReference | None:
        """Return a reference to the local token; None where that lets nobody in."""
        return None if self.local is None else CredentialReference(CredentialKind.LOCAL, None, self.local.digest)

    async def caller_of(self, reference: CredentialReference) -> Caller | None:
        """Return who asks by a credential that was referred to; None once it no longer holds."""
        match reference.kind:
            case CredentialKind.LOCAL:
                return None if self.local is None else self.local.caller_by_digest(reference.digest)
            case CredentialKind.KEY:
                named = f"{reference.name}:{reference.digest}"
                return None if self.key_digests is None else await self.key_digests.caller(named)
            case CredentialKind.JWT:
                expires_at = reference.expires_at or 0.0
                if self.tokens is None or SystemClock().now().wall >= expires_at:
                    return None
                if not await self.tokens.has_key(reference.name):
                    return None
                return caller_of(reference.tenant_id, reference.sub, frozenset(reference.roles))


HOLDS_FOR: Final = 0.5
"""Seconds for which an answer counts, so that a change on another server takes effect within a second."""

MOST: Final = 4_096
"""Keys that are remembered, those that nobody has included."""


@dataclass(frozen=True, slots=True)
class _Answer:
    asked_at: float
    caller: asyncio.Future[Caller | None]


class CachedKeys:
    """Remembers what ``look_up`` answers, counted from when it was asked; those who ask together ask once.

    Keys are remembered by their hash. An error is not remembered.
    """

    def __init__(self, look_up: Callable[[str], Awaitable[Caller | None]], clock: Clock | None = None) -> None:
        self._look_up = look_up
        self._clock = clock or SystemClock()
        self._answers: OrderedDict[bytes, _Answer] = OrderedDict()

    async def caller(self, secret: str) -> Caller | None:
        """Return whose key it is, or None."""
        name = sha256(secret.encode("utf-8", "surrogatepass")).digest()
        now = self._clock.now().monotonic
        held = self._answers.get(name)
        if held is None or now - held.asked_at > HOLDS_FOR:
            held = _Answer(now, asyncio.ensure_future(self._look_up(secret)))
            self._answers[name] = held
            self._answers.move_to_end(name)
            while len(self._answers) > MOST:
                self._answers.popitem(last=False)
        try:
            return await asyncio.shield(held.caller)
        except BaseException:
            if held.caller.done() and self._answers.get(name) is held:  # it failed; whoever gave up waiting did not
                del self._answers[name]
            raise
