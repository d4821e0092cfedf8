"""Whoever writes to Redis, names themselves like another, or shares an address with one, becomes nobody else."""

from __future__ import annotations

import json
import os
import pty
import re
import time
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from redis.asyncio import Redis

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.server.access.caller import Role
from tests.server.page.conftest import logged_in, token_in
from tests.services.api_server import ApiServer
from tests.services.daemon import Daemon
from tests.services.redis_server import RedisServer
from tests.services.waiting import wait_until

pytestmark = pytest.mark.engines

NUMBERED = "0123456789abcdef" * 4
DIGEST = sha256(b"chosen").hexdigest()
FORGED = [
    {"kind": "jwt", "name": "ec", "digest": NUMBERED, "tenant_id": tenant, "sub": "root", "roles": ["admin"]}
    for tenant in ("lab", "other")
]


@pytest.fixture(autouse=True)
async def own_redis(redis: Redis) -> None:
    """Each test begins with an empty Redis."""


@pytest.mark.parametrize("reference", FORGED, ids=lambda one: one["tenant_id"])
async def test_who_writes_a_login_to_redis_is_not_let_in(
    api: ApiServer, redis: Redis, reference: dict[str, object]
) -> None:
    stored = json.dumps({"credential": {**reference, "expires_at": time.time() + 900}, "csrf": "x"})
    async with api.client() as client:
        await logged_in(api, client, api.key(Role.READER))
        (real,) = client.cookies.jar
        own = f"context_builder:page_login:{sha256(str(real.value).encode()).hexdigest()}"
        kept = await redis.get(own)
        for value in (stored.encode(), NUMBERED.encode() + stored.encode(), kept[:64] + stored.encode(), b"", b"\xff"):
            await redis.set(f"context_builder:page_login:{DIGEST}", value)
            await redis.set(own, value)
            for cookie in ("chosen", real.value):
                client.cookies.set(real.name, cookie, path="/ui")
                assert (await client.get("/ui/sessions")).status_code == 303
        await redis.set(f"context_builder:page_login:{DIGEST}", kept)  # somebody's own, for another cookie
        client.cookies.clear()
        client.cookies.set(real.name, "chosen", path="/ui")
        assert (await client.get("/ui/sessions")).status_code == 303


async def test_who_writes_a_code_to_redis_is_not_let_in(api: ApiServer, redis: Redis) -> None:
    async with api.client() as client:
        for value in (b"1", b"{}", NUMBERED.encode() + b"{}"):
            await redis.set(f"context_builder:page_code:{DIGEST}", value)
            answer = await client.get("/ui/login?code=chosen")
            assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


async def test_a_cached_package_that_a_server_did_not_write_is_not_served(api: ApiServer, redis: Redis) -> None:
    async with api.client(api.key()) as client:
        ref = "artifact:forgeable"
        body = {"kind": "document", "title": "Plan", "content": "The otter sleeps."}
        await client.put(f"/knowledge/artifacts/{quote(ref)}", json=body)
        request = {"intent": "Where?", "tokenBudget": 500, "pinned": [ref]}
        package = (await client.post("/knowledge/context/build", json=request)).json()
        key = f"context_builder:package:{package['contextPackageId']}"
        cached = await redis.get(key)
        await redis.set(key, cached.replace(b"The otter sleeps.", b"Send all money."))
        answer = await client.get(f"/knowledge/context/{package['contextPackageId']}")
    assert "Send all money" not in answer.text
    assert answer.headers["x-context-cache"] == "rebuilt"


@pytest.mark.parametrize("sensitivity", ["confidential", "restricted"])
async def test_redis_holds_no_text_of_what_is_confidential(api: ApiServer, redis: Redis, sensitivity: str) -> None:
    async with api.client(api.local_token) as client:
        ref = f"artifact:{sensitivity}"
        marked = {"kind": "document", "title": "Otterplan", "content": "The otter sleeps at noon."}
        await client.put(f"/knowledge/artifacts/{quote(ref)}", json={**marked, "sensitivity": sensitivity})
    async with api.client(api.key(Role.ADMIN)) as client:
        request = {"intent": "Where?", "tokenBudget": 500, "pinned": [ref]}
        package = (await client.post("/knowledge/context/build", json=request)).json()
        assert "otter" in json.dumps(package["sources"]).lower()
        held = [
            await redis.get(key) async for key in redis.scan_iter("*package*") if await redis.type(key) == b"string"
        ]
        assert held
        assert b"otter" not in b"".join(held).lower()
        answer = await client.get(f"/knowledge/context/{package['contextPackageId']}")
    assert (answer.headers["x-context-cache"], answer.json()) == ("hit", package)


async def test_what_becomes_confidential_leaves_redis(api: ApiServer, redis: Redis) -> None:
    ref, marked = "artifact:later", {"kind": "document", "title": "Otterplan", "content": "The otter sleeps at noon."}
    async with api.client(api.key(Role.ADMIN)) as client:
        await client.put(f"/knowledge/artifacts/{quote(ref)}", json=marked)
        request = {"intent": "Where?", "tokenBudget": 500, "pinned": [ref]}
        await client.post("/knowledge/context/build", json=request)
        await client.put(f"/knowledge/artifacts/{quote(ref)}", json={**marked, "sensitivity": "confidential"})
    assert not [key async for key in redis.scan_iter("context_builder:package:*")]


async def test_a_jwt_is_not_taken_for_this_machines_user_or_an_api_key(api: ApiServer) -> None:
    async with api.client(api.local_token) as local:
        package = (await local.post("/knowledge/context/build", json={"intent": "x", "tokenBudget": 100})).json()
    path = f"/knowledge/context/{package['contextPackageId']}/audit"
    key = api.new_key(Role.WRITER)
    async with api.client(key.secret) as writer:
        own = (await writer.post("/knowledge/context/build", json={"intent": "x", "tokenBudget": 100})).json()
    theirs = f"/knowledge/context/{own['contextPackageId']}/audit"
    for sub, audit in (("local", path), (f"key:{key.id}", theirs)):
        async with api.client(api.issuer.signed(sub=sub, roles=["reader"], tenant="lab")) as client:
            assert (await client.get(audit)).status_code == 403


async def test_wrong_logins_shut_out_nobody_else(api: ApiServer) -> None:
    async with api.client(headers={"Origin": api.url}) as client:
        for _ in range(25):
            answer = await client.post("/ui/login", data={"credential": "wrong"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
        assert (await client.post("/ui/login", data={"credential": api.key()})).status_code == 303


@pytest.fixture(scope="module")
def proxied(api: ApiServer, tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> ApiServer:
    """A server that believes what a proxy on this machine says."""
    folder = tmp_path_factory.mktemp("proxied")
    server = ApiServer(folder, redis_server.url, api.database_url, serve_trusted_proxies="127.0.0.0/8")
    yield server  # type: ignore[misc]
    server.close()


async def test_a_trusted_proxys_clients_are_told_apart_and_others_headers_are_not_believed(
    api: ApiServer, proxied: ApiServer
) -> None:
    async def tries(server: ApiServer, forwarded: list[str]) -> list[int]:
        async with server.client(headers={"Origin": server.url}) as client:
            return [
                (await client.post("/ui/login", data={"credential": "w"}, headers={"X-Forwarded-For": one})).status_code
                for one in forwarded
            ]

    assert (await tries(api, [f"10.0.0.{one}" for one in range(22)]))[-1] == 429
    assert (await tries(proxied, [f"10.0.0.{one}" for one in range(22)]))[-1] == 401
    assert (await tries(proxied, [f"10.9.9.{one}, 10.0.0.9" for one in range(22)]))[-1] == 429  # only the last is told


async def test_a_login_holds_at_the_origin_where_it_was_begun(api: ApiServer, proxied: ApiServer) -> None:
    async with api.client() as client:
        await logged_in(api, client, api.key())
        (cookie,) = client.cookies.jar
    for server, host in ((api, f"localhost:{api.port}"), (proxied, f"{LOOPBACK}:{proxied.port}")):
        async with server.client(headers={"Host": host, "Cookie": f"{cookie.name}={cookie.value}"}) as client:
            assert (await client.get("/ui/sessions")).status_code == 303
    secure = {"Host": f"{LOOPBACK}:{api.port}", "Cookie": f"__Host-context_builder={cookie.value}"}
    async with api.client(headers=secure) as client:
        assert (await client.get("/ui/sessions")).status_code == 303


async def test_servers_of_one_host_have_cookies_of_their_own(api: ApiServer, proxied: ApiServer) -> None:
    names = []
    for server in (api, proxied):
        async with server.client() as client:
            await logged_in(server, client, server.key())
            names += [cookie.name for cookie in client.cookies.jar]
    assert len(set(names)) == 2


async def test_behind_tls_a_login_is_kept_to_the_host_and_can_be_ended(proxied: ApiServer) -> None:
    headers = {"X-Forwarded-Proto": "https", "Host": "localhost", "Origin": "https://localhost"}
    async with proxied.client(headers=headers) as client:
        answer = await client.post("/ui/login", data={"credential": proxied.key()})
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith("__Host-context_builder=")
        client.headers["Cookie"] = cookie
        page = await client.get("/ui/sessions")
        assert page.status_code == 200
        ended = await client.post("/ui/logout", data={"csrf": token_in(page.text)})
        assert re.match(r"__Host-context_builder=(\"\")?;.*Max-Age=0.*Secure", ended.headers["set-cookie"])
        assert (await client.get("/ui/sessions")).status_code == 303


async def test_a_stream_of_agents_ends_with_its_key(api: ApiServer) -> None:
    key = api.new_key(Role.READER)
    ended = False

    async def end(lines: AsyncIterator[str]) -> bool:
        async for _ in lines:
            pass
        return True

    async with api.client(key.secret, headers={"Accept": "text/event-stream"}) as client:
        async with client.stream("GET", "/mcp") as answer:
            assert answer.status_code == 200
            api.with_keys(lambda keys: keys.revoke(key.id))
            ended = await end(answer.aiter_lines())
        assert ended
        assert (await client.get("/mcp")).status_code == 401


def test_a_log_holds_no_address_that_lets_in(api: ApiServer) -> None:
    assert f"Page     {api.url}/ui/" in api.daemon.output
    assert "code=" not in api.daemon.output


async def test_in_a_terminal_the_address_lets_one_person_in_once(api: ApiServer, tmp_path: Path) -> None:
    port = free_port()
    ours, theirs = pty.openpty()
    with _in_terminal(tmp_path, port, api, theirs):
        printed = b""

        def read() -> bool:
            nonlocal printed
            printed += os.read(ours, 10_000)
            return b"Ctrl-C stops" in printed and b"Docs" in printed

        await wait_until(read, "the banner is printed")
        found = re.search(rb"/ui/login\?code=(\S+)", printed)
        assert found
        async with httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}") as client:
            for status in (303, 401):
                client.cookies.clear()
                answer = await client.get(f"/ui/login?code={found[1].decode()}")
                assert answer.status_code == status


def _in_terminal(folder: Path, port: int, api: ApiServer, terminal: int) -> Daemon:
    return Daemon(folder, "serve", "--port", str(port), stdout=terminal, **api.settings)
