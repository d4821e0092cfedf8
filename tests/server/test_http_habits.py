"""HTTP as its users expect it: what was read can be sent back, repeated, compared, and asked for in part."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from tests.services.api_server import ApiServer
from tests.services.problems import problem

pytestmark = pytest.mark.engines

BODY: dict[str, Any] = {"kind": "document", "title": "Clips", "content": "Two people label each clip."}


@pytest.fixture
def path() -> str:
    return f"/knowledge/artifacts/{quote(f'artifact:{uuid4().hex}')}"


async def test_what_was_read_is_edited_and_sent_back(api: ApiServer, path: str) -> None:
    async with api.client(api.key()) as client:
        await client.put(path, json=BODY)
        found = (await client.get(path)).json()
        assert (await client.put(path, json=found)).json()["changed"] is False
        answer = await client.put(path, json={**found, "title": "All clips"})
        assert (answer.status_code, answer.json()["changed"]) == (200, True)
        found = (await client.get(path)).json()
        for name, value in {"version": 7, "ref": "artifact:other", "updatedAt": "x", "supersededBy": "a"}.items():
            refused = await client.put(path, json={**found, name: value})
            assert refused.status_code == 422
            assert problem(refused)["errors"][0]["at"] == f"body.{name}"


async def test_what_was_read_redacted_does_not_replace_what_it_hides(api: ApiServer, path: str) -> None:
    async with api.client(api.key()) as client:
        await client.put(path, json={**BODY, "content": "Write to ann@example.org.", "sensitivity": "confidential"})
        refused = await client.put(path, json=(await client.get(path)).json())
    assert (refused.status_code, problem(refused)["errors"][0]["at"]) == (422, "body.projection")


async def test_of_two_who_edit_the_same_the_second_is_told(api: ApiServer, path: str) -> None:
    async with api.client(api.key()) as client:
        assert (await client.put(path, json=BODY, headers={"If-Match": "*"})).status_code == 412
        assert (await client.put(path, json=BODY, headers={"If-None-Match": "*"})).status_code == 200
        assert (await client.put(path, json=BODY, headers={"If-None-Match": "*"})).status_code == 412
        tag = (await client.get(path)).headers["etag"]
        assert (await client.get(path, headers={"If-None-Match": tag})).status_code == 304
        changed = [{**BODY, "content": f"Version {one}."} for one in range(4)]
        sent = [client.put(path, json=one, headers={"If-Match": tag}) for one in changed]
        assert sorted(one.status_code for one in await asyncio.gather(*sent)) == [200, 412, 412, 412]
        assert (await client.delete(path, headers={"If-Match": tag})).status_code == 412
        tag = (await client.get(path)).headers["etag"]
        assert (await client.delete(path, headers={"If-Match": tag})).status_code == 200


async def test_a_call_that_is_made_again_is_done_once(api: ApiServer, redis: Redis) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    async with api.client(api.key()) as client:
        sent = [client.post("/sessions/again/messages", json={"text": "Hello"}, headers=key) for _ in range(4)]
        answers = await asyncio.gather(*sent)
        assert {one.status_code for one in answers} <= {202, 409}
        again = await client.post("/sessions/again/messages", json={"text": "Hello"}, headers=key)
        assert (again.status_code, again.json()) == (202, {"accepted": 1, "unheard": True})
        assert await redis.llen("context_builder:again:input") == 1
        other = await client.post("/sessions/again/messages", json={"text": "Bye"}, headers=key)
        assert (other.status_code, problem(other)["type"].rpartition(":")[2]) == (422, "idempotency_clash")
        bad = {"Idempotency-Key": uuid4().hex}
        for _ in range(2):  # what was refused may be sent again, and is refused again
            assert (await client.post("/sessions/again/messages", json={}, headers=bad)).status_code == 422
    edge = [{"from": "artifact:a", "to": f"artifact:{uuid4().hex}", "type": "x"}]
    async with api.client(api.key()) as client:
        await client.put("/knowledge/edges", json=edge)
        key = {"Idempotency-Key": uuid4().hex}
        gone = [await client.post("/knowledge/edges/delete", json=edge, headers=key) for _ in range(2)]
        assert [one.json() for one in gone] == [{"count": 1}] * 2


async def test_one_callers_key_is_not_anothers(api: ApiServer, redis: Redis) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    for credential in (api.key(Role.WRITER), api.key(Role.ADMIN)):
        async with api.client(credential) as client:
            await client.post("/sessions/own/messages", json={"text": credential}, headers=key)
    assert await redis.llen("context_builder:own:input") == 2


async def test_a_message_that_nobody_hears_is_told_as_such(api: ApiServer, redis: Redis) -> None:
    await redis.set("context_builder:known:state", b'{"session_id": "known"}')
    async with api.client(api.key()) as client:
        for session, unheard in (("unknown", True), ("known", False)):
            answer = await client.post(f"/sessions/{session}/messages", json={"text": "Hello"})
            assert (answer.status_code, answer.json().get("unheard", False)) == (202, unheard)


async def test_sessions_come_in_pages(api: ApiServer, redis: Redis) -> None:
    for number in range(5):
        await redis.lpush(f"context_builder:page{number}:input", b"{}")
    async with api.client(api.key()) as client:
        whole = [one["session_id"] for one in (await client.get("/sessions")).json()]
        found: list[str] = []
        path = "/sessions?limit=2"
        while path:
            answer = await client.get(path)
            found += [one["session_id"] for one in answer.json()]
            path = answer.links.get("next", {}).get("url", "")
        assert found == whole
        assert len(whole) == 5
        assert (await client.get("/sessions?after=nowhere")).status_code == 422


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("/sessions?tenant=other", "query.tenant"),
        ("/sessions?limit=1&limit=2", "query.limit"),
        ("/memories/search?Q=x", "query.Q"),
        ("/sessions?a%20b=1", "query.?"),
    ],
)
async def test_a_parameter_that_is_not_known_is_refused(api: ApiServer, path: str, at: str) -> None:
    async with api.client(api.key()) as client:
        answer = await client.get(path)
    assert (answer.status_code, problem(answer)["errors"][0]["at"]) == (422, at)


async def test_a_parameter_that_is_a_list_is_given_once_for_each_of_it(api: ApiServer) -> None:
    async with api.client(api.key()) as client:
        answer = await client.get("/memories/search?kind=message&kind=point")
    assert {memory["kind"] for memory in answer.json()["memories"]} <= {"message", "point"}


async def test_a_cursor_that_is_none_is_refused(api: ApiServer) -> None:
    async with api.client(api.key()) as client:
        answer = await client.get("/knowledge/context?taskId=x&before=cpk_nowhere")
    assert (answer.status_code, problem(answer)["detail"]) == (422, "query.before: is no package that there is")


async def test_where_json_breaks_is_told(api: ApiServer) -> None:
    headers = {"Content-Type": "application/json"}
    async with api.client(api.key(), headers=headers) as client:
        for target in ("/knowledge/assessments", "/mcp"):
            answer = await client.post(target, content=b'{"ref": "artifact:x",\n "quality": hunter2}')
            told = problem(answer)
            assert (answer.status_code, told["line"], told["column"]) == (422, 2, 13)
            assert "hunter2" not in answer.text


async def test_head_is_answered_as_get_without_the_body(api: ApiServer, redis: Redis) -> None:
    await redis.set("context_builder:monday:state", b'{"session_id": "monday", "revision": 1}')
    async with api.client(api.key()) as client:
        for target in ("/sessions", "/sessions/monday/state", "/livez", "/openapi.json", "/sessions/nowhere/state"):
            got, head = await client.get(target), await client.head(target)
            assert head.status_code == got.status_code
            assert head.content == b""
            assert head.headers["content-type"] == got.headers["content-type"]
        assert (await client.head("/sessions/monday/events")).status_code == 200
    async with api.client() as client:
        assert (await client.head("/sessions")).status_code == 401


def test_two_lengths_of_a_body_end_the_connection(api: ApiServer) -> None:
    with socket.create_connection(("127.0.0.1", api.port)) as one:
        one.settimeout(5)
        head = (
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        )
        one.sendall(f"{head}GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        answer = b""
        while piece := one.recv(10_000):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


async def test_an_answer_may_get_fields_and_a_request_may_not(api: ApiServer) -> None:
    async with api.client() as client:
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    assert "additionalProperties" not in schemas["PutAnswer"]
    assert "additionalProperties" not in schemas["ContextPackage"]
    assert schemas["ContextBuildRequest"]["additionalProperties"] is False


async def test_a_policy_that_is_wrong_is_not_quoted(api: ApiServer) -> None:
    async with api.client(api.key(Role.ADMIN)) as client:
        answer = await client.put(
            "/knowledge/policies/wrong", content="permit(principal, action, resource) when { hunter2.x == 1 };"
        )
    assert answer.status_code == 422
    assert (problem(answer)["line"], "hunter2" in answer.text) == (1, False)


async def test_a_policy_is_refused_by_a_name_that_none_may_have(api: ApiServer) -> None:
    async with api.client(api.key(Role.ADMIN)) as client:
        answer = await client.put("/knowledge/policies/k咭", content="permit(principal, action, resource);")
    assert answer.status_code == 422
    assert "letters, digits" in problem(answer)["detail"]


async def test_agents_errors_are_told_as_elsewhere(api: ApiServer) -> None:
    async with api.client(api.key()) as client:
        wrong: list[httpx.Response] = [
            await client.post("/mcp", content=b"{", headers={"Content-Type": "application/json"}),
            await client.post("/mcp", json={"jsonrpc": "2.0"}),
            await client.get("/mcp", headers={"Accept": "text/html"}),
            await client.delete("/mcp"),
        ]
    for answer in wrong:
        assert problem(answer)["status"] == answer.status_code
