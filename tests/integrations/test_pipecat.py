"""Pipecat takes part in a conversation, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.integrations.conftest import heard
from tests.services.daemon import ROOT
from tests.services.redis_server import RedisServer
from tests.services.running import state
from tests.services.waiting import wait_until

pytest.importorskip("pipecat", reason="pip install 'context-builder[pipecat]'")

pytestmark = [pytest.mark.engines, pytest.mark.slow, pytest.mark.timeout(900)]


async def test_a_pipeline_takes_part_in_a_conversation(
    redis_server: RedisServer, meeting: Redis, tmp_path: Path
) -> None:
    told = await story(redis_server.url, tmp_path)
    check_record(told["record"])
    for placed in told["instructed"].values():
        first, *others = placed["given"]
        assert placed["own"] == "Be yourself."
        assert first["role"] == "developer"  # services with their own leave out a first "system"
        assert first["content"].startswith("Be brief.\n\n")
        assert "forty metres" in first["content"]
        assert "system" not in {one["role"] for one in others}
    assert told["transcriptions"]["passed_on"] == told["transcriptions"]["sent"]
    assert told["restated"]["passed_on"] == told["restated"]["sent"]
    assert told["silence"]["told"] == [0, 1, 1, 2]
    (asked,) = told["example"]["asked"]
    (instructions,) = told["example"]["instructions"]
    assert instructions.startswith("You take part")
    assert {one["role"] for one in asked} == {"user"}
    assert {"role": "user", "content": "Alice: We label the clips by hand."} in asked
    assert asked[-1] == {"role": "user", "content": "Ida: How are clips labelled?"}
    await wait_until(lambda: heard(meeting, "They —"), "all are heard")
    published = await state(meeting)
    said = [(one["speaker"], one["text"]) for one in published["raw_recent_buffer"]]
    assert said.count(("Ida", "How are clips labelled?")) == 1
    assert ("Ann", "From quay four.") in said
    begin = said.index(("Ida", "We count."))
    assert said[begin : begin + 3] == [("Ida", "We count."), ("user-2", "We stop. 🐳"), ("Unknown", "Who is this?")]
    assert [text for _, text in said if text.startswith("Clip")] == [f"Clip {place}" for place in range(500)]
    assert [text for who, text in said if who == "user-4"] == ["my order number", "is four two one.", "The small ones."]
    assert [one["text"] for one in published["consilience_responses"]] == [
        "Forty metres.",
        "Good.",
        "Welcome to the harbour.",
        "This call is recorded.",
        "One moment,",
        "Goodbye.",
        "It is deep.",
        "They —",
    ]
    assert [one["speaker"] for one in published["consilience_responses"]][-3:] == ["Consilience", *["Law expert"] * 2]


def check_record(told: dict[str, Any]) -> None:
    """The record is before the question, quoted, and what came after the question stays there."""
    instructions, *record, question, call = told["given"]
    assert question == {"role": "user", "content": "How deep is the mooring?"}
    assert call["role"] == "assistant"
    assert instructions["role"] == "system"  # any other is the user's for models of Anthropic and Google
    assert instructions["content"].startswith("Be brief.\n\n")
    assert "forty metres" in instructions["content"]
    assert told["instructions"].startswith("Be quick.\n\n")
    assert "forty metres" in told["instructions"]
    assert {one["role"] for one in told["beside_instructions"]} == {"user"}
    assert told["both_instructions"].startswith("Be quick.\n\nBe brief.\n\n")  # services leave out one of two
    assert "forty metres" in told["both_instructions"]
    assert "system" not in {one["role"] for one in told["beside_both"]}
    first, record_part = (part["text"].strip() for part in told["of_parts"])
    assert first == "Be kind."
    assert record_part.startswith(("Relevant memory:", "Conversation so far:"))  # a topic, where one is known by then
    assert told["without_instructions"] == "developer"  # services drop a first "system"
    alice = {"role": "user", "content": "Alice: We label the clips by hand."}
    assert alice in record
    assert (told["speculation"], told["kept"], told["of_nothing"]) == (True, 3, alice)


async def story(redis_url: str, folder: Path) -> dict[str, Any]:
    """What the program tells."""
    program = ROOT / "tests/integrations/pipecat_story.py"
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), redis_url]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))
