"""Runs the work on stored documents (embeddings, shorter texts) in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from context_builder.errors import ContextBuilderError

log = structlog.get_logger(__name__)


class TenantBackground:
    """Does ``work`` for tenants, one task of each at a time; ``name`` is that of the work in the log."""

    def __init__(self, name: str, work: Callable[[str], Awaitable[object]]) -> None:
        self._name = name
        self._work = work
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()

    def start(self, tenant_id: str) -> None:
        """Do what there is to do for the tenant now."""
        self._waiting.add(tenant_id)
        if tenant_id not in self._tasks:
            self._tasks[tenant_id] = asyncio.create_task(self._run(tenant_id), name=self._name)

    async def watch(self, tenant_id: str, every: float) -> None:
        """Do what there is to do for the tenant now, and every so many seconds what other processes stored; never
        ends."""
        while True:
            self.start(tenant_id)
            await asyncio.sleep(every)

    async def close(self) -> None:
        """Cancel what is under way; it is done when something is stored the next time."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, tenant_id: str) -> None:
        try:
            while tenant_id in self._waiting:
                self._waiting.discard(tenant_id)  # what is stored from now on puts it back
                await self._work(tenant_id)
        except ContextBuilderError as error:
            log.warning("documents.undone", work=self._name, error=type(error).__name__)
        except Exception:  # nobody waits for this: the log is where its end is told
            log.exception("documents.undone", work=self._name)
        finally:
            del self._tasks[tenant_id]
