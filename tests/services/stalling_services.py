"""The five services over gRPC as a process that takes every call and answers none."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from context_builder.engines.engine import LOOPBACK, free_port
from context_builder.knowledge.services import KnowledgeServices
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller, caller_of
from tests.services.waiting import PATIENCE

TENANT = "lab"


class _Stalling:
    """Implements all of the protocols: it reports each call by a line, and waits for ever."""

    async def stall(self, *_: Any) -> NoReturn:
        print("asked", flush=True)
        await asyncio.Event().wait()
        raise AssertionError

    neighbourhood = search = find = nodes = decide = redact = stall


class _Anybody:
    async def caller(self, _: str) -> Caller:
        return caller_of(TENANT, "anybody", frozenset({"admin"}))


@dataclass(frozen=True, slots=True)
class StallingServices:
    """The process, and where it is."""

    url: str
    process: Process

    async def asked(self) -> None:
        """Wait until the next call is there."""
        assert self.process.stdout is not None
        assert await asyncio.wait_for(self.process.stdout.readline(), PATIENCE) == b"asked\n"

    async def kill(self) -> None:
        """End it at once (SIGKILL)."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def stalling_services() -> AsyncIterator[StallingServices]:
    """A process that serves, until the end of the context or until it is killed."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, str(port), stdout=PIPE)
    server = StallingServices(f"grpc://{LOOPBACK}:{port}", process)
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"serving\n"
        yield server
    finally:
        await server.kill()


async def _serve(port: int) -> None:
    from context_builder.server.asgi.callers import ShareLimits, Shares
    from context_builder.server.grpc.serving import serving_grpc

    one: Any = _Stalling()
    async with serving_grpc(
        KnowledgeServices(one, one, one, one, one),
        cast(Authenticator, _Anybody()),
        Shares(ShareLimits()),
        LOOPBACK,
        port,
    ):
        print("serving", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
