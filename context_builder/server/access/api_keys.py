"""API keys are created, listed, revoked and looked up in the database, which keeps a hash of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Final

from ulid import ULID

from context_builder.database.database import Database
from context_builder.server.access.caller import Caller, Role, caller_of, digest_of

_KEY: Final = re.compile(r"cbk_([0-9A-HJKMNP-TV-Z]{26})_[A-Za-z0-9_-]{43}")
_NO_DIGEST: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key when it is made: ``secret`` is the key itself, which is shown once."""

    id: str
    secret: str


class ApiKeys:
    """Keeps API keys; a server of ``tenant_id`` asks. Raises :class:`~context_builder.errors.DatabaseError`."""

    def __init__(self, database: Database, tenant_id: str) -> None:
        self._database = database
        self._tenant_id = tenant_id

    async def create(self, tenant_id: str, role: Role, name: str = "") -> NewKey:
        """Store a new key of that tenant and return it."""
        key_id = str(ULID())
        secret = f"cbk_{key_id}_{token_urlsafe(32)}"
        stored = {"key_id": key_id, "key_role": role.value, "key_name": name, "key_digest": digest_of(secret)}
        await self._database.call("context_access_create", tenant_id, stored)
        return NewKey(key_id, secret)

    async def caller(self, secret: str) -> Caller | None:
        """Return whose key it is; None for one that is unknown or revoked, which cannot be told apart."""
        key_id = key_id_of(secret)
        return None if key_id is None else await self.caller_by_digest(f"{key_id}:{digest_of(secret)}")

    async def caller_by_digest(self, named: str) -> Caller | None:
        """Return whose key it is that ``ID:DIGEST`` names."""
        key_id, _, digest = named.partition(":")
        rows = await self._database.call("context_access_find", self._tenant_id, {"key_id": key_id})
        row = rows[0] if rows else {"digest": _NO_DIGEST}
        if not compare_digest(row["digest"], digest):
            return None
        return caller_of(row["tenant_id"], subject_of(key_id), frozenset({row["role"]}))

    async def listed(self, tenant_id: str | None = None) -> list[dict[str, Any]]:
        """Return the keys of a tenant, or of all, without their hashes, the newest first."""
        every = {"every_tenant": tenant_id is None}
        return await self._database.call("context_access_list", tenant_id or self._tenant_id, every)

    async def revoke(self, key_id: str) -> bool:
        """Make a key worthless from now on; return whether it was worth something."""
        return bool((await self._database.call("context_access_revoke", self._tenant_id, {"key_id": key_id}))[0])

    async def exist(self) -> bool:
        """Return whether there is any key that holds."""
        return bool((await self._database.call("context_access_any", self._tenant_id, {}))[0])


def subject_of(key_id: str) -> str:
    """Return who asks with a key, as packages and the audit name callers."""
    return f"key:{key_id}"


def key_id_of(secret: str) -> str | None:
    """Return the id that is part of an API key; None where a text is not a key."""
    parts = _KEY.fullmatch(secret)
    return None if parts is None else parts[1]
