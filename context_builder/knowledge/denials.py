"""Denials of which a caller may not know are looked for and recorded later, so that no answer's time tells."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Final

import structlog

from context_builder.concurrency import Background, FairTurns
from context_builder.knowledge.fit import AssembledPackage
from context_builder.knowledge.governance import Access, DecisionContext
from context_builder.knowledge.package import ContextPackage
from context_builder.knowledge.record import PackageRecord
from context_builder.knowledge.services import MemoryPolicy
from context_builder.knowledge.sources import PackageSources

log = structlog.get_logger(__name__)

MOST: Final = 1_000
"""Packages whose denials are still to be looked for."""

LATEST: Final = 2.0
"""Seconds after an answer within which the search begins, at a moment that nobody can tell: a search that finds
something takes a little longer, and so would the next answer."""

PATIENCE: Final = 60.0
"""Seconds that a search may take, and all that wait when the service closes."""


class UnknownDenials:
    """Records what was denied to agents who may not know of it, of one package at a time, whether or not there is any.

    It is left out where policies have changed since, too much of it waits, or a search takes more than ``patience``
    seconds; the log says so.
    """

    def __init__(
        self, sources: PackageSources, policy: MemoryPolicy, record: PackageRecord, *, patience: float = PATIENCE
    ) -> None:
        self._sources = sources
        self._policy = policy
        self._record = record
        self._patience = patience
        self._background = Background(most=MOST, timeout=None)
        self._turns = FairTurns()
        self._closing = asyncio.Event()

    def start(self, assembled: AssembledPackage, package: ContextPackage) -> None:
        """Look for what was not searched for the package, before long."""
        self._background.start("record what was denied", self._recorded_later(assembled, package))

    async def close(self) -> None:
        """Record what is still to be, now."""
        self._closing.set()
        try:
            async with asyncio.timeout(self._patience):
                await self._background.drain()
        except TimeoutError:
            log.warning("package.denials_unrecorded", reason="the service closes")
            await self._background.cancel()

    async def _recorded_later(self, assembled: AssembledPackage, package: ContextPackage) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(random.uniform(0, LATEST)):  # noqa: S311 (no secret)
                await self._closing.wait()
        async with self._turns:
            try:
                async with asyncio.timeout(self._patience):
                    await self._recorded(assembled, package)
            except TimeoutError:
                log.warning("package.denials_unrecorded", package=package.context_package_id, reason="it took too long")

    async def _recorded(self, assembled: AssembledPackage, package: ContextPackage) -> None:
        tenant, intent = assembled.agent.tenant, assembled.query.request.intent
        if nodes := await self._sources.unknown(assembled.query, assembled.found):
            context = DecisionContext(intent, assembled.now)
            report = await self._policy.decide(assembled.agent, [one.governed(tenant) for one in nodes], context)
            if assembled.access.report is None or report.governance != assembled.access.report.governance:
                log.warning(
                    "package.denials_unrecorded", package=package.context_package_id, reason="policies have changed"
                )
                return
            denied = [one for one in report.decisions if one.access is Access.DENIED]
            versions = {one.ref: one.version or None for one in nodes}
            await self._record.deny(tenant, package.context_package_id, package.revision, denied, versions)
