"""A Supabase project keeps memories as any PostgreSQL does, for its service key alone."""

from __future__ import annotations

import pytest

from context_builder.database.supabase import SupabaseDatabase
from context_builder.errors import DatabaseError, DatabaseRejected, DatabaseUnavailable, DataRejected
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import SqlMemory
from tests.memory.vectors import LetterEmbedder
from tests.services.postgrest import SECRET_KEY, PostgrestFront, api_key
from tests.services.refusing import refusing

pytestmark = pytest.mark.engines

TALK = [
    Memory("m-1", "listen", session_id="s", position=1, tags=("a",)),
    Memory("m-2", "buzz", session_id="s", position=2),
]


def memory_of(project: PostgrestFront, role: str = "service_role") -> SqlMemory:
    return SqlMemory(SupabaseDatabase(project.url, api_key(role)), LetterEmbedder())


async def test_memories_are_kept_found_and_forgotten_by_tenant(
    supabase_project: PostgrestFront, migrated_url: str
) -> None:
    memory = memory_of(supabase_project)
    await memory.remember("acme", TALK)
    found = await memory.search("acme", MemoryQuery("silent", filter=MemoryFilter(tags=("a",))))
    assert [(each.memory, each.origins) for each in found] == [(TALK[0], ("vector",))]
    assert await memory.search("globex", MemoryQuery("listen")) == []
    assert await memory.forget("globex", ids=["m-1"]) == 0
    assert await memory.forget("acme", ids=["m-1"], filter=MemoryFilter(session_id="s")) == 1
    await memory.close()


@pytest.mark.parametrize("role", ["anon", "authenticated"])
async def test_other_keys_reach_nothing(supabase_project: PostgrestFront, migrated_url: str, role: str) -> None:
    memory = memory_of(supabase_project, role)
    for refused in (
        memory.search("acme", MemoryQuery("x")),
        memory.remember("acme", TALK),
        memory.forget("acme", ids=["x"]),
    ):
        with pytest.raises(DatabaseRejected, match="use the project's service key"):
            await refused
    await memory.close()


async def test_a_project_that_lacks_the_functions_or_is_down_says_so(supabase_project: PostgrestFront) -> None:
    memory = memory_of(supabase_project)
    with pytest.raises(DatabaseRejected, match="run the SQL that `context-builder migrate` prints"):
        await memory.search("acme", MemoryQuery("x"))
    supabase_project.stop()
    with pytest.raises(DatabaseUnavailable, match="cannot be reached: ConnectError"):
        await memory.search("acme", MemoryQuery("x"))
    await memory.close()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, DataRejected) for status in (400, 413, 422)),
        *((status, DatabaseRejected) for status in (401, 403, 404, 405)),
        *((status, DatabaseUnavailable) for status in (408, 429, 500, 502, 503)),
    ],
)
async def test_what_a_gateway_says_of_a_request_is_told_from_what_it_says_of_all(
    status: int, error: type[DatabaseError]
) -> None:
    async with refusing(status) as url:
        memory = SqlMemory(SupabaseDatabase(url, api_key("service_role")))
        with pytest.raises(error) as refused:
            await memory.remember("acme", TALK)
        assert type(refused.value) is error
        await memory.close()


async def test_a_new_secret_key_stands_in_its_own_header_alone(
    supabase_project: PostgrestFront, migrated_url: str
) -> None:
    memory = SqlMemory(SupabaseDatabase(supabase_project.url, SECRET_KEY), LetterEmbedder())
    await memory.remember("acme", TALK)
    assert [each.memory for each in await memory.search("acme", MemoryQuery("listen", limit=1))] == TALK[:1]
    await memory.close()


async def test_rows_that_the_api_cuts_off_are_an_error_that_says_where_its_limit_is(
    supabase_project: PostgrestFront, migrated_url: str
) -> None:
    memory = memory_of(supabase_project)
    await memory.remember("acme", TALK)
    supabase_project.max_rows = 1
    with pytest.raises(DatabaseRejected, match="returns 1 of 2 rows; raise its limit of rows"):
        await memory.search("acme", MemoryQuery(""))
    await memory.close()
