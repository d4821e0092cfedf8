"""A record in a real PostgreSQL, and the same in a Supabase project."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from context_builder.database.database import Database
from context_builder.database.postgres import PostgresDatabase
from context_builder.database.supabase import SupabaseDatabase
from context_builder.knowledge.record import PackageRecord
from tests.knowledge.record.samples import StoppedClock
from tests.services.postgrest import api_key, serving_project


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture(params=["postgres", "supabase"])
async def functions(request: pytest.FixtureRequest, migrated_url: str) -> AsyncIterator[Database]:
    if request.param == "postgres":
        made: Database = PostgresDatabase(migrated_url)
        yield made
        await made.close()
        return
    async with serving_project(migrated_url) as project:
        made = SupabaseDatabase(project.url, api_key("service_role"))
        yield made
        await made.close()


@pytest.fixture
def either(functions: Database, clock: StoppedClock) -> PackageRecord:
    """A record, once in PostgreSQL and once in a Supabase project."""
    return PackageRecord(functions, clock=clock)


@pytest.fixture
async def record(migrated_url: str, clock: StoppedClock) -> AsyncIterator[PackageRecord]:
    made = PackageRecord(PostgresDatabase(migrated_url), clock=clock)
    yield made
    await made.close()
