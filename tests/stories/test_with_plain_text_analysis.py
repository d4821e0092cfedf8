"""The same conversation with no model and no account: plain text analysis understands it in the process."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.memory.memory import MemoryFilter, MemoryQuery
from context_builder.memory.postgres import PostgresMemory
from tests.services.waiting import wait_until
from tests.stories.conftest import Command
from tests.stories.talk import Talk, long_ones

pytestmark = [pytest.mark.engines, pytest.mark.slow]


async def test_without_a_model_a_conversation_still_becomes_a_memory(
    context_builder: Command, redis: Redis, database_url: str, database: asyncpg.Connection
) -> None:
    talk = Talk(redis)
    assert context_builder("migrate", database_url=database_url).wait() == 0
    context_builder("run", "monday", database_url=database_url, raw_buffer_time_window=3)

    await talk.happens()
    await talk.is_visible()
    state = await talk.is_understood()
    assert all(entry["keywords"] for entry in long_ones(state))
    assert "Okazaki fragments" in state["raw_recent_buffer"][3]["keywords"]
    assert state["raw_recent_buffer"][2]["keywords"] == []
    assert state["current_domains"][0] == "Biology / Life Sciences"

    async def summarized() -> Any:
        return (await talk.state())["rolling_summary"]["message_count"] == 6

    # Nobody ends it: three seconds after the first word, the buffer's age is enough.
    await wait_until(summarized, "the buffer is summarized by itself")
    state = await talk.state()
    assert state["analyst"] == {"keywords": "text", "domains": "text", "summary": "text"}
    assert "TP53" in state["rolling_summary"]["text"]
    assert "Bob" in state["rolling_summary"]["text"]
    assert state["raw_recent_buffer"] == []

    async def archived() -> Any:
        return await database.fetch("SELECT summary_text FROM context_summaries")

    rows: Any = await wait_until(archived, "the summary is archived")
    assert [row["summary_text"] for row in rows] == [state["rolling_summary"]["text"]]

    # And what was said can be found, by whoever asks for it later.
    memory = PostgresMemory(database_url)

    async def found() -> Any:
        return await memory.search(
            "default", MemoryQuery("Who spoke of TP53?", filter=MemoryFilter(kinds=("message",)))
        )

    best = (await wait_until(found, "the messages are remembered"))[0].memory
    assert (best.session_id, best.speaker, "TP53" in best.text) == ("monday", "Bob", True)
    await memory.close()

    # A prompt is made of all that, though the words have left the buffer.
    question = ("build", "monday", "--query", "Who spoke of TP53?", "--explain")
    prompt = context_builder(*question, database_url=database_url, context_deadline=5)
    assert prompt.wait() == 0
    assert "Conversation so far:" in prompt.output
    for_programs = context_builder(*question, "--json", database_url=database_url, context_deadline=5)
    assert for_programs.wait() == 0
    included = [one["id"] for one in json.loads(for_programs.output)["receipts"] if one["outcome"] == "included"]
    assert best.id in included

    # Until it is to be forgotten.
    assert context_builder("forget", "monday", "--yes", database_url=database_url).wait() == 0
    for table in ("context_summaries", "context_memories"):
        assert await database.fetchval(f"SELECT count(*) FROM {table}") == 0
