"""``schema.sql`` shows the tables, indexes and functions that the migrations make.

``UPDATE_SCHEMA=1 ./scripts/test tests/storage/test_schema.py`` writes it anew.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from context_builder.storage.migrations import apply

pytestmark = pytest.mark.engines

SCHEMA = Path(str(files("context_builder.storage.sql") / "schema.sql"))
HEAD = "-- What the migrations make, to be read; nothing applies this file. A test compares it with a database.\n"

TABLES = """
SELECT format(E'CREATE TABLE %s (\\n%s\\n)%s;', c.relname,
    (SELECT string_agg(format('    %s %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
            CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END,
            CASE WHEN a.attgenerated <> ''
                 THEN format(' GENERATED ALWAYS AS (%s) STORED', pg_get_expr(d.adbin, d.adrelid))
                 WHEN d.adbin IS NOT NULL THEN ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) ELSE '' END), E',\\n'
            ORDER BY a.attnum)
     FROM pg_attribute AS a LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    CASE WHEN c.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) ELSE '' END)
FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
INDEXES = """
SELECT replace(pg_get_indexdef(i.indexrelid), 'public.', '') || ';'
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition ORDER BY 1
"""
FUNCTIONS = """
SELECT format(E'CREATE FUNCTION %s(%s)\\n    RETURNS %s%s;',
    p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
    CASE WHEN p.prosecdef THEN ' SECURITY DEFINER' ELSE '' END)
FROM pg_proc AS p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'context%' ORDER BY 1
"""

UNGUARDED = """
SELECT p.proname AS name, coalesce(p.proconfig::text LIKE '%search_path=pg_catalog, public, pg_temp%', false) AS path
FROM pg_proc AS p WHERE p.pronamespace = 'public'::regnamespace AND p.proname LIKE 'context%'
  AND (has_function_privilege('context_builder_stranger', p.oid, 'EXECUTE')
       OR coalesce(p.proconfig::text NOT LIKE '%search_path=pg_catalog, public, pg_temp%', true))
"""


async def test_the_schema_to_read_is_what_the_migrations_make(database_url: str, database: asyncpg.Connection) -> None:
    await apply(database_url)
    parts = [row[0] for query in (TABLES, INDEXES, FUNCTIONS) for row in await database.fetch(query)]
    made = "\n".join([HEAD, *parts, ""])
    assert written(made) == made


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
        "context_memory_json",
        "context_memory_place",
        "context_package_about",
        "context_package_audit_line",
        "context_package_day",
        "context_package_left",
        "context_package_session",
    }


def written(made: str) -> str:
    """The file's text, after it was updated if that was asked for."""
    if os.environ.get("UPDATE_SCHEMA"):
        SCHEMA.write_text(made, encoding="utf-8")
    return SCHEMA.read_text(encoding="utf-8")
