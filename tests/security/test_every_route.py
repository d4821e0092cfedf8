"""Whatever is sent to any route, by anybody, is answered in order, tells nobody what is another's, and holds up nobody.

Three tenants and four roles (nobody is one) send what fits, what nearly fits and what does not, in every encoding.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest
from fastapi.routing import APIRoute
from redis import Redis

from context_builder.server.access.caller import Role
from context_builder.server.page.app import VIEWS
from context_builder.server.page.views import login
from tests.cli.samples import sample_state
from tests.security.hostile import SESSION_IDS, SPEAKERS, TEXTS
from tests.security.others import others_are_answered
from tests.security.test_http import BODIES, CALLS
from tests.server.page.conftest import logged_in
from tests.services.api_server import TENANT, ApiServer
from tests.services.problems import problem
from tests.services.redis_server import RedisServer

pytestmark = pytest.mark.engines

TENANTS: Final = (TENANT, "club", "den")
EACH = 25
"""Calls of one route."""

TOO_MUCH = 50_000
"""Bytes of a body that a form may not have."""

BESIDE = 6
"""Calls at the same time."""

ODD: Final = (None, True, -1, 1e308, 10**30, "", "x", [], {}, [[]], {"": None}, "\x00", "\ud83d", "x" * 70_000, *TEXTS)
NAMES: Final = (
    *("monday", "artifact:plan", "artifact:vault", "session:monday", "message:monday/1", "cpk_" + "0" * 26, "default"),
    *(
        "café",
        "room:42",
        "..",
        "%2e%2e",
        "a" * 5_000,
        "0",
        "-1",
        "1e9",
        "\u202e",
        "'; DROP TABLE context_artifacts; --",
    ),
    *(name for name in SESSION_IDS if name),
)
PARAMETERS: Final = (
    "limit",
    "after",
    "around",
    "q",
    "ref",
    "taskId",
    "traceId",
    "version",
    "format",
    "cursor",
    "at",
    "x",
)
TYPES: Final = ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "a/b;c=d")
ROUTES: Final = [route for view in (login.inside, *VIEWS) for route in view.routes if isinstance(route, APIRoute)]
PATHS: Final = sorted({(method, route.path) for route in ROUTES for method in route.methods})


@dataclass(frozen=True)
class Caller:
    """Somebody who calls, and what nobody may tell them."""

    name: str
    client: httpx.AsyncClient
    secrets: Sequence[str]


def secret_of(tenant: str, what: str) -> str:
    return f"zz{tenant}{what}zz"


@pytest.fixture
async def callers(own_api: ApiServer, redis_server: RedisServer) -> AsyncIterator[list[Caller]]:
    """Each role of each tenant, all of which have something open and something restricted; one has a session."""
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
        said = [{**sample_state()["raw_recent_buffer"][0], "text": f"The code is {secret_of(TENANT, 'session')}."}]
        redis.set("context_builder:monday:state", json.dumps(sample_state(session_id="monday", raw_recent_buffer=said)))
    for tenant in TENANTS:
        async with own_api.client(own_api.key(Role.ADMIN, tenant), timeout=60) as admin:
            for ref, sensitivity in (("plan", "internal"), ("vault", "restricted")):
                content = f"The code is {secret_of(tenant, sensitivity)}."
                body = {"kind": "document", "title": ref, "content": content, "sensitivity": sensitivity}
                (await admin.put(f"/knowledge/artifacts/artifact:{ref}", json=body)).raise_for_status()
    clients = []
    for tenant in TENANTS:
        others = [secret_of(one, what) for one in TENANTS if one != tenant for what in ("internal", "restricted")]
        others += [secret_of(TENANT, "session")] if tenant != TENANT else []
        for role in Role:
            own = [] if role is Role.ADMIN else [secret_of(tenant, "restricted")]
            client = own_api.client(own_api.key(role, tenant), timeout=60)
            clients.append(Caller(f"{role.value} of {tenant}", client, others + own))
    every = [secret_of(tenant, what) for tenant in TENANTS for what in ("internal", "restricted", "session")]
    clients.append(Caller("nobody", own_api.client(timeout=60), every))
    yield clients
    for one in clients:
        await one.client.aclose()


def nearly(rng: random.Random, value: Any) -> Any:
    """A value with something in it changed, or all of it."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice([*value, rng.choice(SPEAKERS)])
        return {**value, name: nearly(rng, value.get(name))}
    if isinstance(value, list) and rng.random() < 0.5:
        return [*value, nearly(rng, value[0] if value else {})] * rng.choice((1, 1, 300))
    return rng.choice(ODD)


def body_of(rng: random.Random, whole: Any) -> tuple[bytes, dict[str, str]]:
    """A body and its headers."""
    text = json.dumps(whole if rng.random() < 0.2 else nearly(rng, whole))
    content = rng.choice(
        (
            text.encode(),
            text.encode(),
            text.encode(),
            text.encode("utf-16"),
            b"\xef\xbb\xbf" + text.encode(),
            text.encode()[: rng.randint(0, len(text))],
            rng.randbytes(rng.choice((0, 1, 1_000, 300_000))),
            b"[" * 100_000,
            b"credential=%00&csrf=%ff" + b"&a" * 50_000,
        )
    )
    headers = {"Content-Type": rng.choice(TYPES) if rng.random() < 0.3 else TYPES[0]}
    if rng.random() < 0.1:
        headers["Content-Encoding"] = rng.choice(("gzip", "br", "identity", "nonsense"))
        content = gzip.compress(content) if headers["Content-Encoding"] == "gzip" else content
    if rng.random() < 0.1:
        headers |= {"Last-Event-ID": rng.choice(NAMES[:8]).encode("ascii", "replace").decode(), "If-Match": '"x'}
        headers |= {"Idempotency-Key": "k" * rng.choice((1, 5_000)), "traceparent": "00-" + "f" * 60}
    return content, headers


def filled(rng: random.Random, path: str) -> str:
    """The path with names in it, and perhaps a query."""
    while "{" in path:
        before, _, rest = path.partition("{")
        name = rng.choice(NAMES)
        path = before + (quote(name, safe="") if rng.random() < 0.8 else quote(name)) + rest.partition("}")[2]
    chosen = rng.sample(PARAMETERS, rng.choice((0, 0, 1, 2)))
    query = "&".join(
        f"{name}={quote(str(rng.choice((*NAMES, *ODD[:8])))[:2_000], errors='replace')}" for name in chosen
    )
    return f"{path}?{query}" if query else path


async def call(caller: Caller, method: str, path: str, body: tuple[bytes, dict[str, str]], *, is_page: bool) -> None:
    """Send it, and look at the answer; of a stream, at its beginning."""
    content, headers = body if method in {"POST", "PUT"} else (b"", {})
    request = caller.client.build_request(method, path, content=content, headers=headers)
    answer = await caller.client.send(request, stream=True)
    what = f"{caller.name}: {method} {path[:200]} {headers} {content[:200]!r}"
    try:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            shown = b""
            with suppress(TimeoutError):  # who knows the latest event is told nothing
                async with asyncio.timeout(2):
                    shown = await anext(answer.aiter_bytes(), b"")
        else:
            shown = await answer.aread()
    finally:
        await answer.aclose()
    assert answer.status_code < 500 or answer.status_code == 503, (what, shown[:500])
    if answer.status_code >= 400 and not is_page and method != "HEAD":
        problem(answer)
    for secret in caller.secrets:
        assert secret.encode() not in shown, what


async def called(caller: Caller, method: str, path: str, body: tuple[bytes, dict[str, str]], *, is_page: bool) -> None:
    """Send it; once more where a connection that was idle had ended. Who sends too much may be hung up on."""
    try:
        await call(caller, method, path, body, is_page=is_page)
    except (httpx.NetworkError, httpx.RemoteProtocolError):
        if len(body[0]) < TOO_MUCH:
            await call(caller, method, path, body, is_page=is_page)


async def all_called(calls: Sequence[Any]) -> None:
    """Make the calls, some at a time."""
    turns = asyncio.Semaphore(BESIDE)

    async def in_turn(one: Any) -> None:
        async with turns:
            await called(*one[:4], is_page=one[4])

    async with asyncio.TaskGroup() as tasks:
        for one in calls:
            tasks.create_task(in_turn(one))


async def test_whatever_is_sent_to_the_api(own_api: ApiServer, callers: list[Caller]) -> None:
    rng = random.Random(30)
    routes = [(one.method, one.path.replace(":path", "")) for one in CALLS] + [("POST", "/mcp"), ("GET", "/mcp")]
    calls = []
    for method, path in routes:
        whole = BODIES.get(path, BODIES.get(path.replace("}", ":path}"), {"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        for _ in range(EACH):
            verb = method if rng.random() < 0.9 else rng.choice(("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"))
            calls.append((rng.choice(callers), verb, filled(rng, path), body_of(rng, whole), False))
    rng.shuffle(calls)
    await all_called(calls[:BESIDE])  # what a process does once is nobody's fault
    async with others_are_answered(own_api):
        await all_called(calls)


async def test_whatever_is_sent_to_the_page(own_api: ApiServer, callers: list[Caller]) -> None:
    rng = random.Random(31)
    visitors = []
    for one in callers:
        if (shown := one.client.headers.pop("Authorization", None)) is not None:
            await logged_in(own_api, one.client, shown.removeprefix("Bearer "))
        one.client.headers["Origin"] = own_api.url
        visitors.append(one)
    form = {
        "credential": "x",
        "query": "the code",
        "session": "monday",
        "intent": "the code",
        "budget": "500",
        "csrf": "x",
    }
    calls = [
        (rng.choice(visitors), method, filled(rng, f"/ui{path}"), body_of(rng, form), True)
        for method, path in PATHS
        if path != "/logout"
        for _ in range(EACH)
    ]
    first = [
        (visitors[0], "GET", filled(rng, f"/ui{path}"), (b"", {}), True) for method, path in PATHS if method == "GET"
    ]
    await all_called(first)  # what a process does once is nobody's fault
    rng.shuffle(calls)
    async with others_are_answered(own_api):
        await all_called(calls)
