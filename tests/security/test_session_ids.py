"""A session id reaches its own session's keys and nothing else."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.errors import SessionIdError
from context_builder.session.client import SessionClient
from context_builder.session.keys import Keys, validate_session_id
from tests.security.hostile import CONTROL, SESSION_IDS
from tests.services.redis_server import RedisServer

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
