"""Packages are cached in Redis for their time to live; while Redis is down, they are built without the cache.

Others may read and write there: what is cached is signed, and has no text of confidential sources, nor restricted ones.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from context_builder.concurrency import beside_loop
from context_builder.database.database import SharedSecret
from context_builder.errors import DatabaseError, SessionIdError
from context_builder.knowledge.artifact import Sensitivity
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.package import ContextPackage, ContextSource
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.request import LONGEST_TTL
from context_builder.knowledge.services import MetadataIndex
from context_builder.knowledge.view import Viewer
from context_builder.session.keys import PACKAGE, PACKAGE_SIGNATURE, Keys

log = structlog.get_logger(__name__)

_SAID: Final = re.compile(r"(?:point|message):([^/]+)/|session:(.+)")
CACHED: Final = frozenset({Sensitivity.PUBLIC, Sensitivity.INTERNAL})
"""Sensitivities of sources whose texts are cached."""

TEXTS: Final = ("title", "heading", "content")
"""What a source says, and is said of it in words."""

PATIENCE: Final = 0.25
"""Seconds; a cache that takes longer costs more than it saves."""


class PackageCache:
    """Keeps packages as JSON under ``context_builder:package:{contextPackageId}``. No call raises.

    ``patience`` is how many seconds Redis has for an answer.
    """

    def __init__(self, redis: Redis | None, secret: SharedSecret, patience: float = PATIENCE) -> None:
        self._redis = redis
        self._secret = secret
        self._patience = patience

    async def answers(self) -> bool:
        """Return whether Redis is there."""
        if self._redis is None:
            return False
        try:
            await asyncio.wait_for(self._redis.ping(), self._patience)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
            return False
        return True

    async def get(self, package_id: str) -> ContextPackage | None:
        """Return the package, without the texts that :func:`withheld` leaves out; None where it is not cached, cannot
        be had, or is nothing that a server of this database has cached under that id."""
        if self._redis is None:
            return None
        try:
            asked = self._redis.mget(PACKAGE + package_id, PACKAGE_SIGNATURE + package_id)
            found: list[Any] = await asyncio.wait_for(asked, self._patience)
            cached, signature = found
            if cached is None:
                return None
            if await self._secret.has_signed((signature or b"").decode("latin-1"), package_id, cached):
                return await beside_loop(ContextPackage.model_validate_json, cached)
            log.warning("package_cache.unsigned")
        except DatabaseError as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
        except ValidationError:
            log.warning("package_cache.unreadable")
        return None

    async def delete(self, package_ids: Sequence[str]) -> None:
        """Forget the packages, where Redis is there."""
        if self._redis is None or not package_ids:
            return
        try:
            await asyncio.wait_for(self._redis.delete(*(PACKAGE + one for one in package_ids)), self._patience)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)

    async def put(self, package: ContextPackage) -> bool:
        """Keep the package for its time to live; return whether that was possible."""
        if self._redis is None:
            return False
        package_id, seconds = package.context_package_id, package.ttl_seconds
        body = await beside_loop(lambda: withheld(package).json_text)
        try:
            signature = await self._secret.signature(package_id, body)
        except DatabaseError as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
            return False
        pipeline = self._redis.pipeline(transaction=True)
        for listed in _listings(package):
            pipeline.sadd(listed, package_id)
            pipeline.expire(listed, LONGEST_TTL)
        pipeline.set(PACKAGE + package_id, body, ex=seconds)
        pipeline.set(PACKAGE_SIGNATURE + package_id, signature, ex=seconds)
        try:
            await asyncio.wait_for(pipeline.execute(), self._patience)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
            return False
        return True


def is_withheld(source: ContextSource) -> bool:
    """Return whether the source's texts are not cached."""
    return source.sensitivity not in CACHED


def withheld(package: ContextPackage) -> ContextPackage:
    """Return the package as it is cached, without the texts of sources that are confidential or restricted."""
    if not any(map(is_withheld, package.sources)):
        return package  # whose JSON is made
    without = dict.fromkeys(TEXTS, "")
    sources = (one.model_copy(update=without) if is_withheld(one) else one for one in package.sources)
    return package.model_copy(update={"sources": tuple(sources)})


def _listings(package: ContextPackage) -> set[str]:
    """Return the keys of the sets by which sessions, when forgotten, take the package out of the cache."""
    said = filter(None, (_SAID.match(one.ref) for one in package.sources))
    listings = set()
    for one in said:
        with suppress(SessionIdError):
            listings.add(Keys(one[1] or one[2]).packages)
    return listings


_PAGE: Final = 500
"""Packages that are listed at a time."""


class PackageErasure:
    """Erases sources from packages. Raises :class:`~context_builder.errors.DatabaseError` when the database fails."""

    def __init__(self, record: PackageRecord, cache: PackageCache, viewer: Viewer, index: MetadataIndex) -> None:
        self._record = record
        self._cache = cache
        self._viewer = viewer
        self._index = index

    async def uncache(self, tenant_id: str, ref: str) -> None:
        """Take every package that holds a source out of the cache, as when the source is erased."""
        before = None
        while entries := await self._record.listing(tenant_id, "ref", ref, limit=_PAGE, before=before):
            await self._cache.delete([one.package_id for one in entries])
            before = entries[-1].package_id

    async def forget(self, tenant_id: str, refs: Iterable[str]) -> None:
        """Erase what packages show of sources that are no longer remembered."""
        for ref in refs:
            await self._record.erase(tenant_id, ref)
            await self.uncache(tenant_id, ref)

    async def uncache_outdated(self, agent: Agent, package: ContextPackage, governance: int | None) -> None:
        """Take a new package out of the cache if one of its sources was erased while it was being built.

        The package may not have been listed yet when :meth:`uncache` took the others with that source out.
        ``governance`` is the version that held when the build began.
        """
        if await self._viewer.governance(agent) == governance:
            return
        shown = {one.ref: one.version for one in package.sources if one.version}
        nodes = await self._index.nodes(agent.tenant, list(shown), 0)
        if any(ref not in nodes or nodes[ref].version != version for ref, version in shown.items()):
            await self._cache.delete([package.context_package_id])
