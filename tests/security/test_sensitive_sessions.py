"""How sensitive a session is stated to be holds at every door: state, messages, events, search, turn, MCP and page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.memory.memory import Memory
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.server.access.caller import Role
from context_builder.session.keys import SESSIONS, Keys
from tests.cli.samples import sample_state
from tests.services.api_server import TENANT, ApiServer

pytestmark = pytest.mark.engines

AT = datetime(2026, 11, 2, 10, tzinfo=UTC)
SECRET = "hunter22xyzzy"
OTTER = "Ottilie the otter"
SAID = f"{OTTER} sleeps, and the password is {SECRET}"


def state_of(session_id: str) -> str:
    said = {"id": 1, "message_number": 1, "speaker": "Ann", "text": SAID, "timestamp": AT.isoformat(), "type": "user",
            "buffer_entry_time": AT.timestamp(), "keywords": [SECRET, "otter"], "domains": [], "domain_confidence": {},
            "confidence": 1.0}  # fmt: skip
    told = {"kind": SAID, "password": SECRET, SECRET: 1}
    response = {**said, "id": 2, "type": "consilience", "text": "Noted.", "keywords": [], "metadata": told}
    point = {"id": 1, "text": SAID, "kind": "claim", "speakers": ["Ann"], "messages": [1], "ids": [1], "time": None}
    summary = {**sample_state()["rolling_summary"], "text": f"- {SAID}", "points": [point]}
    return json.dumps(
        sample_state(
            session_id=session_id,
            raw_recent_buffer=[said],
            rolling_summary=summary,
            current_keywords=[SECRET, "otter"],
            consilience_responses=[response],
        )
    )


@pytest.fixture(params=["monday", "Café:7@acme"])
async def session(request: pytest.FixtureRequest, api: ApiServer, redis: Redis) -> AsyncIterator[str]:
    """A session in which a password was said, published and remembered."""
    name = f"{request.param}-{uuid4().hex[:8]}"
    await redis.set(f"context_builder:{name}:state", state_of(name))
    await redis.zadd(SESSIONS, {name: AT.timestamp()})
    memory = PostgresMemory(api.database_url)
    await memory.remember(
        TENANT, [Memory(f"{name}:message:1", f"{SAID} ({name})", session_id=name, speaker="Ann", position=1)]
    )
    yield name
    await memory.close()


async def first_event(client: httpx.AsyncClient, path: str) -> str:
    async with client.stream("GET", path) as response:
        if response.status_code != 200:
            return await response.aread() and response.text
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                return line
    return ""


async def tool(client: httpx.AsyncClient, name: str, **arguments: Any) -> str:
    call = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream"}
    return (await client.post("/mcp", json=body, headers=headers)).text


Door = Callable[[httpx.AsyncClient, str], Awaitable[str]]


async def turn(client: httpx.AsyncClient, name: str) -> str:
    asked = {"query": "Where does the otter sleep?", "tokenBudget": 2000}
    return (await client.post(f"/sessions/{name}/turn", json=asked)).text


async def package(client: httpx.AsyncClient, name: str) -> str:
    asked = {"intent": "otter", "tokenBudget": 2000, "scope": {"sessionIds": [name]}}
    built = (await client.post("/knowledge/context/build", json=asked)).json()
    path = f"/knowledge/context/{built['contextPackageId']}"
    answers = [await client.get(path, params={"format": form}) for form in ("json", "prompt")]
    return json.dumps(built) + "".join(one.text for one in answers) + (await client.get(f"{path}/audit")).text


def getting(path: str) -> Door:
    async def get(client: httpx.AsyncClient, name: str) -> str:
        return (await client.get(path.format(name))).text

    return get


DOORS: dict[str, Door] = {
    "state": getting("/sessions/{}/state"),
    "messages": getting("/sessions/{}/messages"),
    "sessions": getting("/sessions"),
    "search": getting("/memories/search?q={}&limit=100"),
    "events": lambda client, name: first_event(client, f"/sessions/{name}/events"),
    "turn": turn,
    "package": package,
    "MCP state": lambda client, name: tool(client, "session_state", sessionId=name),
    "MCP points": lambda client, name: tool(client, "explain_point", sessionId=name),
    "MCP recent points": lambda client, name: tool(client, "recent_points", sessionId=name),
    "MCP sessions": lambda client, name: tool(client, "list_sessions", limit=500),
    "MCP search": lambda client, name: tool(client, "search_memory", query=name, limit=100),
    "page": getting("/ui/sessions/{}"),
    "page list": getting("/ui/sessions"),
    "page messages": getting("/ui/data/sessions/{}/messages"),
    "page live": lambda client, name: first_event(client, f"/ui/live/sessions/{name}"),
    "page memory": getting("/ui/memory?q={}"),
    "page health": getting("/ui/health"),
}
NAMES_SESSIONS = ("sessions", "page list", "page health", "MCP sessions")


async def state_it(api: ApiServer, name: str, sensitivity: str) -> None:
    stated = {"kind": "document", "title": "Monday", "content": "", "sensitivity": sensitivity}
    async with api.client(api.key(Role.ADMIN)) as admin:
        (await admin.put(f"/knowledge/artifacts/session:{name}", json=stated)).raise_for_status()


async def logged_in(api: ApiServer, client: httpx.AsyncClient, role: Role) -> httpx.AsyncClient:
    login = {"credential": api.key(role)}
    (await client.post("/ui/login", data=login, headers={"Origin": api.url}))
    return client


@pytest.mark.parametrize("door", DOORS)
async def test_a_restricted_session_is_not_there(api: ApiServer, session: str, door: str) -> None:
    await state_it(api, session, "restricted")
    async with api.client(api.key(Role.WRITER)) as client:
        if door.startswith("page"):
            await logged_in(api, client, Role.WRITER)
        shown = await DOORS[door](client, session)
        asked = await client.get(f"/sessions/{session}/state")
    assert asked.status_code == 404
    assert OTTER not in shown
    assert SECRET not in shown
    if door in NAMES_SESSIONS:
        assert session not in shown


async def test_what_was_said_in_a_restricted_session_is_not_changed(api: ApiServer, session: str, redis: Redis) -> None:
    await state_it(api, session, "restricted")
    said = f"/sessions/{session}/messages/1"
    async with api.client(api.key(Role.WRITER)) as client:
        answers = [
            await client.patch(said, json={"text": "Nothing of this."}),
            await client.delete(said),
            await client.put(f"/sessions/{session}/speakers/Ann", json={"name": "Eve"}),
        ]
    assert [one.status_code for one in answers] == [404, 404, 404]
    assert not await redis.exists(f"context_builder:{session}:input")


async def test_who_speaks_in_a_restricted_session_learns_and_changes_nothing(
    api: ApiServer, session: str, redis: Redis
) -> None:
    await state_it(api, session, "restricted")
    revising = ({"corrects": 1, "text": "No."}, {"strikes": 1}, {"renames": "Ann", "speaker": "Eve"})
    async with api.client(api.key(Role.WRITER)) as client:
        for name in (session, f"never-{session}"):
            path = f"/sessions/{name}/messages"
            answers = [await client.post(path, json=one) for one in revising]
            assert [one.status_code for one in answers] == [404] * 3
            assert (await client.post(path, json={"text": "Hello"})).json() == {"accepted": 1, "unheard": True}
            assert '"unheard\\":true' in (await tool(client, "send_message", sessionId=name, text="Hi")).replace(
                " ", ""
            )
        mixed = [{"text": "Hello"}, *revising]
        assert (await client.post(f"/sessions/{session}/messages", json=mixed)).status_code == 404
    assert await redis.llen(f"context_builder:{session}:input") == 2


@pytest.mark.parametrize("damage", ["dropped", "n:5", "type"])
async def test_who_speaks_in_a_restricted_session_is_not_told_that_its_index_is_damaged(
    api: ApiServer, session: str, redis: Redis, damage: str
) -> None:
    await state_it(api, session, "restricted")
    index = Keys(session).message_index
    await (redis.zadd(index, {"x": 1}) if damage == "type" else redis.hset(index, damage, "garbage"))
    said = {"text": "Hello", "message_number": 5, "timestamp": AT.isoformat()}
    path = f"/sessions/{session}/messages"
    async with api.client(api.key(Role.WRITER)) as client, api.client(api.key(Role.ADMIN)) as admin:
        assert (await client.post(path, json=said)).status_code == 404
        assert (await admin.patch(f"{path}/5", json={"text": "No."})).status_code == 503
    assert not await redis.exists(Keys(session).input)


async def test_nor_does_the_page_tell_a_restricted_session_from_none(api: ApiServer, session: str) -> None:
    await state_it(api, session, "restricted")
    async with api.client() as client:
        await logged_in(api, client, Role.WRITER)
        answers = [await client.get(f"/ui/sessions/{name}/revisions") for name in (session, f"never-{session}")]
    assert [one.status_code for one in answers] == [404, 404]


@pytest.mark.parametrize("sensitivity", ["restricted", "confidential"])
async def test_dead_letters_which_cannot_be_redacted_are_for_who_sees_all(
    api: ApiServer, session: str, sensitivity: str
) -> None:
    async with api.client() as client:
        await logged_in(api, client, Role.WRITER)
        assert (await client.get(f"/ui/dead/{session}")).status_code == 200
        await state_it(api, session, sensitivity)
        assert (await client.get(f"/ui/dead/{session}")).status_code == 404


@pytest.mark.parametrize("door", [one for one in DOORS if one not in NAMES_SESSIONS])
async def test_a_confidential_session_is_redacted(api: ApiServer, session: str, door: str) -> None:
    async with api.client(api.key(Role.WRITER)) as client:
        if door.startswith("page"):
            await logged_in(api, client, Role.WRITER)
        if door != "MCP points":  # which has the points of the checkpoint; here there is none
            assert SECRET in await DOORS[door](client, session)
        await state_it(api, session, "confidential")
        shown = await DOORS[door](client, session)
    assert SECRET[:8] not in shown
    if door != "MCP points":
        assert OTTER in shown


async def test_an_admin_sees_a_restricted_session_as_it_is(api: ApiServer, session: str) -> None:
    await state_it(api, session, "restricted")
    async with api.client(api.key(Role.ADMIN)) as client:
        for door in ("state", "messages", "search", "turn", "events", "MCP state"):
            assert SECRET in await DOORS[door](client, session), door


async def test_a_turn_that_is_made_again_is_not_answered_as_it_was(api: ApiServer, session: str) -> None:
    asked, headers = {"query": "Where does the otter sleep?", "tokenBudget": 200}, {"Idempotency-Key": uuid4().hex}
    async with api.client(api.key(Role.WRITER)) as client:
        path = f"/sessions/{session}/turn"
        first = await client.post(path, json=asked, headers=headers)
        assert (first.status_code, SECRET in first.text) == (200, True)
        await state_it(api, session, "restricted")
        again = await client.post(path, json=asked, headers=headers)
    assert (again.status_code, SECRET in again.text) == (404, False)


async def test_a_stream_ends_when_its_session_is_restricted(api: ApiServer, session: str) -> None:
    events = f"/sessions/{session}/events"
    async with api.client(api.key(Role.WRITER)) as client, client.stream("GET", events) as response:
        lines = response.aiter_lines()
        async for line in lines:
            if line.startswith("data: "):
                break
        await state_it(api, session, "restricted")
        rest = [line async for line in lines]
    assert not [line for line in rest if "data: " in line]


async def test_preferences_are_not_found_by_others(api: ApiServer) -> None:
    tenant = f"lab-{uuid4().hex[:8]}"
    memory = PostgresMemory(api.database_url)
    kept = {"kind": "preference", "user_id": "ann", "time": AT}
    await memory.remember(tenant, [Memory("p1", "Ann likes porpoises and not otters.", **kept)])
    await memory.close()
    for role, seen in ((Role.READER, False), (Role.WRITER, False), (Role.ADMIN, True)):
        async with api.client(api.key(role, tenant)) as client:
            found = (await client.get("/memories/search", params={"q": "porpoises"})).text
            newest = (await client.get("/memories/search")).text
        assert ("porpoises" in found, "porpoises" in newest) == (seen, seen)
