"""A tool's large answer reaches the client whole, though the MCP library never had it."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Any

import orjson
import pytest
from mcp.types import JSONRPCResponse
from pydantic_core import to_json
from starlette.types import Message

from context_builder.server.large_answers import LARGE, LargeAnswer, tool_result

SAID = {"points": [{"id": 1, "text": 'She said "kelp" \\ é 🙂 {"x":true}' * (LARGE // 20)}]}


def written(returned: dict[str, Any]) -> bytes:
    """The body of the library's response."""
    result = tool_result(returned).model_dump(by_alias=True, mode="json", exclude_none=True)
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result=result)
    return answer.model_dump_json(by_alias=True, exclude_unset=True).encode()


async def sent(answer: LargeAnswer, body: bytes) -> list[Message]:
    """What the client is sent of a response with this body."""
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    sending = answer.sending(send)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await sending({"type": "http.response.start", "status": 200, "headers": headers})
    await sending({"type": "http.response.body", "body": body})
    return messages


@pytest.mark.parametrize("returned", [SAID, {"accepted": 1}], ids=["large", "small"])
async def test_a_result_has_all_that_the_tool_returned(returned: dict[str, Any]) -> None:
    begin, body = await sent(LargeAnswer(), written(returned))
    result = orjson.loads(body["body"])["result"]
    assert result["structuredContent"] == returned
    assert [one["text"] for one in result["content"]] == [to_json(returned).decode()]
    assert dict(begin["headers"])[b"content-length"] == str(len(body["body"])).encode()


async def test_the_library_is_given_little_of_a_large_answer() -> None:
    LargeAnswer()
    assert len(written(SAID)) < 1_000


def test_what_is_nested_deeply_is_hardly_longer_as_text() -> None:
    nested: Any = [1] * LARGE
    for _ in range(200):
        nested = [nested]
    returned = {"metadata": nested}
    assert len(Context().run(written, returned)) < 3 * len(to_json(returned))


async def test_requests_do_not_get_each_others_answers() -> None:
    async def asked(name: str) -> Any:
        answer, returned = LargeAnswer(), {name: "x" * LARGE}
        await asyncio.sleep(0)
        body = await asyncio.to_thread(written, returned)
        return orjson.loads((await sent(answer, body))[1]["body"])["result"]["structuredContent"] == returned

    assert all(await asyncio.gather(*map(asyncio.create_task, map(asked, "abc"))))


async def test_without_a_response_to_put_it_into_the_library_is_given_all() -> None:
    async def asked() -> bytes:
        return written(SAID)

    body = await asyncio.create_task(asked(), context=Context())
    assert orjson.loads(body)["result"]["structuredContent"] == SAID


async def test_a_stream_begins_at_once() -> None:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    await LargeAnswer().sending(send)({"type": "http.response.start", "status": 200, "headers": []})
    assert len(messages) == 1
