"""Packages are cached in Redis for their time to live; while Redis is down, they are built without the cache."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog
from pydantic import ValidationError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from context_builder.errors import SessionIdError
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.request import LONGEST_TTL
from context_builder.session.keys import PACKAGE, Keys

log = structlog.get_logger(__name__)

_SAID: Final = re.compile(r"(?:point|message):([^/]+)/|session:(.+)")
_PATIENCE: Final = 0.25
"""Seconds; a cache that takes longer costs more than it saves."""


class PackageCache:
    """Keeps packages as JSON under ``context_builder:package:{contextPackageId}``. No call raises."""

    def __init__(self, redis: Redis | None) -> None:
        self._redis = redis

    async def answers(self) -> bool:
        """Return whether Redis is there."""
        if self._redis is None:
            return False
        try:
            await asyncio.wait_for(self._redis.ping(), _PATIENCE)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
            return False
        return True

    async def get(self, package_id: str) -> ContextPackage | None:
        """Return the package; None where it is not cached, cannot be had, or is nothing that can be read."""
        if self._redis is None:
            return None
        try:
            cached = await asyncio.wait_for(self._redis.get(PACKAGE + package_id), _PATIENCE)
            return None if cached is None else ContextPackage.model_validate_json(cached)
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
            await asyncio.wait_for(self._redis.delete(*(PACKAGE + one for one in package_ids)), _PATIENCE)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)

    async def put(self, package: ContextPackage) -> bool:
        """Keep the package for its time to live; return whether that was possible."""
        if self._redis is None:
            return False
        package_id, seconds = package.context_package_id, package.ttl_seconds
        pipeline = self._redis.pipeline(transaction=False)
        for listed in _listings(package):
            pipeline.sadd(listed, package_id)
            pipeline.expire(listed, LONGEST_TTL)
        pipeline.set(PACKAGE + package_id, package.json_text, ex=seconds)
        try:
            await asyncio.wait_for(pipeline.execute(), _PATIENCE)
        except (RedisError, OSError, TimeoutError) as error:
            log.warning("package_cache.unavailable", error=type(error).__name__)
            return False
        return True


def _listings(package: ContextPackage) -> set[str]:
    """Return the keys of the sets by which sessions, when forgotten, take the package out of the cache."""
    said = filter(None, (_SAID.match(one.ref) for one in package.sources))
    listings = set()
    for one in said:
        with suppress(SessionIdError):
            listings.add(Keys(one[1] or one[2]).packages)
    return listings
