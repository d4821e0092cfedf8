"""What is remembered was redacted before; what cannot be is not remembered."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from context_builder.memory.memory import Memory, MemoryQuery
from context_builder.memory.redacting import RedactingMemory
from context_builder.redaction import SecretRedactor
from context_builder.server.access.caller import caller_of
from context_builder.server.agent_tools import AgentTools
from context_builder.settings.settings import load_settings
from context_builder.testing import InMemoryStore
from context_builder.wiring.app import open_app
from tests.services.redis_server import RedisServer

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
SAID = Memory(
    "m-1",
    f"My token is {SECRET[:40]} for the build",
    speaker="Alice",
    session_id="monday",
    metadata={"keywords": [SECRET[:40], "build"], "user_id": "u-1"},
)
POINT = Memory("p-1", "Alice told a token", kind="point", metadata={"keywords": [SECRET[:40], "build"], "cites": (1,)})


class Broken:
    """Fails at whatever has to do with a token."""

    def redact(self, text: str) -> str:
        if "token" in text:
            raise RuntimeError(text)
        return text


class Careless:
    def redact(self, text: str) -> str:
        return None  # type: ignore[return-value]


async def test_no_part_of_a_memory_holds_the_secret() -> None:
    store = InMemoryStore()
    await RedactingMemory(store, SecretRedactor()).remember("lab", [SAID, POINT])
    said, point = store.kept["lab"].values()
    assert SECRET[:40] not in repr((said, point))
    assert said.text.startswith("My token is §§secret(")
    assert (said.speaker, said.session_id, said.metadata["user_id"]) == ("Alice", "monday", "u-1")
    assert "build" in said.metadata["keywords"]
    assert point.metadata["cites"] == (1,)


async def test_a_word_that_was_taken_out_is_no_keyword_of_what_is_remembered_with_it() -> None:
    class Names:
        def redact(self, text: str) -> str:
            return text.replace("Project Sundew", "[project]")

    said = Memory("m-1", "Project Sundew begins", metadata={"keywords": ["Sundew", "begins"]})
    point = Memory("p-1", "It begins", kind="point", metadata={"keywords": ["Sundew", "begins"]})
    store = InMemoryStore()
    await RedactingMemory(store, Names()).remember("lab", [said, point])
    assert [list(one.metadata["keywords"]) for one in store.kept["lab"].values()] == [["begins"], ["begins"]]


@pytest.mark.parametrize("redactor", [Broken(), Careless()])
async def test_what_the_redactor_fails_at_is_not_remembered(
    redactor: Broken | Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    store = InMemoryStore()
    harmless = replace(SAID, id="m-2", text="Hello", metadata={})
    await RedactingMemory(store, redactor).remember("lab", [SAID, harmless])
    assert set(store.kept.get("lab", {})) == ({"m-2"} if isinstance(redactor, Broken) else set())
    logged = capsys.readouterr().out
    assert "memory.withheld" in logged
    assert SECRET[:40] not in logged


async def test_an_agent_is_told_that_its_note_is_not_remembered() -> None:
    store = InMemoryStore()
    services: Any = SimpleNamespace(memory=RedactingMemory(store, Broken(), refuses=True))
    tools = AgentTools(services, lambda: caller_of("lab", "key:1", frozenset({"writer"})))
    with pytest.raises(ToolError, match="the note is not remembered"):
        await tools.remember("My token is 7.")
    assert not store.kept
    assert (await tools.remember("Hello."))["id"] in store.kept["lab"]


async def test_searching_and_forgetting_are_the_stores() -> None:
    store = InMemoryStore()
    memory = RedactingMemory(store, SecretRedactor())
    await memory.remember("lab", [replace(SAID, text="the build")])
    assert [found.memory.id for found in await memory.search("lab", MemoryQuery("build"))] == ["m-1"]
    assert await memory.forget("lab", ids=["m-1"]) == 1


@pytest.mark.engines
@pytest.mark.parametrize(("redact", "wrapped"), [("none", False), ("secrets", True)])
async def test_a_daemons_sessions_are_redacted_when_prompts_are(
    redis_server: RedisServer, redact: str, *, wrapped: bool
) -> None:
    environ = {
        "REDIS_URL": redis_server.url,
        "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none",
        "EMBEDDED_EMBEDDINGS": "false",
    }
    async with open_app(load_settings({**environ, "CONTEXT_REDACT": redact}, env_file=None)) as app:
        assert app.dependencies.memory is not None
        assert isinstance(app.dependencies.memory.store, RedactingMemory) is wrapped
