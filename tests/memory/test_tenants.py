"""Nobody reaches another tenant's memories, whichever way is tried."""

from __future__ import annotations

import asyncpg
import pytest

from context_builder.database.postgres import ROLE
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory

pytestmark = pytest.mark.engines

OURS, THEIRS = "acme", "globex"
SECRET = Memory("secret", "the launch code is tortoise", session_id="session-1", speaker="Alice", position=1)
FUNCTIONS = {
    "remember": "SELECT context_memory_remember($1, '[]')",
    "search": "SELECT context_memory_search($1, 'tortoise')",
    "newest": "SELECT context_memory_newest($1)",
    "rate": "SELECT context_memory_rate($1, '[]')",
    "forget": "SELECT context_memory_forget($1, '{secret}')",
    "unembedded": "SELECT context_memory_unembedded($1, 9)",
    "unembedded_count": "SELECT context_memory_unembedded_count($1)",
    "embed": "SELECT context_memory_embed($1, 'letters', '[]')",
    "prepare": "SELECT context_memory_prepare($1, 3)",
}
INNER = {
    "separate": "SELECT context_memory_separate('globex', 26)",
    "terms": "SELECT context_memory_terms('globex', 'tortoise')",
    "by_words": "SELECT context_memory_by_words('globex', '{tortois}', '{1}', '{tortois}', '{}', 'true', false, 9)",
    "by_embedding": "SELECT context_memory_by_embedding('globex', 'letters', '{1}', 'true', false, 9)",
    "relevance": "SELECT context_memory_relevance('globex', 'tortoise', '{secret}')",
    "full_text": "SELECT context_memory_full_text('globex', 'tortoise', 'true', false, 9, '{}')",
    "is_narrow": "SELECT context_memory_is_narrow('globex', '{}')",
    "neighbours": "SELECT context_memory_neighbours('globex', '{}', '{}', 1, '', 'true')",
    "expansion": "SELECT context_memory_expansion('globex', '{secret}', '{}')",
}


@pytest.fixture(autouse=True)
async def theirs(hybrid: PostgresMemory) -> None:
    await hybrid.remember(THEIRS, [SECRET])


@pytest.fixture
async def application(database: asyncpg.Connection) -> asyncpg.Connection:
    """A connection as the application's role, its tenant ours."""
    await database.execute(f"SET ROLE {ROLE}")
    await database.execute("SELECT set_config('context_builder.tenant', $1, false)", OURS)
    return database


async def test_a_tenant_finds_and_forgets_only_its_own(hybrid: PostgresMemory) -> None:
    await hybrid.remember(OURS, [Memory("secret", "a turtle")])
    assert [found.memory.text for found in await hybrid.search(OURS, MemoryQuery("launch code tortoise"))] == [
        "a turtle"
    ]
    # A condition is data: it cannot be ended early.
    tricky = MemoryFilter(session_id="x' OR m.tenant_id = 'globex", tags=("'} OR true --",), kinds=("\"}' OR true --",))
    assert await hybrid.search(OURS, MemoryQuery("tortoise", filter=tricky)) == []
    assert await hybrid.forget(OURS, ids=["secret"], filter=MemoryFilter()) == 1
    assert [found.memory for found in await hybrid.search(THEIRS, MemoryQuery("tortoise"))] == [SECRET]


async def test_the_position_of_a_neighbour_does_not_lead_across(hybrid: PostgresMemory) -> None:
    await hybrid.remember(OURS, [Memory("n", "turtles", session_id="session-1", position=2)])
    assert [found.memory.id for found in await hybrid.search(OURS, MemoryQuery("turtles"))] == ["n"]


@pytest.mark.parametrize("function", FUNCTIONS)
async def test_every_function_refuses_another_tenant(application: asyncpg.Connection, function: str) -> None:
    for asked in (THEIRS, "", None):
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="another tenant"):
            await application.fetch(FUNCTIONS[function], asked)
    await application.execute("RESET context_builder.tenant")
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="another tenant"):
        await application.fetch(FUNCTIONS[function], THEIRS)


@pytest.mark.parametrize("function", INNER)
async def test_functions_that_check_no_tenant_cannot_be_called(application: asyncpg.Connection, function: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
        await application.fetch(INNER[function])


@pytest.mark.parametrize(
    "table", ["context_memories", "context_memory_pending", "context_memory_frequencies", "context_memory_totals"]
)
async def test_tables_are_closed_and_show_own_rows_only_even_when_granted(
    application: asyncpg.Connection, database: asyncpg.Connection, memory: PostgresMemory, table: str
) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await application.fetch(f"SELECT * FROM {table}")
    for tenant in (OURS, THEIRS):
        await memory.remember(tenant, [Memory("n", "turtles")])
    await database.execute("RESET ROLE")
    await database.execute(f"GRANT ALL ON {table} TO {ROLE}")
    await database.execute(f"SET ROLE {ROLE}")
    assert {row["tenant_id"] for row in await database.fetch(f"SELECT tenant_id FROM {table}")} == {OURS}
    assert await database.execute(f"DELETE FROM {table} WHERE tenant_id = 'globex'") == "DELETE 0"


async def test_a_shadowed_table_or_operator_fools_no_function(application: asyncpg.Connection) -> None:
    await application.execute("CREATE TEMP TABLE context_memory_totals (tenant_id text, memories bigint, words bigint)")
    await application.execute("SET search_path = pg_temp, public")
    assert await application.fetch("SELECT * FROM public.context_memory_search('acme', 'tortoise')") == []


async def test_the_applications_role_cannot_pass_row_level_security(database: asyncpg.Connection) -> None:
    role = await database.fetchrow("SELECT rolsuper, rolbypassrls, rolcanlogin FROM pg_roles WHERE rolname = $1", ROLE)
    assert not any(role.values())
    secured = "SELECT bool_and(relrowsecurity) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'context\\_memor%'"
    assert await database.fetchval(secured)
