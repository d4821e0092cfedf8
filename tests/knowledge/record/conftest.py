"""A record in a real PostgreSQL, and the same in a Supabase project."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from context_builder.knowledge.record import PackageRecord
from context_builder.storage.database_errors import KNOWLEDGE_ERRORS
from context_builder.storage.sql_functions import PostgresFunctions, SqlFunctions, SupabaseFunctions
from tests.knowledge.record.samples import StoppedClock
from tests.services.postgrest import api_key, serving_project


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture(params=["postgres", "supabase"])
async def functions(request: pytest.FixtureRequest, migrated_url: str) -> AsyncIterator[SqlFunctions]:
    if request.param == "postgres":
        made: SqlFunctions = PostgresFunctions(migrated_url, KNOWLEDGE_ERRORS)
        yield made
        await made.close()
        return
    async with serving_project(migrated_url) as project:
        made = SupabaseFunctions(project.url, api_key("service_role"), KNOWLEDGE_ERRORS)
        yield made
        await made.close()


@pytest.fixture
def either(functions: SqlFunctions, clock: StoppedClock) -> PackageRecord:
    """A record, once in PostgreSQL and once in a Supabase project."""
    return PackageRecord(functions, clock=clock)


@pytest.fixture
async def record(migrated_url: str, clock: StoppedClock) -> AsyncIterator[PackageRecord]:
    made = PackageRecord(PostgresFunctions(migrated_url, KNOWLEDGE_ERRORS), clock=clock)
    yield made
    await made.close()
