"""Over gRPC nothing is read of a call that is refused, and what is no message is refused as that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest

from context_builder.server.access.caller import Role
from context_builder.server.grpc import serving
from tests.services.api_server import ApiServer

REDACT = "/context_builder.knowledge.MemoryRedactionService/Redact"


async def silence() -> AsyncIterator[bytes]:
    """The message of a call that never comes in."""
    await asyncio.Event().wait()
    yield b""


async def asked(api: ApiServer, credential: str | None, messages: AsyncIterator[bytes]) -> tuple[Any, str]:
    """The status and the details with which a call is refused."""
    metadata = (("authorization", f"Bearer {credential}"),) if credential else ()
    async with grpc.aio.insecure_channel(api.grpc_url.removeprefix("grpc://")) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.stream_unary(REDACT)(messages, timeout=20, metadata=metadata)
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
