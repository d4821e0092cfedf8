"""This module serves gRPC beside HTTP until told to stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio

from context_builder.engines.engine import listen
from context_builder.errors import EngineError, SettingError
from context_builder.knowledge.grpc.channel import MAX_MESSAGE
from context_builder.knowledge.grpc.servicers import add_services
from context_builder.knowledge.services import KnowledgeServices
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.asgi.callers import Shares
from context_builder.server.grpc.authentication import AuthenticationInterceptor
from context_builder.server.serving import GRACE


@asynccontextmanager
async def serving_grpc(
    services: KnowledgeServices,
    authenticator: Authenticator,
    shares: Shares,
    host: str,
    port: int,
    *,
    max_message: int = MAX_MESSAGE,
) -> AsyncIterator[None]:
    """Serve as long as the context lasts; calls under way may take ``GRACE`` seconds more.

    ``max_message`` is in bytes. Raises :class:`SettingError` when the port cannot be had.
    """
    options = (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", max_message),
        ("grpc.max_send_message_length", max_message),
    )
    try:
        listen(host, port).close()  # which says why it cannot be had; gRPC writes that to standard error by itself
    except EngineError as error:
        raise SettingError(f"SERVE_GRPC_PORT: {error}") from None
    server = grpc.aio.server(interceptors=(AuthenticationInterceptor(authenticator, shares),), options=options)
    add_services(server, services)
    address = f"[{host}]" if ":" in host else host
    try:
        server.add_insecure_port(f"{address}:{port}")
    except RuntimeError:
        raise SettingError(f"SERVE_GRPC_PORT: cannot listen on {address}:{port}") from None
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE)
