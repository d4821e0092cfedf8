"""Read this first: what happens to a conversation, from the first word to the archive, with nothing pretended."""

from __future__ import annotations

import json

import asyncpg
import pytest
from redis.asyncio import Redis

from context_builder.domains import DOMAINS
from tests.services.small_model import SmallModelServer
from tests.services.waiting import wait_until
from tests.stories.conftest import Command
from tests.stories.talk import ADVICE, SAID, Talk

pytestmark = [pytest.mark.engines, pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(400)]


async def test_what_people_say_becomes_a_memory(
    context_builder: Command,
    redis: Redis,
    database_url: str,
    database: asyncpg.Connection,
    small_model: SmallModelServer,
) -> None:
    talk = Talk(redis)
    settings = {
        "database_url": database_url,
        "openai_base_url": small_model.base_url,
        "keyword_model": "smollm2",
        "domain_model": "smollm2",
        "summary_model": "smollm2",
        "keyword_batch": 1,  # so small a model reads one message at a time,
        "llm_attempts": 1,  # and where it fails once, plain text analysis stands in
    }
    assert context_builder("migrate", **settings).wait() == 0
    daemon = context_builder("run", "monday", **settings)

    # People speak. What they say is visible at once, before any model has seen it.
    await talk.happens()
    buffer = await talk.is_visible()
    assert [(entry["speaker"], entry["text"]) for entry in buffer] == [*SAID, ("Consilience", ADVICE)]

    # Then it is understood: keywords of each message, and what the conversation is about.
    state = await talk.is_understood()
    assert any(entry["keywords"] and entry["analyst"] == "openai" for entry in state["raw_recent_buffer"])
    assert set(state["current_domains"]) <= set(DOMAINS)
    assert state["consilience_responses"][0]["metadata"] == {"priority": "P0"}

    # Nobody speaks for four seconds: silence, the moment for an assistant to come in.
    await wait_until(talk.is_silent, "silence falls")

    # The conversation ends. What is worth keeping stays as points that cite their messages.
    assert context_builder("end", "monday", **settings).wait(90) == 0
    assert daemon.wait() == 0
    summary = (await talk.state())["rolling_summary"]
    assert (summary["covers_messages"], summary["message_count"]) == ([1, 5], 6)
    assert summary["points"]
    assert all(1 <= len(point["ids"]) <= 5 for point in summary["points"])

    # And it is in the archive, once.
    (row,) = await database.fetch("SELECT * FROM context_summaries WHERE session_id = 'monday'")
    assert (row["summary_text"], row["message_count"]) == (summary["text"], 6)
    assert set(json.loads(row["domains_covered"])) <= set(DOMAINS)
