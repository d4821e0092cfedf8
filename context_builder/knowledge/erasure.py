"""Takes erased sources out of packages that were built before: out of the cache, and out of the record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from context_builder.knowledge.cache import PackageCache
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.services import MetadataIndex
from context_builder.knowledge.viewer import Viewer

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
