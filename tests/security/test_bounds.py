"""Whatever one caller sends, others are answered meanwhile, and no memory is taken for what is refused."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.errors import DataRejected
from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.grpc import clients
from context_builder.knowledge.grpc.channel import ServiceChannel
from context_builder.server.access.caller import Role
from tests.security.others import others_are_answered
from tests.server.page.conftest import logged_in
from tests.services.api_server import ApiServer
from tests.services.problems import problem
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines


@pytest.fixture(autouse=True)
async def own_redis(redis: Redis) -> None:
    """Each test begins with an empty Redis."""


def memory_of(api: ApiServer) -> int:
    """The server's memory in bytes, as the kernel counts it."""
    pages = int(Path(f"/proc/{api.daemon.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


BAD_REFS = b'["' + b'","'.join([b"?"] * 600_000) + b'"]'
HOSTILE: dict[str, tuple[str, str, bytes]] = {
    "bad pins": (
        "POST",
        "/knowledge/context/build",
        b'{"intent": "x", "tokenBudget": 100, "pinned": ' + BAD_REFS + b"}",
    ),
    "bad pins that fit": (
        "POST",
        "/knowledge/context/build",
        b'{"intent": "x", "tokenBudget": 100, "pinned": ["' + b'","'.join([b"?"] * 400_000) + b'"]}',
    ),
    "unknown fields": (
        "POST",
        "/knowledge/context/build",
        b"{" + b",".join(b'"x%d":1' % number for number in range(150_000)) + b"}",
    ),
    "empty arrays": ("PUT", "/knowledge/edges", b"[" + b"[]," * 5_000_000 + b"[]]"),
    "bad edges": ("PUT", "/knowledge/edges", b"[" + b'{"from":"?"},' * 9_999 + b"{}]"),
    "what helped": (
        "POST",
        f"/knowledge/context/cpk_{'0' * 26}/feedback",
        b'{"helped": {' + b",".join(b'"?%d":9' % number for number in range(150_000)) + b"}}",
    ),
    "no messages": ("POST", "/sessions/monday/messages", b"[" + b"1," * 7_000_000 + b"1]"),
    "quotation marks": ("PUT", "/knowledge/edges", b'"' * 15_000_000),
    "escapes": ("PUT", "/knowledge/edges", b'["' + b'\\"' * 1_000_000 + b'"]'),
    "nested": ("POST", "/sessions/monday/turn", b'{"query":' * 200_000),
    "agents": (
        "POST",
        "/mcp",
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[' + b"[]," * 5_000_000 + b"1]}",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_body_of_too_much_is_refused_at_once(api: ApiServer, name: str) -> None:
    method, path, body = HOSTILE[name]
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with api.client(api.key(Role.WRITER), headers=headers) as client:
        before = memory_of(api)
        async with others_are_answered(api):
            answer = await client.request(method, path, content=body, timeout=60)
        assert answer.status_code in {413, 422}
        assert len(answer.content) < 10_000
        problem(answer)
    assert memory_of(api) - before < 250_000_000


@pytest.mark.parametrize("call", ["nodes", "redact", "decide"])
async def test_a_message_of_too_many_items_is_refused_at_once_over_grpc(api: ApiServer, call: str) -> None:
    channel = ServiceChannel(api.grpc_url, api.key(Role.ADMIN, "many-items"), 60.0)
    names = [f"a{number}" for number in range(300_000)]
    sources = [GovernedSource(name, "many-items", "document", "internal") for name in names[:30_000]]
    agent, asked = Agent("many-items", frozenset(), "ann"), DecisionContext("x", datetime.now(UTC))
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "nodes": lambda: clients.RemoteIndex(channel).nodes("many-items", names, 1),
        "redact": lambda: clients.RemoteRedaction(channel).redact(names),
        "decide": lambda: clients.RemotePolicy(channel).decide(agent, sources, asked),
    }
    with pytest.raises(DataRejected):
        await calls[call]()
    await channel.close()


@pytest.mark.parametrize(
    "arguments",
    [{"kind": "a," * 900_000}, {"kind": ["a"] * 150_000}, {"kimd" * 250_000: "x"}, {f"k{n}": 1 for n in range(1_000)}],
    ids=["a text as list", "a list", "a long name", "many names"],
)
async def test_arguments_of_a_tool_that_are_too_many_are_refused_at_once(api: ApiServer, arguments: object) -> None:
    call = {"name": "search_memory", "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream"}
    async with api.client(api.key(Role.READER), headers=headers, timeout=60) as client, others_are_answered(api):
        answer = await client.post("/mcp", json=body)
    assert '"isError":true' in answer.text.replace(" ", "")
    assert len(answer.content) < 10_000


LARGE: dict[str, tuple[str, int]] = {
    "one long sentence": ("a ", 900_000),
    "short paragraphs": ("a.\n\n", 480_000),
    "lines": ("a\n", 990_000),
    "digits": ("4111 1111 1111 1111 ", 90_000),
}
"""What is repeated, and how often within an artifact of nearly the greatest size."""


@pytest.mark.parametrize("part", [100, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", LARGE)
async def test_a_large_artifact_holds_up_nobody(api: ApiServer, name: str, part: int) -> None:
    ref = f"/knowledge/artifacts/{quote(f'artifact:large/{name}')}".replace("%20", "-")
    repeated, times = LARGE[name]
    body = {"kind": "document", "title": name, "content": repeated * (times // part), "sensitivity": "confidential"}
    async with api.client(api.key(Role.WRITER, tenant="large"), timeout=120) as client:
        async with others_are_answered(api):
            put = await client.put(ref, json=body)
            got = await client.get(ref)
        assert put.status_code in {200, 422, 503}  # there is a time for it, and the database has its own
        assert got.status_code in {200, 404}
        if name == "digits" and got.status_code == 200:
            assert "4111" not in got.text  # it is masked, or withheld


async def test_a_policy_of_patterns_holds_up_nobody(api: ApiServer) -> None:
    pattern = "*" + "a" * 3_000 + "b"
    text = "".join(
        f'forbid(principal, action, resource) when {{ context.intent like "{pattern}{number}*" }};\n'
        for number in range(20)
    )
    async with api.client(api.key(Role.ADMIN, tenant="patterns"), timeout=120) as client:
        for number in range(5):
            body = {"kind": "document", "title": f"Clips {number}", "content": "clips", "tags": [str(number)]}
            await client.put(f"/knowledge/artifacts/artifact:clip-{number}", json=body)
        put = await client.put("/knowledge/policies/patterns", content=text)
        assert put.status_code == 200, put.text
        async with others_are_answered(api):
            request = {"intent": "a" * 8_000, "tokenBudget": 100}
            answer = await client.post("/knowledge/context/build", json=request)
        assert answer.status_code in {200, 503}
        await client.delete("/knowledge/policies/patterns")


async def test_many_policies_hold_up_nobody(api: ApiServer) -> None:
    operators = " && ".join(['resource.tags.contains("a")'] * 60)
    text = f"permit(principal, action, resource) when {{ {operators} }};\n" * 30
    async with api.client(api.key(Role.ADMIN, tenant="policies"), timeout=120) as client:
        async with others_are_answered(api):
            for number in range(12):
                assert (await client.put(f"/knowledge/policies/p{number}", content=text)).status_code == 200
            answer = await client.post("/knowledge/context/build", json={"intent": "x", "tokenBudget": 100})
        assert answer.status_code == 200
        for number in range(12):
            await client.delete(f"/knowledge/policies/p{number}")


async def test_as_many_searches_of_the_live_list_hold_up_nobody(api: ApiServer, redis: Redis) -> None:
    async with redis.pipeline() as pipe:
        for number in range(3_000):
            pipe.zadd("context_builder:sessions", {f"s{number}": number})
        await pipe.execute()
    async with api.client(limits=httpx.Limits(max_connections=200)) as client:
        await logged_in(api, client, api.key(Role.READER))

        async def watch(number: int) -> None:
            async with client.stream("GET", f"/ui/live/sessions?q=s{number}", timeout=60) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("event: sessions"):
                        return

        async with others_are_answered(api), asyncio.timeout(60):
            await asyncio.gather(*map(watch, range(30)))


async def test_bodies_of_nobody_in_particular_take_little_room_and_not_for_long(api: ApiServer) -> None:
    before = memory_of(api)
    head = (
        f"POST /ui/login HTTP/1.1\r\nHost: 127.0.0.1:{api.port}\r\nOrigin: {api.url}\r\nContent-Length: 2000000\r\n\r\n"
    )
    sockets = [socket.create_connection(("127.0.0.1", api.port)) for _ in range(100)]
    try:
        for one in sockets:
            one.setblocking(False)
            one.send(head.encode())
        for one in sockets:
            for _ in range(20):
                try:
                    one.send(b"x" * 100_000)
                except (BlockingIOError, ConnectionError):
                    break
        async with others_are_answered(api):
            await asyncio.sleep(1)  # what is asked is how others fare for a while
        assert memory_of(api) - before < 60_000_000

        def are_cut_off() -> bool:
            return all(map(_is_answered, sockets))

        await wait_until(are_cut_off, "all are answered")
    finally:
        for one in sockets:
            one.close()


def _is_answered(one: socket.socket) -> bool:
    try:
        return one.recv(1, socket.MSG_PEEK) in (b"", b"H")
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


async def test_a_small_request_is_answered_after_all_of_it(api: ApiServer) -> None:
    async with api.client(api.key()) as client:
        body = {"intent": "x", "tokenBudget": 100}
        assert (await client.post("/knowledge/context/build", json=body)).status_code == 200
