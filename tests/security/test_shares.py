"""One caller, and one tenant, have their share of the server; others are answered as if they were alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from statistics import median

import httpx
import pytest
from redis.asyncio import Redis
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.grpc import clients
from context_builder.knowledge.grpc.channel import ServiceChannel
from context_builder.server.access.caller import Role, caller_of
from context_builder.server.asgi.callers import (
    BURST,
    MOST_BYTES,
    BodyLimitMiddleware,
    ShareLimits,
    Shares,
    asked_by,
)
from context_builder.server.problem import Problem
from tests.services.api_server import ApiServer
from tests.services.problems import problem
from tests.services.redis_server import RedisServer
from tests.services.waiting import PATIENCE, wait_until

RATE, STREAMS = 2, 3


@pytest.fixture(scope="module")
def small(api: ApiServer, tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[ApiServer]:
    """A server with small shares."""
    server = ApiServer(
        tmp_path_factory.mktemp("small"),
        redis_server.url,
        api.database_url,
        serve_caller_rate=RATE,
        serve_tenant_rate=2 * RATE,
        serve_caller_streams=STREAMS,
        serve_tenant_streams=STREAMS + 1,
        serve_tenant_requests=2,
    )
    yield server
    server.close()


async def calls(server: ApiServer, credential: str, count: int) -> list[httpx.Response]:
    async with server.client(credential) as client:
        return await asyncio.gather(*(client.get("/sessions") for _ in range(count)))


@pytest.mark.engines
async def test_streams_are_counted_while_they_are_open(small: ApiServer, redis: Redis) -> None:
    await redis.set("context_builder:monday:state", b'{"session_id": "monday", "revision": 1}')
    keys = [small.new_key(Role.READER).secret for _ in range(2)]

    async def opened(stack: AsyncExitStack, key: str) -> int:
        client = await stack.enter_async_context(small.client(key))
        return (await stack.enter_async_context(client.stream("GET", "/sessions/monday/events"))).status_code

    async def all_opened() -> list[int]:
        async with AsyncExitStack() as stack:
            firsts = [await opened(stack, keys[0]) for _ in range(STREAMS + 1)]
            return [*firsts, *[await opened(stack, keys[1]) for _ in range(2)]]  # which is the tenant's share

    async def counted() -> bool:
        return await all_opened() == [*[200] * STREAMS, 429, 200, 429]

    assert await counted()
    await wait_until(counted, "as many may be opened again once the server hears that they are closed", poll=0.5)


@pytest.mark.engines
async def test_too_many_calls_of_a_caller_and_of_a_tenant_are_told_when_to_come_again(small: ApiServer) -> None:
    most = int(BURST * RATE)
    first = await calls(small, small.key(Role.READER), 3 * most)
    assert [one.status_code for one in first].count(200) >= most
    refused = next(one for one in first if one.status_code == 429)
    assert problem(refused)["type"].endswith("too_many_requests")
    assert int(refused.headers["retry-after"]) >= 1
    second = await calls(small, small.key(Role.WRITER), 3 * most)
    assert 429 in [one.status_code for one in second]
    assert (await calls(small, small.key(Role.READER, tenant="other"), 1))[0].status_code == 200


@pytest.mark.engines
async def test_builds_of_one_tenant_do_not_hold_up_anothers(api: ApiServer, redis: Redis) -> None:
    request = {"intent": "Where does the otter sleep?", "tokenBudget": 2_000}

    async def build(client: httpx.AsyncClient) -> float:
        began = time.perf_counter()
        assert (await client.post("/knowledge/context/build", json=request, timeout=60)).status_code == 200
        return time.perf_counter() - began

    async with (
        api.client(api.key(Role.READER, tenant="many"), limits=httpx.Limits(max_connections=40)) as many,
        api.client(api.key(Role.READER, tenant="few")) as few,
    ):
        alone = median([await build(few) for _ in range(5)])
        over = asyncio.Event()

        answered = asyncio.Event()

        async def keep_asking() -> None:
            while not over.is_set():
                await build(many)
                answered.set()

        crowd = [asyncio.create_task(keep_asking()) for _ in range(40)]
        await answered.wait()  # one of forty: the others are asking
        beside = [await build(few) for _ in range(7)]
        over.set()
        await asyncio.gather(*crowd)
    assert median(beside) < 0.75 + 20 * alone  # forty calls that went first would take several seconds


@pytest.mark.engines
async def test_calls_of_grpc_count_too(small: ApiServer) -> None:
    channel = ServiceChannel(small.grpc_url, small.new_key(Role.ADMIN, tenant="grpc").secret, 30.0)
    redaction = clients.RemoteRedaction(channel)
    told = ""
    for _ in range(2 * int(BURST * RATE)):
        try:
            await redaction.redact(["hello"])
        except DatabaseUnavailable as error:
            told = str(error)
            break
    await channel.close()
    assert told
    assert (await calls(small, small.key(Role.READER, tenant="third"), 1))[0].status_code == 200


def test_a_share_comes_back_as_time_goes_by() -> None:
    now = [0.0]
    shares = Shares(ShareLimits(caller_rate=2, tenant_rate=100), lambda: now[0])
    for _ in range(int(BURST * 2)):
        shares.count_call("lab", "ann")
    with pytest.raises(Problem) as refused:
        shares.count_call("lab", "ann")
    assert refused.value.headers["Retry-After"] == "1"
    shares.count_call("lab", "bob")
    now[0] += 0.5
    shares.count_call("lab", "ann")


async def test_a_turn_that_is_given_up_is_the_next_ones() -> None:
    shares = Shares(ShareLimits(tenant_requests=1))
    await shares.begin("lab", "ann")
    waiting = asyncio.create_task(shares.begin("lab", "ann"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await shares.begin("club", "ann")
    shares.end("lab", "ann")
    await asyncio.wait_for(shares.begin("lab", "ann"), PATIENCE)


async def test_one_caller_leaves_turns_to_the_others_of_its_tenant() -> None:
    shares = Shares(ShareLimits(tenant_requests=3))
    begun: list[str] = []

    async def call(sub: str) -> None:
        await shares.begin("lab", sub)
        begun.append(sub)

    eager = [asyncio.create_task(call("ann")) for _ in range(200)]
    await asyncio.sleep(0)
    assert sum(one.done() for one in eager) == 150  # two are worked on, fifty wait, and the others are refused
    assert begun == ["ann"] * 2
    others = [asyncio.create_task(call(name)) for name in ("bob", "bob", "eve")]
    await asyncio.sleep(0)
    for sub in ("bob", "ann", "ann"):
        shares.end("lab", sub)
        await asyncio.sleep(0)
    assert begun == ["ann", "ann", "bob", "bob", "ann", "eve"]
    for one in (*eager, *others):
        one.cancel()
    await asyncio.gather(*eager, *others, return_exceptions=True)


async def test_bodies_that_do_not_come_in_leave_room_to_others_of_the_tenant_and_are_cut_off() -> None:
    bodies = BodyLimitMiddleware(app=_answer, patience=0.3)

    async def sent(sub: str, size: int, *pieces: bytes) -> int:
        waiting = list(pieces)
        statuses: list[int] = []

        async def receive() -> Message:
            if not waiting:
                await asyncio.Event().wait()  # nothing more comes
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message: Message) -> None:
            statuses.append(message.get("status", 0))

        headers = [(b"content-length", str(size).encode())]
        scope = {"type": "http", "method": "PUT", "path": "/knowledge/edges", "headers": headers}
        with asked_by(caller_of("lab", sub, frozenset({"reader"}))):
            await bodies(scope, receive, send)
        return statuses[0]

    stalled = [asyncio.create_task(sent("ann", MOST_BYTES)) for _ in range(4)]
    await asyncio.sleep(0)
    assert await sent("bob", 2, b"[", b"]") == 204
    assert await sent("ann", 2, b"[", b"]") == 503
    assert sorted(await asyncio.gather(*stalled)) == [408, 408, 503, 503]
    assert await sent("ann", 2, b"[", b"]") == 204


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(status_code=204)(scope, receive, send)
