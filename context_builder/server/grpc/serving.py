"""This module serves gRPC beside HTTP until told to stop.

A gRPC call is authenticated and counted before its message is read, and may ask about its own tenant only. So each is
handled as one that streams its messages: of the others, the library reads the message first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from context_builder.engines.engine import listen
from context_builder.errors import DatabaseUnavailable, EngineError, SettingError
from context_builder.knowledge.grpc.channel import MAX_MESSAGE
from context_builder.knowledge.grpc.servicers import CALLING_TENANT, add_services
from context_builder.knowledge.services import KnowledgeServices
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller, Role
from context_builder.server.asgi.callers import ShareLimits, Shares
from context_builder.server.problem import Problem
from context_builder.server.serving import GRACE

NEEDED_ROLE: Final = Role.ADMIN
"""Of knowledge everything is answered, undecided and unredacted, what is restricted too, which by HTTP is for admins
alone; policy decisions are about whomever the message names, and redaction is sent what must not be seen."""

READ_SECONDS: Final = 30.0
"""Seconds in which the message of a call comes in, once it is the caller's turn."""

_NO_MESSAGE: Final = "this is no message that the call takes"

_SCHEME: Final = "bearer "


class AuthenticationInterceptor(grpc.aio.ServerInterceptor):
    """Lets a call through whose metadata has one ``authorization`` that holds, of a caller with the role it takes.

    Callers and tenants have the shares that they have over HTTP.
    """

    def __init__(self, authenticator: Authenticator, shares: Shares) -> None:
        self._authenticator = authenticator
        self._shares = shares
        self._reading = Shares(ShareLimits())

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        try:
            caller = await self._caller(handler_call_details)
        except DatabaseUnavailable:
            return _refusing(grpc.StatusCode.UNAVAILABLE, "credentials cannot be looked up now")
        if caller is None:
            return _refusing(grpc.StatusCode.UNAUTHENTICATED, "a valid credential is needed: authorization: Bearer …")
        if NEEDED_ROLE not in caller.roles:
            return _refusing(grpc.StatusCode.PERMISSION_DENIED, f"this takes the role {NEEDED_ROLE.value}")
        try:
            self._shares.count_call(caller.tenant_id, caller.sub)
        except Problem as problem:
            return _refusing(grpc.StatusCode.UNAVAILABLE, str(problem.detail))
        CALLING_TENANT.set(caller.tenant_id)
        return self._in_turn(await continuation(handler_call_details), caller)

    def _in_turn(self, handler: Any, caller: Caller) -> Any:
        """Return the handler of a call whose message is read, and then answered, when it is the caller's turn."""
        if handler is None:
            return None
        whose = caller.tenant_id, caller.sub

        async def answer(messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                message = await self._read(messages, *whose)
            except Problem as problem:
                await context.abort(grpc.StatusCode.UNAVAILABLE, str(problem.detail))
            except TimeoutError:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the message did not come in in time")
            except StopAsyncIteration:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _NO_MESSAGE)
            try:
                try:
                    request = handler.request_deserializer(message)
                except DecodeError:
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _NO_MESSAGE)
                return await handler.unary_unary(request, context)
            finally:
                self._shares.end(*whose)

        return grpc.stream_unary_rpc_method_handler(answer, None, handler.response_serializer)

    async def _read(self, messages: AsyncIterator[bytes], tenant: str, sub: str) -> bytes:
        """Return the message of a call once it may be answered: what comes in slowly, or waits, holds up no others, and
        of a tenant there are as many as it may have answered. Raises :class:`Problem` where too many wait."""
        await self._reading.begin(tenant, sub)
        try:
            message = await _only(messages)
            await self._shares.begin(tenant, sub)
        finally:
            self._reading.end(tenant, sub)
        return message

    async def _caller(self, call: grpc.HandlerCallDetails) -> Caller | None:
        shown = [value for name, value in call.invocation_metadata or () if name == "authorization"]
        if len(shown) != 1 or not isinstance(shown[0], str) or shown[0][: len(_SCHEME)].lower() != _SCHEME:
            return None
        credential = shown[0][len(_SCHEME) :].strip()
        return await self._authenticator.caller(credential) if credential else None


async def _only(messages: AsyncIterator[bytes]) -> bytes:
    """Return the message of a call that has one. Raises :class:`TimeoutError` where it does not come in in time."""
    async with asyncio.timeout(READ_SECONDS):
        return await anext(messages)


def _refusing(status: grpc.StatusCode, detail: str) -> grpc.RpcMethodHandler[Any, Any]:
    """Return what answers any call with this status; its message, of up to ``MAX_MESSAGE`` bytes, is not read."""

    async def refuse(_: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.abort(status, detail)

    return grpc.stream_unary_rpc_method_handler(refuse)


@asynccontextmanager
async def serving_grpc(
    services: KnowledgeServices,
    authenticator: Authenticator,
    shares: Shares,
    host: str,
    port: int,
) -> AsyncIterator[None]:
    """Serve as long as the context lasts; calls under way may take ``GRACE`` seconds more.

    Raises :class:`SettingError` when the port cannot be had.
    """
    options = (
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.max_send_message_length", MAX_MESSAGE),
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
