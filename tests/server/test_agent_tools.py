"""Agents use the same services by the Model Context Protocol: at ``/mcp`` with a credential, and over a pipe."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from context_builder.server.agent_tools import _short
from tests.services.api_server import ApiServer
from tests.services.running import push, running, state
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

READING = {
    "build_context",
    "get_context",
    "search_memory",
    "session_state",
    "explain_point",
    "list_sessions",
    "recent_points",
    "build_turn",
}
DESTRUCTIVE = {"correct_message", "rename_speaker", "strike_message", "forget"}
REPEATABLE = {"rate_context", "remember"}
TOOLS = READING | DESTRUCTIVE | REPEATABLE | {"send_message"}


class Agent:
    """Calls tools at ``/mcp``, each call alone."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Accept": "application/json, text/event-stream"}
        answer = await self._client.post("/mcp", json=body, headers=headers)
        assert answer.status_code in {200, 400, 404}, answer.text
        told: dict[str, Any] = answer.json()
        return told.get("result", told)

    async def call(self, tool: str, **arguments: Any) -> tuple[bool, Any]:
        """Whether it went well, and what it returned or the error's text."""
        result = await self.ask("tools/call", name=tool, arguments=arguments)
        if result.get("isError"):
            return False, result["content"][0]["text"]
        return True, result["structuredContent"]


async def test_the_tools_are_there_for_whoever_shows_a_credential(api: ApiServer) -> None:
    async with api.client() as nobody, api.client(api.key(Role.READER)) as client:
        assert (await nobody.post("/mcp", json={})).status_code == 401
        assert (await client.post("/mcp", json={}, headers={"Host": "evil.test"})).status_code == 403
        assert (await client.post("/mcp", json={}, headers={"Origin": "http://evil.test"})).status_code == 403
        listed = await Agent(client).ask("tools/list")
        assert {tool["name"] for tool in listed["tools"]} == TOOLS
        assert all(tool["description"] for tool in listed["tools"])
        assert not [name for tool in listed["tools"] for name in tool["inputSchema"]["properties"] if "_" in name]
        parameters = [one for tool in listed["tools"] for one in tool["inputSchema"]["properties"].values()]
        assert all(one.get("description") for one in parameters)
        hints = {tool["name"]: tool["annotations"] for tool in listed["tools"]}
        assert {name for name, one in hints.items() if one["readOnlyHint"]} == READING
        assert {name for name, one in hints.items() if one["idempotentHint"]} == READING | REPEATABLE
        assert {name for name, one in hints.items() if one["destructiveHint"]} == DESTRUCTIVE
        templates = (await Agent(client).ask("resources/templates/list"))["resourceTemplates"]
        assert {one["uriTemplate"] for one in templates} == {"session://{id}/state", "package://{id}"}


async def test_an_agent_talks_and_remembers(api: ApiServer, redis: Redis) -> None:
    async with running(redis, buffer_window=0.2), api.client(api.key()) as client:
        agent = Agent(client)
        assert await agent.call("send_message", sessionId="monday", text="Whales sing.", speaker="Ida") == (
            True,
            {"accepted": 1},
        )
        assert await agent.call("send_message", sessionId="nosuch", text="Hello?") == (
            True,
            {"accepted": 1, "unheard": True},
        )

        async def summarized() -> bool:
            return bool((await state(redis)).get("rolling_summary", {}).get("points"))

        await wait_until(summarized, "it is summarized")
        went_well, held = await agent.call("session_state", sessionId="monday")
        assert (went_well, held["session_id"]) == (True, "monday")
        _, listed = await agent.call("list_sessions")
        assert ("monday", "running") in [(one["sessionId"], one["status"]) for one in listed["sessions"]]
        went_well, recent = await agent.call("recent_points", sessionId="monday")
        assert (went_well, recent["points"][0]["text"]) == (True, "Whales sing.")
        assert len(orjson.dumps(recent)) < 2_000
        _, later = await agent.call("recent_points", sessionId="monday", since=recent["until"])
        assert later == {"points": [], "until": recent["until"], "more": 0}
        assert await agent.call("explain_point", sessionId="monday", pointId=999) == (
            False,
            "the summary of monday has no point 999",
        )
        for tool in ("session_state", "explain_point", "recent_points"):
            told = await agent.call(tool, sessionId="nosuch")
            assert told == (False, "there is no session nosuch; list_sessions names those there are")
        went_well, explained = await agent.call("explain_point", sessionId="monday")
        assert went_well
        assert explained["points"][0]["sources"][0]["text"] == "Whales sing."
        read = await agent.ask("resources/read", uri="session://monday/state")
        assert orjson.loads(read["contents"][0]["text"])["session_id"] == "monday"
        listed = (await agent.ask("resources/list"))["resources"]
        assert "session://monday/state" in [one["uri"] for one in listed]
        went_well, turn = await agent.call("build_turn", sessionId="monday", query="Do whales sing?")
        assert went_well
        assert any("Whales sing." in str(one["content"]) for one in turn["messages"])
        assert turn["messages"][-1]["content"] == "Do whales sing?"
        assert all(one["content"] for one in turn["messages"])
        assert turn["memory"]
        for tool, arguments in (("correct_message", {"text": "x"}), ("strike_message", {})):
            told = await agent.call(tool, sessionId="monday", message="77", **arguments)
            assert told == (False, "there is no message 77 in monday")
        assert await agent.call("build_turn", sessionId="never", query="x") == (
            False,
            "there is no session never; list_sessions names those there are",
        )


def test_new_points_come_in_order_and_are_short() -> None:
    points = [{"id": number, "text": f"Point {number} " + "x" * 300, "cites": [1]} for number in range(1, 21)]
    first = _short(points)
    assert [one["id"] for one in first] == list(range(1, len(first) + 1))
    one = _short([{"id": 1, "text": "🐳" * 2_000, "cites": list(range(900))}])
    many = _short([{"id": n, "text": "Yes.", "cites": [n], "speakers": ["Ida", "Kai"]} for n in range(99)])
    for short in (first, one, many):
        assert len(orjson.dumps({"points": short})) < 2_000


async def test_an_agent_remembers_and_an_admin_forgets(api: ApiServer) -> None:
    async with api.client(api.key()) as writer, api.client(api.key(Role.ADMIN)) as admin:
        agent, boss = Agent(writer), Agent(admin)
        went_well, kept = await agent.call("remember", text="The boiler is serviced in May.", speaker="Ben")
        assert went_well
        assert await agent.call("remember", text="The boiler is serviced in May. ", speaker="Ben") == (True, kept)
        assert (await agent.call("remember", text=" "))[0] is False
        _, found = await agent.call("search_memory", query="boiler", speaker="Ben", kind="note")
        assert [one["id"] for one in found["memories"]] == [kept["id"]]
        assert await agent.call("forget", ids=[kept["id"]]) == (False, "this needs the role admin")
        assert await boss.call("forget", ids=[kept["id"], "note:0"]) == (
            False,
            "1 forgotten; there is no memory note:0",
        )
        assert await agent.call("search_memory", query="boiler", kind='["note", "point"]') == (True, {"memories": []})


async def test_an_agent_builds_context_and_opens_it_again(api: ApiServer) -> None:
    async with api.client(api.key()) as client:
        artifact = {"kind": "document", "title": "Moorings", "content": "The mooring is at forty metres."}
        await client.put("/knowledge/artifacts/artifact:mooring", json=artifact)
        agent = Agent(client)
        went_well, built = await agent.call(
            "build_context", intent="How deep is the mooring?", pinned=["artifact:mooring"]
        )
        assert went_well
        assert "forty metres" in built["prompt"]
        package_id = built["contextPackageId"]
        assert (await agent.call("get_context", contextPackageId=package_id))[1]["tokensUsed"] == built["tokensUsed"]
        read = await agent.ask("resources/read", uri=f"package://{package_id}")
        assert orjson.loads(read["contents"][0]["text"])["contextPackageId"] == package_id


@pytest.mark.parametrize(
    "named",
    [
        {"tokenBudget": 300, "taskId": "t-7", "projectId": "kelp", "sessionIds": ["monday"]},
        {"tokenBudget": 300, "taskId": "t-7", "projectId": "kelp", "sessionIds": '["monday"]'},
        {"token_budget": 300, "task_id": "t-7", "project_id": "kelp", "session_ids": ["monday"]},
    ],
)
async def test_arguments_are_known_by_either_name(api: ApiServer, named: dict[str, Any]) -> None:
    async with api.client(api.key()) as client:
        document = {"kind": "document", "title": "Depths", "content": "Ten metres.", "projectId": "kelp"}
        assert (await client.put("/knowledge/artifacts/artifact:depths", json=document)).is_success
        went_well, built = await Agent(client).call("build_context", intent="How deep?", **named)
        assert (went_well, built["tokenBudget"], built["taskId"]) == (True, 300, "t-7")
        audit = (await client.get(f"/knowledge/context/{built['contextPackageId']}/audit")).json()
        assert audit["request"]["scope"] == {"projectId": "kelp", "moduleId": "", "sessionIds": ["monday"]}
        for name in ("contextPackageId", "context_package_id"):
            assert (await Agent(client).call("get_context", **{name: built["contextPackageId"]}))[0]


@pytest.mark.parametrize("limit", [None, "null", "", "5", 5.0, " 5 "])
async def test_arguments_that_models_write_as_text_or_null_are_answered(api: ApiServer, limit: Any) -> None:
    async with api.client(api.key(Role.READER)) as client:
        agent = Agent(client)
        assert (await agent.call("search_memory", query="boiler", limit=limit))[0]
        went_well, built = await agent.call("build_context", intent="boiler", sessionIds="null", taskId=None, pinned="")
        assert (went_well, built["taskId"]) == (True, "")


async def test_a_wrong_argument_is_named_in_one_line_without_its_value(api: ApiServer) -> None:
    async with api.client(api.key(Role.READER)) as client:
        went_well, told = await Agent(client).call("search_memory", query="x", limit="hunter2")
    assert not went_well
    assert told.startswith("limit: ")
    assert "\n" not in told
    assert "hunter2" not in told


async def test_what_an_agent_may_not_is_refused_in_our_words(api: ApiServer, redis: Redis) -> None:
    await push(redis, {"text": "Whales sing.", "speaker": "Ida", "message_number": 1})
    reader, other, nobody = api.key(Role.READER), api.key(tenant="other"), api.issuer.signed(roles=[])
    async with running(redis), api.client(reader) as first, api.client(other) as second, api.client(nobody) as third:
        await wait_until(lambda: redis.exists("context_builder:monday:state"), "there is a state")
        message = {"sessionId": "monday", "text": "hunter2"}
        assert await Agent(first).call("send_message", **message) == (False, "this needs the role writer")
        nothing = (False, "there is no session monday; list_sessions names those there are")
        assert await Agent(second).call("send_message", **message) == nothing
        assert await Agent(second).call("session_state", sessionId="monday") == nothing
        assert await Agent(second).call("explain_point", sessionId="monday") == nothing
        assert await Agent(second).call("get_context", contextPackageId=f"cpk_{'0' * 26}") == (
            False,
            f"there is no context package cpk_{'0' * 26}",
        )
        never = (False, "there is no session never; list_sessions names those there are")
        assert await Agent(first).call("session_state", sessionId="never") == never
        assert await Agent(third).call("search_memory", query="x") == (False, "this needs the role reader")
        assert "contents" not in await Agent(second).ask("resources/read", uri="session://monday/state")
        for wrong in ({"sessionId": "mon day"}, {"sessionId": "*"}):
            went_well, told = await Agent(first).call("session_state", **wrong)
            assert (went_well, "1 to 128" in told) == (False, True)
        assert not (await Agent(first).call("build_context", intent="x", tokenBudget=0))[0]
        assert not (await Agent(first).call("search_memory", query="x", limit=1000))[0]
    assert "hunter2" not in api.daemon.output
