"""A server that redirects is not followed: where it points to sees neither a key nor what people said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst
from context_builder.analysis.prompts import load_prompts
from context_builder.archive.supabase import SupabaseArchive
from context_builder.database.supabase import SupabaseDatabase
from context_builder.errors import AnalystUnavailable, ContextBuilderError, DatabaseUnavailable
from context_builder.memory.memory import MemoryQuery
from context_builder.memory.openai_embedder import OpenAIEmbedder
from context_builder.memory.options import EmbeddingOptions, SomaBrainOptions
from context_builder.memory.somabrain import SomaBrainClient
from context_builder.memory.sql_memory import SqlMemory
from tests.analysis.openai.conversation import said
from tests.archive.rows import summary
from tests.services.postgrest import api_key
from tests.services.redirecting import redirecting

KEY = api_key("service_role")
Ask = Callable[[str], Awaitable[object]]


async def deliver(url: str) -> None:
    archive = SupabaseArchive(SupabaseDatabase(url, KEY))
    try:
        await archive.deliver(summary())
    finally:
        await archive.close()


async def check(url: str) -> None:
    archive = SupabaseArchive(SupabaseDatabase(url, KEY))
    try:
        await archive.check()
    finally:
        await archive.close()


async def search(url: str) -> None:
    memory = SqlMemory(SupabaseDatabase(url, KEY))
    try:
        await memory.search("acme", MemoryQuery("helicase"))
    finally:
        await memory.close()


async def embed(url: str) -> None:
    embedder = OpenAIEmbedder(EmbeddingOptions(base_url=f"{url}/v1", api_key="sk-secret"))
    try:
        await embedder.embed(["helicase"])
    finally:
        await embedder.close()


async def read_keywords(url: str) -> None:
    analyst = OpenAIAnalyst(
        Endpoint("sk-secret", f"{url}/v1"), load_prompts(), calls=CallOptions(attempts=2, first_wait=0.01)
    )
    try:
        await analyst.extract_keywords(said("Helicase unwinds the double helix"))
    finally:
        await analyst.close()


async def recall(url: str) -> None:
    client = SomaBrainClient(SomaBrainOptions(url, retries=0))
    try:
        await client.recall({"query": "helicase"})
    finally:
        await client.close()


CLIENTS = [
    pytest.param(deliver, DatabaseUnavailable, "SUPABASE_URL", id="archive delivery"),
    pytest.param(check, DatabaseUnavailable, "SUPABASE_URL", id="archive check"),
    pytest.param(search, DatabaseUnavailable, "SUPABASE_URL", id="Supabase memory"),
    pytest.param(embed, DatabaseUnavailable, "EMBEDDING_BASE_URL", id="embedder"),
    pytest.param(read_keywords, AnalystUnavailable, "OPENAI_BASE_URL", id="model"),
    pytest.param(recall, DatabaseUnavailable, "SA01_SOMA_BASE_URL", id="SomaBrain"),
]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("ask", "error", "setting"), CLIENTS)
async def test_no_redirect_is_followed_and_the_setting_is_named(
    ask: Ask, error: type[ContextBuilderError], setting: str, status: int
) -> None:
    with redirecting(status) as server:
        with pytest.raises(error, match=rf"redirects to {server.location}.*{setting}") as told:
            await ask(server.url)
        assert len(server.asked) == 1
        assert server.seen == []
        assert "secret" not in str(told.value)
        assert KEY not in str(told.value)


HOSTILE = [
    "/elsewhere",
    "http://[",
    "",
    "\x1b]0;owned\x07",
    "http://user:hunter2@[::1/",
    "ftp://elsewhere",
    "http://é/",
]


@pytest.mark.parametrize("location", HOSTILE)
@pytest.mark.parametrize(("ask", "error", "setting"), CLIENTS)
async def test_a_hostile_location_is_neither_followed_nor_quoted(
    ask: Ask, error: type[ContextBuilderError], setting: str, location: str
) -> None:
    with redirecting(location=location) as server:
        with pytest.raises(error) as told:
            await ask(server.url)
        assert set(server.asked) & {"/elsewhere"} == set()
        assert str(told.value).isprintable()
        assert "hunter2" not in str(told.value)
