"""What every answer has, whatever was asked: a trace, and if it is an error, a problem document."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from context_builder.errors import ContextBuilderError
from context_builder.server.access.caller import Role
from context_builder.server.asgi.callers import MOST_BYTES
from context_builder.server.problem import answered
from tests.services.api_server import ApiServer
from tests.services.problems import problem

pytestmark = pytest.mark.engines

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize("path", ["/sessions", "/livez", "/nowhere", "/docs"])
async def test_a_trace_goes_on_in_every_answer(api: ApiServer, path: str) -> None:
    async with api.client(api.key()) as client:
        answer = await client.get(path, headers={"traceparent": PARENT})
        assert answer.headers["x-trace-id"] == TRACE


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00-xyz",
        PARENT.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        PARENT.upper(),
        f"{PARENT}-more",
    ],
)
async def test_a_trace_that_is_none_begins_here(api: ApiServer, parent: str) -> None:
    async with api.client(api.key()) as client:
        first, second = [await client.get("/sessions", headers={"traceparent": parent}) for _ in range(2)]
    assert len({first.headers["x-trace-id"], second.headers["x-trace-id"], TRACE}) == 3


@pytest.mark.parametrize(
    ("method", "path", "options", "status"),
    [
        ("GET", "/nowhere", {}, 404),
        ("GET", "/sessions/", {}, 404),
        ("POST", "/sessions", {}, 405),
        ("GET", "/sessions/mon%20day/state", {}, 422),
        ("GET", "/memories/search?limit=0", {}, 422),
        ("GET", "/memories/search?since=yesterday", {}, 422),
        ("GET", "/memories/search?since=2026-03-03&until=2026-03-01", {}, 422),
        ("POST", "/knowledge/assessments", {"content": b"{"}, 422),
        ("POST", "/knowledge/assessments", {"json": {"ref": "a", "quality": 2, "assessor": "b"}}, 422),
        ("POST", "/knowledge/assessments", {"content": b"x" * (MOST_BYTES + 1)}, 413),
    ],
)
async def test_an_error_is_a_problem(
    api: ApiServer, method: str, path: str, options: dict[str, Any], status: int
) -> None:
    async with api.client(api.key()) as client:
        answer = await client.request(method, path, headers={"content-type": "application/json"}, **options)
    assert answer.status_code == status
    problem(answer)


async def test_a_body_without_a_length_is_limited_too(api: ApiServer) -> None:
    async def pieces(count: int) -> Any:
        for _ in range(count):
            yield b" " * 1_000_000

    async with api.client(api.key()) as client:
        answer = await client.put("/knowledge/edges", content=pieces(20))
        assert (answer.status_code, problem(answer)["title"]) == (413, "Content Too Large")
        with suppress(httpx.TransportError):  # it was cut off while it sent
            assert (await client.put("/knowledge/edges", content=pieces(1_000))).status_code == 413


async def test_what_is_wrong_is_named_by_its_place_and_never_quoted(api: ApiServer) -> None:
    body = {"kind": "document", "title": "T", "content": "c", "tags": ["fine", "x" * 201], "s3cret key!": 1}
    async with api.client(api.key()) as client:
        answer = await client.put("/knowledge/artifacts/artifact:wrong", json=body)
    places = {error["at"] for error in problem(answer)["errors"]}
    assert places == {"body.tags.1", "body.?"}
    assert "s3cret" not in answer.text
    assert "xxx" not in answer.text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"tags": "labels"}, "body.tags: should be an array"),
        ({"title": ""}, "body.title: is empty"),
        ({"title": "x" * 1_001}, "body.title: is longer than 1,000"),
        ([], "body: should be an object"),
    ],
)
async def test_what_is_wrong_is_told_in_the_words_of_json(api: ApiServer, body: Any, told: str) -> None:
    asked = {"kind": "document", "title": "T", "content": "c"} | body if body else body
    async with api.client(api.key()) as client:
        answer = await client.put("/knowledge/artifacts/artifact:wrong", json=asked)
    assert problem(answer)["detail"] == told


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.test"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:8642"}, 200),
        ({"Host": "127.0.0.1.evil.test"}, 403),
        ({"Host": "192.168.1.7"}, 403),
        ({"Host": "localhost@evil.test"}, 403),
        ({"Host": "[::1]evil.test"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://localhost:8000", "Host": "localhost:8000"}, 200),
        ({"Origin": "https://localhost", "Host": "localhost:443"}, 200),
    ],
)
async def test_only_its_own_pages_may_ask_under_its_own_names(
    api: ApiServer, headers: dict[str, str], status: int
) -> None:
    for credential in (api.key(), None):
        async with api.client(credential) as client:
            answer = await client.get("/sessions", headers=headers)
        expected = status if credential or status == 403 else 401
        assert answer.status_code == expected
        if expected != 200:
            problem(answer)


async def test_a_request_that_is_none_is_a_problem_too(api: ApiServer) -> None:
    with socket.create_connection(("127.0.0.1", api.port)) as connection:
        connection.sendall(b"whale\r\n\r\n")
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert b"x-trace-id: " in answer


async def test_a_role_that_may_not_is_told_before_its_body_is_read(api: ApiServer) -> None:
    async with api.client(api.key(Role.READER)) as client:
        answer = await client.put("/knowledge/edges", content=b"{", headers={"content-type": "application/json"})
    assert answer.status_code == 403
    assert "writer" in problem(answer)["detail"]


@pytest.mark.parametrize("error", [ContextBuilderError("Ann said: hunter22xyzzy"), RuntimeError("hunter22xyzzy")])
def test_what_should_not_have_happened_has_the_line_in_the_log_that_the_answer_promises(error: Exception) -> None:
    with capture_logs() as logged:
        assert answered(error).status == 500
    (line,) = logged
    assert (line["event"], line["kind"]) == ("http.failed", type(error).__name__)
    assert "hunter22xyzzy" not in str(line)
