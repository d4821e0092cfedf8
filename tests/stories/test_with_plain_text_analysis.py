"""The same conversation with no model and no account: plain text analysis understands it in the process."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.sql_memory import PostgresMemory
from tests.services.waiting import wait_until
from tests.stories.conftest import Command, Done
from tests.stories.talk import Talk, long_ones

QUESTION = "Who spoke of TP53?"

pytestmark = [pytest.mark.engines, pytest.mark.slow]


async def test_without_a_model_a_conversation_still_becomes_a_memory(
    context_builder: Command, done: Done, redis: Redis, database_url: str, database: asyncpg.Connection
) -> None:
    talk = Talk(redis)
    done("migrate", database_url=database_url)
    context_builder("run", "monday", database_url=database_url, raw_buffer_time_window=3)
    await talk.happens()
    await talk.is_visible()
    is_understood(await talk.is_understood())
    summary = await summarized_by_itself(talk)

    async def archived() -> Any:
        return await database.fetch("SELECT summary_text FROM context_summaries")

    rows: Any = await wait_until(archived, "the summary is archived")
    assert [row["summary_text"] for row in rows] == [summary]

    # What was said can be found, by whoever asks for it later, and a prompt is made of all that.
    best = await found_later(PostgresMemory(database_url))
    assert (best.session_id, best.speaker, "TP53" in best.text) == ("monday", "Bob", True)
    ask = ("build", "monday", "--query", QUESTION, "--explain", "--json")
    told = json.loads(done(*ask, database_url=database_url, context_deadline=5))
    assert best.id in [one["id"] for one in told["receipts"] if one["outcome"] == "included"]
    assert "Conversation so far:" in str(told["messages"])

    # Until it is to be forgotten.
    done("forget", "monday", "--yes", database_url=database_url)
    for table in ("context_summaries", "context_memories"):
        assert await database.fetchval(f"SELECT count(*) FROM {table}") == 0


def is_understood(state: Any) -> None:
    assert all(entry["keywords"] for entry in long_ones(state))
    assert "Okazaki fragments" in state["raw_recent_buffer"][3]["keywords"]
    assert state["raw_recent_buffer"][2]["keywords"] == []
    assert state["current_domains"][0] == "Biology / Life Sciences"


async def summarized_by_itself(talk: Talk) -> str:
    """The summary. Nobody ends the session: three seconds after the first word, the buffer's age is enough."""

    async def summarized() -> Any:
        return (await talk.state())["rolling_summary"]["message_count"] == 6

    await wait_until(summarized, "the buffer is summarized by itself")
    state = await talk.state()
    assert state["analyst"] == {"keywords": "text", "domains": "text", "summary": "text"}
    assert state["raw_recent_buffer"] == []
    text: str = state["rolling_summary"]["text"]
    assert "TP53" in text
    assert "Bob" in text
    return text


async def found_later(memory: PostgresMemory) -> Memory:
    """The message that answers the question best."""

    async def found() -> Any:
        return await memory.search("default", MemoryQuery(QUESTION, filter=MemoryFilter(kinds=("message",))))

    best: Any = await wait_until(found, "the messages are remembered")
    await memory.close()
    return best[0].memory
