"""Sessions over HTTP: what they publish, what was said, what is to be said, and prompts for their turns."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import orjson
import pytest
from redis.asyncio import Redis

from context_builder.analysis.analyst import DomainResult
from context_builder.clock import SystemClock
from context_builder.memory.memory import Memory, point_id
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.session.conversation.changes import Changes
from context_builder.session.conversation.memory_batch import Amendment, MemoryBatch, of_message
from context_builder.session.conversation.responses import Responses
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import decode
from tests.server.page.conftest import logged_in
from tests.services.api_server import TENANT, ApiServer
from tests.services.problems import problem
from tests.services.running import push, running
from tests.services.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.engines


def said(number: int, text: str, speaker: str = "Ida") -> dict[str, Any]:
    return {"message_number": number, "speaker": speaker, "text": text, "timestamp": f"2026-11-22T10:30:{number:02}"}


async def messages(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/sessions/monday/messages", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


async def test_what_is_sent_is_said(api: ApiServer, redis: Redis) -> None:
    async with running(redis), api.client(api.key()) as client:
        answer = await client.post("/sessions/monday/messages", json=said(1, "Whales sing."))
        assert (answer.status_code, answer.json()) == (202, {"accepted": 1})
        await client.post("/sessions/monday/messages", json=[said(2, "Where?"), said(3, "In the bay.")])

        async def heard() -> bool:
            answer = await client.get("/sessions/monday/state")
            return answer.status_code == 200 and len(answer.json()["raw_recent_buffer"]) == 3

        await wait_until(heard, "the session has heard them")
        assert [one["text"] for one in await messages(client)] == ["Whales sing.", "Where?", "In the bay."]
        (listed,) = (await client.get("/sessions")).json()
        assert (listed["session_id"], listed["status"], listed["messages"]) == ("monday", "running", 3)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ([said(1, "Fine."), {"speaker": "Ida"}], 1),
        ([said(1, "Fine."), said(2, "Fine."), {"text": " "}], 2),
        ({"text": "Hello", "message_number": -1}, 0),
        ({"text": "Hello", "message_number": "one"}, 0),
        ([said(1, "x" * 300_000)], 0),
    ],
)
async def test_one_message_that_cannot_be_read_keeps_out_all(
    api: ApiServer, redis: Redis, body: Any, place: int
) -> None:
    async with api.client(api.key()) as client:
        answer = await client.post("/sessions/monday/messages", json=body)
    assert (answer.status_code, problem(answer)["index"]) == (422, place)
    assert "xxx" not in answer.text
    assert not await redis.exists("context_builder:monday:input")


async def test_another_tenant_has_no_sessions(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Whales sing."))
    async with running(redis), api.client(api.key(tenant="other")) as client:
        assert (await client.get("/sessions")).json() == []
        for name in ("monday", "never"):
            for page in ("state", "messages", "events"):
                assert (await client.get(f"/sessions/{name}/{page}")).status_code == 404
            assert (await client.post(f"/sessions/{name}/messages", json=said(2, "Hello"))).status_code == 404
            turn = {"query": "What was said?", "tokenBudget": 500}
            assert (await client.post(f"/sessions/{name}/turn", json=turn)).status_code == 404
    assert await redis.llen("context_builder:monday:input") == 0  # type: ignore[misc]


async def test_a_session_that_never_was_is_not_found(api: ApiServer, redis: Redis) -> None:
    async with api.client(api.key()) as client:
        for page in ("state", "messages", "events"):
            refused = await client.get(f"/sessions/never/{page}")
            assert (refused.status_code, "no such session" in refused.json()["detail"]) == (404, True)
        turn = {"query": "What was said?", "tokenBudget": 500}
        assert (await client.post("/sessions/never/turn", json=turn)).status_code == 404


@pytest.mark.parametrize("value", [b"\xff", b"[]", b"garbage", b"[" * 100_000])
@pytest.mark.parametrize("key", ["state", "checkpoint"])
async def test_what_no_session_wrote_is_told(api: ApiServer, redis: Redis, key: str, value: bytes) -> None:
    if key == "state":
        await redis.set("context_builder:monday:state", value)
    else:
        written = {"head": value, "summary": value}
        await redis.hset("context_builder:monday:checkpoint", mapping=written)  # type: ignore[misc]
    async with api.client(api.key()) as client:
        await logged_in(api, client, api.key())
        for page in ("state", "messages"):
            refused = await client.get(f"/sessions/monday/{page}")
            assert (refused.status_code, problem(refused)["type"]) == (503, "urn:context-builder:refused"), page
        assert [
            (await client.get(f"/ui/sessions{page}")).status_code for page in ("", "/monday", "/monday/revisions")
        ] == [200, 503, 503]


async def test_messages_are_there_after_they_left_the_buffer(api: ApiServer, redis: Redis) -> None:
    memory = PostgresMemory(api.database_url)
    old = [
        Memory(f"tuesday:message:{place}", f"Old words {place}.", session_id="tuesday", speaker="Ida", position=place)
        for place in range(1, 8)
    ]
    decided = {"point": "decision", "cites": [6]}
    point = Memory(point_id("tuesday", 1, 1.0), "Decided.", kind="point", session_id="tuesday", metadata=decided)
    await memory.remember(TENANT, [*old, point])
    await memory.close()
    entries = [{"id": place, "text": f"New words {place}.", "speaker": "Ida"} for place in (7, 8, 9)]
    await redis.set(
        "context_builder:tuesday:state", orjson.dumps({"session_id": "tuesday", "raw_recent_buffer": entries})
    )
    async with api.client(api.key()) as client:

        async def ids(**query: int | str) -> list[int]:
            answer = await client.get("/sessions/tuesday/messages", params=query)
            return [one["id"] for one in answer.json()]

        assert await ids() == [1, 2, 3, 4, 5, 6, 7, 8, 9]
        assert await ids(after=2, limit=3) == [3, 4, 5]
        assert await ids(after=5, limit=3) == [6, 7, 8]
        assert await ids(after=9) == []
        for six in (6, "message:tuesday/6", "point:tuesday/1"):  # the refs are those of sources' links
            assert await ids(around=six, limit=4) == [4, 5, 6, 7]
        assert await ids(around="point:tuesday/9", limit=2) == [1, 2]
        assert (await client.get("/sessions/tuesday/messages?around=a%20b")).status_code == 422
        found = (await client.get("/sessions/tuesday/messages", params={"after": 5, "limit": 2})).json()
        assert [one["text"] for one in found] == ["Old words 6.", "New words 7."]
        await redis.delete("context_builder:tuesday:state")
        assert await ids(after=7) == []  # known still, though there is nothing newer


async def test_messages_that_wait_for_the_memory_are_read_as_corrected_since(api: ApiServer, redis: Redis) -> None:
    said = [Memory(f"m{n}", "fifteen", session_id="waiting", speaker="Ann", position=n) for n in (1, 2)]
    correction = MemoryBatch("waiting", amended=(Amendment("m2", "fifty", "Bo"),), renamed=(("Ann", "Ida"),))
    batches = [MemoryBatch("waiting", said).encode(), correction.encode()]
    await redis.rpush("context_builder:waiting:memory_outbox", *batches)  # type: ignore[misc]
    await redis.set("context_builder:waiting:state", orjson.dumps({"session_id": "waiting"}))
    async with api.client(api.key()) as client:
        found = (await client.get("/sessions/waiting/messages")).json()
    assert [(one["speaker"], one["text"]) for one in found] == [("Ida", "fifteen"), ("Bo", "fifty")]


RESPONSE = {
    "message_number": 4,
    "speaker": "Consilience",
    "text": "From the record.",
    "timestamp": "2025-10-02T10:31:02Z",
    "metadata": {"trigger_type": "explicit_request"},
}
QUESTION = {"speaker": "Ida", "text": "Which clips?", "timestamp": "2025-10-02T10:30:45.123456", "confidence": 0.75}


async def test_messages_keep_their_fields_after_they_left_the_buffer(api: ApiServer, redis: Redis) -> None:
    now, changes, responses = SystemClock().now(), Changes(), Responses(9, 9_999)
    entries = []
    for number, fields in enumerate((QUESTION, RESPONSE), 1):
        message = decode(orjson.dumps(fields), now, max_bytes=9_999)
        entries.append(BufferedMessage(number, message, now))
        entries[-1].tag(DomainResult({"Physics / Astronomy": 0.9}, (), "stub"))
    responses.add(entries[1], message, changes)
    state = {"raw_recent_buffer": [one.wire() for one in entries], "consilience_responses": responses.decoded()}
    await redis.set("context_builder:friday:state", orjson.dumps({"session_id": "friday", **state}))
    async with api.client(api.key()) as client:
        buffered = (await client.get("/sessions/friday/messages")).json()
        memory = PostgresMemory(api.database_url)
        await memory.remember(TENANT, [of_message("friday", one, responses.records.get(one.id)) for one in entries])
        await memory.close()
        assert (await client.get("/sessions/friday/messages")).json() == buffered
        await redis.delete("context_builder:friday:state")
        remembered = (await client.get("/sessions/friday/messages")).json()
    for one, other in zip(buffered, remembered, strict=True):
        assert {name: one[name] for name in other} == other
        assert one.keys() - other.keys() <= {"time", "analyst"}
    assert remembered[1]["metadata"] == RESPONSE["metadata"]
    assert [one["timestamp"] for one in remembered] == [QUESTION["timestamp"], RESPONSE["timestamp"]]
    assert remembered[0]["confidence"] == 0.75


async def test_a_turn_is_built_within_its_budget(api: ApiServer, redis: Redis) -> None:
    await push(redis, said(1, "Humpbacks sing in the bay."), said(2, "How loud is the boat?"))
    async with running(redis), api.client(api.key()) as client:

        async def built(**turn: Any) -> httpx.Response:
            body = {"query": "Where do humpbacks sing?", "tokenBudget": 500, **turn}
            return await client.post("/sessions/monday/turn", json=body)

        async def heard() -> bool:
            return len((await client.get("/sessions/monday/messages")).json()) == 2

        await wait_until(heard, "both are heard")
        survey = {"kind": "document", "title": "Survey", "content": "Ten metres deep.", "projectId": "kelp"}
        (await client.put("/knowledge/artifacts/artifact:kelp/survey", json=survey)).raise_for_status()
        answer = (await built(userId="ida", packageScope={"projectId": "kelp"})).json()
        assert set(answer) >= {"messages", "tokensUsed", "receipts", "debug"}
        assert 0 < answer["tokensUsed"] <= 500
        assert any("Humpbacks sing" in message["content"] for message in answer["messages"])
        assert answer["debug"]["tenant_id"] == TENANT
        refused = await built(tokenBudget=2)
        assert (refused.status_code, problem(refused)["limit"]) == (422, 2)


async def test_memories_are_found_by_their_own_tenant(api: ApiServer) -> None:
    memory = PostgresMemory(api.database_url)
    await memory.remember(TENANT, [Memory("narwhal:1", "A narwhal circles the turbine foundation.", speaker="Ida")])
    await memory.close()
    async with api.client(api.key()) as own, api.client(api.key(tenant="other")) as other:
        query = {"q": "narwhal at the turbine", "limit": 3}  # words of no other test
        found, *_ = (await own.get("/memories/search", params=query)).json()["memories"]
        assert (found["id"], found["text"]) == ("narwhal:1", "A narwhal circles the turbine foundation.")
        assert 0 < found["score"] <= 1
        assert (await other.get("/memories/search", params=query)).json() == {"memories": []}


class Events:
    """Server-sent events as they come."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, Any, int | None]:
        """The next event's name, data and id."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if not line and "event" in fields:
                    return fields["event"], orjson.loads(fields["data"]), int(fields["id"]) if "id" in fields else None
                name, _, value = line.partition(": ")
                if name:
                    fields[name] = value
        raise AssertionError("the stream has ended")
