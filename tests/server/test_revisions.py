"""Messages are corrected and struck, and speakers renamed, over HTTP and by agents."""

from __future__ import annotations

import re
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from tests.cli.publishing import publish
from tests.cli.samples import sample, sample_state
from tests.server.test_agent_tools import Agent
from tests.services.api_server import ApiServer
from tests.services.problems import problem
from tests.services.running import push, running, state
from tests.services.waiting import wait_until
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

ONE = "/sessions/monday/messages/1"


async def says(redis: Redis, *expected: tuple[str, str]) -> None:
    """Returns once these are the speakers and texts of the buffer."""

    async def seen() -> Any:
        buffer = (await state(redis)).get("raw_recent_buffer", [])
        return [(one["speaker"], one["text"]) for one in buffer] == [*expected]

    await wait_until(seen, f"the buffer has {expected}")


async def test_what_was_said_is_changed_by_its_number(api: ApiServer, redis: Redis) -> None:
    async with running(redis), api.client(api.key()) as client:
        await push(redis, spoken(1, "fifteen"), spoken(2, "It is blue.", "Speaker 2"))
        await says(redis, ("Alice", "fifteen"), ("Speaker 2", "It is blue."))
        answer = await client.patch(ONE, json={"text": "fifty", "speaker": "Bo"})
        assert (answer.status_code, answer.json()) == (202, {"accepted": 1})
        await says(redis, ("Bo", "fifty"), ("Speaker 2", "It is blue."))
        assert (await client.put("/sessions/monday/speakers/Speaker%202", json={"name": "Ida"})).status_code == 202
        await says(redis, ("Bo", "fifty"), ("Ida", "It is blue."))
        assert (await client.delete("/sessions/monday/messages/id:1")).status_code == 202
        await says(redis, ("Ida", "It is blue."))
        for again in (await client.delete(ONE), await client.patch(ONE, json={"text": "x"})):
            assert problem(again)["status"] == 404


async def test_what_cannot_be_changed_is_told(api: ApiServer, redis: Redis) -> None:
    async with running(redis), api.client(api.key()) as client, api.client(api.key(Role.READER)) as reader:
        await push(redis, spoken(1, "fifteen"))
        await says(redis, ("Alice", "fifteen"))
        for path in ("/sessions/monday/messages/7", "/sessions/monday/messages/id:7", "/sessions/nowhere/messages/1"):
            assert problem(await client.patch(path, json={"text": "x"}))["status"] == 404
            assert problem(await client.delete(path))["status"] == 404
        for body in ({}, {"text": " "}, {"speaker": "Consilience", "text": None}):
            assert (await client.patch(ONE, json=body)).status_code in {202, 422}, body
        assert problem(await client.patch("/sessions/monday/messages/first", json={"text": "x"}))["status"] == 422
        assert problem(await client.put("/sessions/nowhere/speakers/A", json={"name": "B"}))["status"] == 404
        assert problem(await client.put("/sessions/monday/speakers/Consilience", json={"name": "B"}))["status"] == 422
        for refused in (
            await reader.patch(ONE, json={"text": "x"}),
            await reader.delete(ONE),
            await reader.put("/sessions/monday/speakers/Alice", json={"name": "B"}),
        ):
            assert problem(refused)["status"] == 403
        await says(redis, ("Alice", "fifteen"))


async def test_an_agent_changes_what_was_said(api: ApiServer, redis: Redis) -> None:
    async with running(redis), api.client(api.key()) as client:
        agent, accepted = Agent(client), (True, {"accepted": 1})
        await push(redis, spoken(1, "fifteen"), spoken(2, "Off the record."))
        await says(redis, ("Alice", "fifteen"), ("Alice", "Off the record."))
        assert await agent.call("correct_message", sessionId="monday", message=1, text="fifty") == accepted
        assert await agent.call("strike_message", sessionId="monday", message="2") == accepted
        assert await agent.call("rename_speaker", sessionId="monday", old="Alice", new="Ida") == accepted
        await says(redis, ("Ida", "fifty"))
        went_well, _ = await agent.call("strike_message", sessionId="monday", message="2")
        assert not went_well
        assert (await agent.call("correct_message", sessionId="monday", message="1"))[0] is False


async def test_the_page_leads_past_messages_that_were_struck(api: ApiServer, redis: Redis) -> None:
    first = {**sample_state()["raw_recent_buffer"][0], "id": 1, "text": "The first."}
    left = {"raw_recent_buffer": [first], "consilience_responses": [], "received_messages": 45}
    await publish(redis, sample(session_id="gaps", state=sample_state(session_id="gaps", **left)))
    async with api.client(headers={"Origin": api.url}) as client:
        await client.post("/ui/login", data={"credential": api.key()})
        page = (await client.get("/ui/sessions/gaps/revisions")).text
        for _ in range(2):
            assert "The first." not in page
            (earlier,) = re.findall(r'href="([^"]+before=\d+)"', page)
            page = (await client.get(earlier)).text
        assert "The first." in page
        assert "before=" not in page
