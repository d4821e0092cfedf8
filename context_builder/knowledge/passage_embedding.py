"""The passages of documents are embedded in the background once they are stored, so that nobody waits for it."""

from __future__ import annotations

import asyncio

import structlog

from context_builder.errors import ContextBuilderError
from context_builder.knowledge.store import document_space
from context_builder.memory.memory import MemoryStore

log = structlog.get_logger(__name__)


class PassageEmbedding:
    """Embeds what is stored without an embedding; of each tenant, one task at a time."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[str] = set()

    def start(self, tenant_id: str) -> None:
        """Embed the passages of the tenant that are without an embedding now, in the background."""
        self._waiting.add(tenant_id)
        if tenant_id not in self._tasks:
            self._tasks[tenant_id] = asyncio.create_task(self._embed(tenant_id), name="passage embeddings")

    async def close(self) -> None:
        """Cancel what is under way; it is done when something is stored the next time."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _embed(self, tenant_id: str) -> None:
        try:
            while tenant_id in self._waiting:
                self._waiting.discard(tenant_id)  # what is stored from now on puts it back
                await self._memory.embed_missing(document_space(tenant_id))
        except ContextBuilderError as error:
            log.warning("passages.not_embedded", error=type(error).__name__)
        except Exception:  # nobody waits for this: the log is where its end is told
            log.exception("passages.not_embedded")
        finally:
            del self._tasks[tenant_id]
