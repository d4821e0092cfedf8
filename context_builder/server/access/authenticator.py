"""The authenticator tells which kind a credential is, and asks the one that knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from context_builder.server.access.caller import Caller
from context_builder.server.access.jwt_verifier import JwtVerifier
from context_builder.server.access.local_token import LocalToken

API_KEY = "cbk_"


class KeyCallers(Protocol):
    """Knows whose an API key is."""

    async def caller(self, secret: str) -> Caller | None: ...


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Knows API keys and, where there are such, JWTs and the local token.

    Raises :class:`~context_builder.errors.KnowledgeUnavailable` when the database of keys does not answer.
    """

    keys: KeyCallers
    tokens: JwtVerifier | None = None
    local: LocalToken | None = None

    async def caller(self, credential: str) -> Caller | None:
        """Return who asks; None for a credential that does not hold, whatever the reason."""
        if self.local is not None and (caller := self.local.caller(credential)) is not None:
            return caller
        if credential.startswith(API_KEY):
            return await self.keys.caller(credential)
        return await self.tokens.caller(credential) if self.tokens is not None else None
