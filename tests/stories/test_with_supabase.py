"""The same conversation, archived in a Supabase project through its own client."""

from __future__ import annotations

import asyncpg
import pytest
from redis.asyncio import Redis

from tests.services.postgrest import PostgrestFront, api_key
from tests.stories.conftest import Command
from tests.stories.talk import Talk

pytestmark = [pytest.mark.engines, pytest.mark.slow]


async def test_a_summary_reaches_the_supabase_project(
    context_builder: Command,
    redis: Redis,
    supabase_project: PostgrestFront,
    migrated_url: str,
    database: asyncpg.Connection,
) -> None:
    talk = Talk(redis)
    settings = {"supabase_url": supabase_project.url, "supabase_key": api_key("service_role")}
    daemon = context_builder("run", "monday", **settings)
    await talk.happens()
    await talk.is_visible()
    assert context_builder("end", "monday", **settings).wait(30) == 0
    assert daemon.wait() == 0
    assert "Supabase" in daemon.output
    assert api_key("service_role") not in daemon.output
    (row,) = await database.fetch("SELECT * FROM context_summaries")
    assert (row["session_id"], row["summary_seq"], row["message_count"]) == ("monday", 1, 6)
    assert row["summary_text"] == (await talk.state())["rolling_summary"]["text"]


def test_an_anon_key_is_named_as_the_fault(context_builder: Command) -> None:
    settings = {"supabase_url": "http://127.0.0.1:1", "supabase_key": api_key("anon")}
    daemon = context_builder("run", "monday", **settings)
    assert daemon.wait() == 2
    assert daemon.output == "context-builder: SUPABASE_KEY: is an anon key, which cannot write; use the service key\n"
