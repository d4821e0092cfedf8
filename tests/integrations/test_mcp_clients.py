"""The official client of the Model Context Protocol uses our server as any client would, over both transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from redis.asyncio import Redis

from context_builder.server.access.caller import Role
from tests.server.test_agent_tools import TOOLS
from tests.services.api_server import ApiServer

pytestmark = pytest.mark.engines

Connect = Callable[..., Any]


@pytest.fixture(params=["stdio", "streamable HTTP"])
def client(request: pytest.FixtureRequest, api: ApiServer, tmp_path: Path) -> Connect:
    """Opens a client of the server, as this user over a pipe, and as a writer over HTTP."""
    if request.param == "stdio":
        return lambda **options: Client(stdio_client(api.over_a_pipe(tmp_path)), **options)
    return lambda **options: over_http(api.url, api.key(Role.WRITER), **options)


@asynccontextmanager
async def over_http(url: str, key: str, **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=20) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), **options) as client,
    ):
        yield client


async def test_what_an_inspector_checks(client: Connect, meeting: Redis) -> None:
    """Each tool and resource is described, its schemas are schemas, and its results are what they say."""
    async with client() as connected:
        assert connected.server_info.name == "context-builder"
        assert "no instructions" in connected.instructions
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
        assert set(tools) == TOOLS
        for tool in tools.values():
            Draft202012Validator.check_schema(tool.input_schema)
            assert tool.description
            assert "  " not in tool.description
            if tool.output_schema:
                Draft202012Validator.check_schema(tool.output_schema)
        told = await connected.call_tool("session_state", {"sessionId": "monday"})
        assert not told.is_error
        if schema := tools["session_state"].output_schema:
            Draft202012Validator(schema).validate(told.structured_content)
        templates = (await connected.list_resource_templates()).resource_templates
        assert {one.uri_template for one in templates} == {"session://{id}/state", "package://{id}"}
        assert all(one.mime_type == "application/json" for one in templates)
        read = await connected.read_resource("session://monday/state")
        assert "We label the clips by hand." in read.contents[0].text


async def test_clients_of_the_protocol_before_are_served_too(client: Connect, meeting: Redis) -> None:
    async with client(mode="legacy") as connected:
        await connected.send_ping()
        told = await connected.call_tool("session_state", {"sessionId": "monday"})
        assert told.structured_content["session_id"] == "monday"


async def test_wrong_calls_are_answered_in_words(client: Connect, meeting: Redis) -> None:
    async with client() as connected:
        with pytest.raises(MCPError, match="there is no session nobody; list_sessions names those there are"):
            await connected.read_resource("session://nobody/state")
        for tool, arguments in (
            ("session_state", {"sessionId": "mon day"}),
            ("session_state", {}),
            ("session_state", {"sessionId": 7}),
            ("search_memory", {"query": "x", "limit": 1_000_000}),
            ("send_message", {"sessionId": "monday", "text": "   "}),
            ("build_context", {"intent": "x", "tokenBudget": -1}),
        ):
            told = await connected.call_tool(tool, arguments)
            assert told.is_error, tool
            assert told.content[0].text
            assert "Traceback" not in told.content[0].text
        sent = await connected.call_tool("send_message", {"sessionId": "monday", "text": "🐳 sing", "speaker": "Ida"})
        assert sent.structured_content == {"accepted": 1}


async def test_the_example_reads_a_session(
    example: Callable[..., ModuleType], api: ApiServer, meeting: Redis, tmp_path: Path
) -> None:
    settings = {name: str(value) for name, value in api.settings.items() if name != "redis_url"}
    summary = example("mcp_client", **settings, home=str(tmp_path / "home"), embedded_embeddings="false").summary
    assert (await summary("monday")).startswith("Alice: We label the clips by hand. (")
