"""A session id reaches its own session's keys and nothing else."""

from __future__ import annotations

import asyncio
from html import escape
from urllib.parse import quote

import orjson
import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.errors import SessionIdError
from context_builder.server.access.caller import Role
from context_builder.session.client import SessionClient
from context_builder.session.keys import Keys, validate_session_id
from tests.security.hostile import CONTROL, SESSION_IDS
from tests.server.page.conftest import logged_in
from tests.server.test_agent_tools import Agent
from tests.services.api_server import ApiServer
from tests.services.redis_server import RedisServer
from tests.services.running import running
from tests.services.waiting import wait_until

COMMANDS = [
    ("run",),
    ("record",),
    ("end",),
    ("forget", "--yes"),
    ("dead",),
    ("send", "hello"),
    ("watch",),
    ("state",),
]


@pytest.mark.parametrize(
    "session_id", ["monday", "session-123", "A.b_c-9", "x" * 128, ".", "..", "room:42", "ann@acme", "café"]
)
def test_ordinary_ids_are_taken(session_id: str) -> None:
    assert validate_session_id(session_id) == session_id


@pytest.mark.parametrize("session_id", SESSION_IDS)
async def test_no_other_id_gets_a_key_or_a_client(session_id: str) -> None:
    with pytest.raises(SessionIdError):
        Keys(session_id)
    async with Redis() as redis:
        with pytest.raises(SessionIdError):
            SessionClient(redis, session_id)


def test_no_two_sessions_share_a_key() -> None:
    keys = [
        key for name in ("monday", "monday-state", "monday:input", "monday:state", "m", ".") for key in Keys(name).all()
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.engines
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
@pytest.mark.parametrize("session_id", ["monday/input", "\x1b[2Jmonday", "monday\nfake line"])
def test_every_command_refuses_it_in_one_harmless_line(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], session_id: str
) -> None:
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    name, *more = command
    result = CliRunner().invoke(app, [name, session_id, *more], catch_exceptions=False)
    assert result.exit_code == 1
    assert result.stderr.startswith("context-builder: session id ")
    assert result.stderr.count("\n") == 1
    assert not CONTROL & set(result.output)


@pytest.mark.engines
@pytest.mark.parametrize("session_id", ["room:42", "ann@acme", "café", "वर्ग", "a+b~c=d,e"])
async def test_a_session_of_any_id_is_reached_by_every_door(
    api: ApiServer, redis: Redis, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, session_id: str
) -> None:
    monkeypatch.setenv("CONTEXT_BUILDER_REDIS_URL", redis_server.url)
    path, said = f"/sessions/{quote(session_id, safe='')}", {"speaker": "Ann", "text": "Whales sing."}
    runner = CliRunner()

    def command(*arguments: str) -> str:
        done = runner.invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    async with running(redis, session_id), api.client(api.key(Role.WRITER)) as client:
        await redis.lpush(f"context_builder:{session_id}:input", orjson.dumps(said))
        assert (await client.post(f"{path}/messages", json=said)).status_code == 202
        agent = Agent(client)
        assert (await agent.call("send_message", sessionId=session_id, text="Where?"))[0]
        await asyncio.to_thread(command, "send", session_id, "In the bay.")

        async def heard() -> bool:
            answer = await client.get(f"{path}/state")
            return answer.status_code == 200 and answer.json()["received_messages"] == 4

        await wait_until(heard, "all four are heard")
        assert len((await client.get(f"{path}/messages")).json()) == 4
        listed = (await client.get("/sessions")).json()
        assert [one["session_id"] for one in listed] == [session_id]
        is_told, state = await agent.call("session_state", sessionId=session_id)
        assert (is_told, state["session_id"]) == (True, session_id)
        shown = await asyncio.to_thread(command, "state", session_id, "--json")
        assert orjson.loads(shown)["session_id"] == session_id
        assert session_id in await asyncio.to_thread(command, "sessions")
        await logged_in(api, client, api.key(Role.READER))
        page = await client.get(f"/ui{path}")
        assert page.status_code == 200
        assert escape(session_id) in page.text
