"""The functions that the migrations make are nobody's but the application's."""

from __future__ import annotations

import re

import asyncpg
import pytest

from context_builder.database.migrations import apply, migrations

pytestmark = pytest.mark.engines

UNGUARDED = """
SELECT p.proname AS name, coalesce(p.proconfig::text LIKE '%search_path=pg_catalog, public, pg_temp%', false) AS path
FROM pg_proc AS p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'context%'
  AND (has_function_privilege('context_builder_stranger', p.oid, 'EXECUTE')
       OR coalesce(p.proconfig::text NOT LIKE '%search_path=pg_catalog, public, pg_temp%', true))
"""


async def test_every_function_is_guarded(database_url: str, database: asyncpg.Connection) -> None:
    """Nobody may call one without a grant; each has a search path of its own, but for those that are inlined or name
    the schema that they are called in."""
    await apply(database_url)
    await database.execute("DROP ROLE IF EXISTS context_builder_stranger; CREATE ROLE context_builder_stranger")
    unguarded = await database.fetch(UNGUARDED)
    await database.execute("DROP ROLE context_builder_stranger")
    assert {row["name"] for row in unguarded if row["path"]} == set()
    assert {row["name"] for row in unguarded} == {
        "context_builder_by_index",
        "context_builder_guard",
        "context_builder_refuse_earlier",
        "context_memory_json",
        "context_memory_place",
        "context_package_about",
        "context_package_audit_line",
        "context_package_day",
        "context_package_left",
        "context_package_session",
    }


def test_every_function_is_defined_once() -> None:
    """What a reader finds is what the database has."""
    defined = [
        name for sql in migrations().values() for name in re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)", sql, re.M)
    ]
    assert sorted(defined) == sorted(set(defined))
