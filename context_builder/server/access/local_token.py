"""The local token lets programs of this user in: a file that only they can read."""

from __future__ import annotations

import os
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import Final

from context_builder.engines.home import make_home
from context_builder.errors import SettingError
from context_builder.server.access.caller import Caller, caller_of, digest_of

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
