"""A channel encrypts where its URL says so, and only for a certificate that it can trust."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import grpc.aio
import pytest

from context_builder.engines.engine import LOOPBACK
from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.grpc.channel import ServiceChannel
from context_builder.knowledge.grpc.clients import RemoteRedaction
from context_builder.knowledge.grpc.servicers import add_services
from context_builder.knowledge.services import KnowledgeServices
from tests.services.tls import Authority


class Shouting:
    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        return [text.upper() for text in texts]


@asynccontextmanager
async def served(authority: Authority) -> AsyncIterator[int]:
    server = grpc.aio.server()
    nothing = cast(Any, None)
    add_services(server, KnowledgeServices(nothing, nothing, nothing, nothing, Shouting()))
    pem = authority.server_pem
    port = server.add_secure_port(f"{LOOPBACK}:0", grpc.ssl_server_credentials([(pem, pem)]))
    await server.start()
    yield port
    await server.stop(0)


async def redacted(url: str) -> list[str | None]:
    channel = ServiceChannel(url, "token", 5.0)
    try:
        return await RemoteRedaction(channel).redact(["a"])
    finally:
        await channel.close()


async def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, unknown = (Authority(_folder(tmp_path / name)) for name in ("known", "unknown"))
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(known.ca))
    async with served(known) as port, served(unknown) as other_port:
        assert await redacted(f"grpcs://{LOOPBACK}:{port}") == ["A"]
        for url in (f"grpc://{LOOPBACK}:{port}", f"grpcs://{LOOPBACK}:{other_port}"):
            with pytest.raises(DatabaseUnavailable):
                await redacted(url)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
