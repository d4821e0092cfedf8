"""Passages are embedded in the background, one task for each tenant at a time."""

from __future__ import annotations

import asyncio

from context_builder.concurrency import TenantBackground
from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.store import document_space
from context_builder.testing import InMemoryStore
from tests.services.waiting import PATIENCE, wait_until


class Slow(InMemoryStore):
    """Embeds when told to, and notes for whom."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self.fails = False

    async def embed_missing(self, tenant_id: str) -> int:
        self.asked.append(tenant_id)
        await self.go.wait()
        if self.fails:
            raise DatabaseUnavailable("away")
        return 1


def embedding(memory: Slow) -> TenantBackground:
    return TenantBackground("embeddings", lambda tenant: memory.embed_missing(document_space(tenant)))


async def test_one_task_of_a_tenant_runs_at_a_time_and_none_is_left_out() -> None:
    memory = Slow()
    passages = embedding(memory)
    for tenant in ("lab", "lab", "club"):
        passages.start(tenant)
    await wait_until(lambda: len(memory.asked) == 2, "both tenants' passages are being embedded")
    passages.start("lab")
    passages.start("lab")
    memory.go.set()
    await wait_until(lambda: len(memory.asked) == 3, "what was stored meanwhile is embedded too")
    assert sorted(memory.asked) == sorted([document_space("lab")] * 2 + [document_space("club")])
    await passages.close()


async def test_a_failure_ends_nothing_but_its_task() -> None:
    memory = Slow()
    memory.fails = True
    memory.go.set()
    passages = embedding(memory)
    for count in (1, 2):
        passages.start("lab")
        await wait_until(lambda count=count: len(memory.asked) == count, "it is tried")
        await passages.close()


async def test_closing_cancels_what_is_under_way() -> None:
    memory = Slow()
    passages = embedding(memory)
    passages.start("lab")
    await wait_until(lambda: bool(memory.asked), "it has begun")
    async with asyncio.timeout(PATIENCE):
        await passages.close()
