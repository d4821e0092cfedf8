"""Over gRPC nothing is read of a call that is refused; what is no message, or too large to be looked at, is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from context_builder.knowledge.grpc import knowledge_pb2 as pb
from context_builder.server.access.caller import Role
from context_builder.server.grpc import serving
from tests.services.api_server import TENANT, ApiServer

REDACT = "/context_builder.knowledge.MemoryRedactionService/Redact"


async def silence() -> AsyncIterator[bytes]:
    """The message of a call that never comes in."""
    await asyncio.Event().wait()
    yield b""


async def asked(
    api: ApiServer, credential: str | None, messages: AsyncIterator[bytes], method: str = REDACT
) -> tuple[Any, str]:
    """The status and the details with which a call is refused."""
    metadata = (("authorization", f"Bearer {credential}"),) if credential else ()
    async with grpc.aio.insecure_channel(api.grpc_url.removeprefix("grpc://")) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.stream_unary(method)(messages, timeout=20, metadata=metadata)
    return refused.value.code(), refused.value.details() or ""


@pytest.mark.engines
async def test_who_may_not_ask_is_refused_before_a_message_has_come(api: ApiServer) -> None:
    for credential in (None, "cbl_x"):
        assert (await asked(api, credential, silence()))[0] is grpc.StatusCode.UNAUTHENTICATED
    assert (await asked(api, api.key(Role.WRITER), silence()))[0] is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.engines
@pytest.mark.parametrize("sent", [[b"\xff\xff\xff"], [b"\x0a\x02\xff\xfe"], []], ids=["no message", "no UTF-8", "none"])
async def test_what_is_no_message_is_refused_without_a_word_of_the_library(api: ApiServer, sent: list[bytes]) -> None:
    async def messages() -> AsyncIterator[bytes]:
        for one in sent:
            yield one

    status, details = await asked(api, api.key(Role.ADMIN), messages())
    assert (status, details) == (grpc.StatusCode.INVALID_ARGUMENT, "this is no message that the call takes")


async def test_a_message_that_does_not_come_in_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "READ_SECONDS", 0.01)
    with pytest.raises(TimeoutError):
        await serving._only(silence())


@pytest.mark.engines
async def test_messages_that_do_not_come_in_hold_up_no_other_call_of_the_caller(api: ApiServer) -> None:
    key = api.key(Role.ADMIN)
    metadata = (("authorization", f"Bearer {key}"),)
    async with grpc.aio.insecure_channel(api.grpc_url.removeprefix("grpc://")) as channel:
        for call in [channel.stream_unary(REDACT)(silence(), timeout=20, metadata=metadata) for _ in range(10)]:
            await call.wait_for_connection()
        async with api.client(key, timeout=10) as client:
            assert (await client.get("/sessions")).status_code == 200


TOO_LARGE: dict[str, tuple[str, Any]] = {
    "intent": ("VectorMemoryService/Search", pb.SearchRequest(intent="kelp " * 2_000, top_k=1)),
    "refs": ("MetadataIndexService/Nodes", pb.NodesRequest(refs=["artifact:" + "x" * 4_000] * 5_000)),
    "items": ("MetadataIndexService/Nodes", pb.NodesRequest(refs=["artifact:x"] * 20_001)),
}


@pytest.mark.engines
@pytest.mark.parametrize("what", TOO_LARGE)
async def test_what_is_too_large_to_be_looked_at_is_refused(api: ApiServer, what: str) -> None:
    path, request = TOO_LARGE[what]
    request.tenant = TENANT

    async def messages() -> AsyncIterator[bytes]:
        yield request.SerializeToString()

    status, _ = await asked(api, api.key(Role.ADMIN), messages(), f"/context_builder.knowledge.{path}")
    assert status is grpc.StatusCode.INVALID_ARGUMENT
