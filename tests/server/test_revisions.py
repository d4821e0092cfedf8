"""Messages are corrected and struck, and speakers renamed, over HTTP and by agents."""

from __future__ import annotations

import re
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from context_builder.session.keys import Keys
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


async def says(redis: Redis, *expected: tuple[str, str], session_id: str = "monday") -> None:
    """Returns once these are the speakers and texts of the buffer."""

    async def seen() -> Any:
        buffer = (await state(redis, session_id)).get("raw_recent_buffer", [])
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


async def test_who_is_not_shown_the_words_does_not_correct_them(api: ApiServer, redis: Redis) -> None:
    one = "/sessions/thursday/messages/1"
    told = "The password is hunter22xyzzy."
    stated = {"kind": "document", "title": "Thursday", "content": "", "sensitivity": "confidential"}
    async with (
        running(redis, "thursday"),
        api.client(api.key(Role.ADMIN)) as client,
        api.client(headers={"Origin": api.url}) as page,
    ):
        await push(redis, spoken(1, told), spoken(2, "It is blue."), session_id="thursday")
        await says(redis, ("Alice", told), ("Alice", "It is blue."), session_id="thursday")
        (await client.put("/knowledge/artifacts/session:thursday", json=stated)).raise_for_status()
        (shown, _) = (await client.get("/sessions/thursday/messages")).json()
        assert "hunter22xyzzy" not in shown["text"]
        refused = await client.patch(one, json={"text": shown["text"].replace("password", "key")})
        assert (problem(refused)["status"], "who sees the words" in refused.text) == (403, True)
        agent = Agent(client)
        pushed = "/sessions/thursday/messages"
        for same in ({"corrects": 1}, {"corrects": "1", "speaker": "Alice"}, spoken(1, "")):
            refused = await client.post(pushed, json=[spoken(3, "New."), {**same, "text": "It is a key."}])
            assert (problem(refused)["status"], "who sees the words" in refused.text) == (403, True)
        again = [spoken(1, told), {"corrects": 2, "text": "It is red."}, spoken(2, "It is violet.")]
        assert (await client.post(pushed, json=again)).status_code == 202
        await says(redis, ("Alice", told), ("Alice", "It is violet."), session_id="thursday")
        went_well, why = await agent.call("correct_message", sessionId="thursday", message="1", text="It is a key.")
        assert (went_well, "who sees the words" in str(why)) == (False, True)

        await page.post("/ui/login", data={"credential": api.key()})
        form = (await page.get("/ui/sessions/thursday/revisions?message=1")).text
        assert ("<textarea" in form, 'name="speaker"' in form, "Strike" in form) == (False, True, True)
        assert "<textarea" in (await page.get("/ui/sessions/thursday/revisions?message=2")).text

        assert (await client.patch("/sessions/thursday/messages/2", json={"text": "It is green."})).status_code == 202
        assert (await client.patch(one, json={"speaker": "Bo"})).status_code == 202
        await says(redis, ("Bo", told), ("Alice", "It is green."), session_id="thursday")
        assert (await client.delete(one)).status_code == 202
        await says(redis, ("Alice", "It is green."), session_id="thursday")

        stated["sensitivity"] = "restricted"
        (await client.put("/knowledge/artifacts/session:thursday", json=stated)).raise_for_status()
        sent = (spoken(2, "It is red."), spoken(2, "It is blue."), spoken(4, "New."))  # the second as at first
        async with api.client(api.key(Role.WRITER)) as writer:
            assert [(await writer.post(pushed, json=message)).status_code for message in sent] == [404, 202, 202]
        (await client.delete("/knowledge/artifacts/session:thursday")).raise_for_status()
        await says(redis, ("Alice", "It is green."), ("Alice", "New."), session_id="thursday")


async def test_other_words_do_not_overtake_what_waits_to_be_taken_in(api: ApiServer, redis: Redis) -> None:
    session, told = "friday", spoken(1, "The password is hunter22xyzzy.")
    stated = {"kind": "document", "title": "Friday", "content": "", "sensitivity": "restricted"}
    await push(redis, told, session_id=session)
    async with api.client(api.key(Role.ADMIN)) as admin, api.client(api.key(Role.WRITER)) as writer:
        for sensitivity, status in (("restricted", 404), ("confidential", 403)):
            stated["sensitivity"] = sensitivity
            (await admin.put(f"/knowledge/artifacts/session:{session}", json=stated)).raise_for_status()
            sent = (spoken(1, "It is a key."), told, spoken(2, "New."))
            answers = [await writer.post(f"/sessions/{session}/messages", json=one) for one in sent]
            assert [one.status_code for one in answers] == [status, 202, 202]
        (await admin.delete(f"/knowledge/artifacts/session:{session}")).raise_for_status()
    await redis.delete(Keys(session).input)


async def test_a_mask_does_not_take_the_place_of_what_was_said(api: ApiServer, redis: Redis) -> None:
    masked = "The password is §§secret(PASSWORD)."
    async with running(redis), api.client(api.key()) as client:
        await push(redis, spoken(1, "The password is hunter22xyzzy."))
        await says(redis, ("Alice", "The password is hunter22xyzzy."))
        answers = (
            await client.patch(ONE, json={"text": masked}),
            await client.post("/sessions/monday/messages", json={"corrects": 1, "text": masked}),
        )
        assert [(one.status_code, "a mask" in one.text) for one in answers] == [(422, True), (422, True)]
        await says(redis, ("Alice", "The password is hunter22xyzzy."))


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
