"""A gRPC call is authenticated before its message is read; it may ask only about the credential's tenant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc
import grpc.aio

from context_builder.errors import KnowledgeUnavailable
from context_builder.knowledge.grpc.servicers import CALLING_TENANT
from context_builder.server.access.authenticator import Authenticator
from context_builder.server.access.caller import Caller, Role

NEEDED_ROLE: Final = Role.ADMIN
"""Of knowledge everything is answered, undecided and unredacted, what is restricted too, which by HTTP is for admins
alone; policy decisions are about whomever the message names, and redaction is sent what must not be seen."""

_SCHEME: Final = "bearer "


class AuthenticationInterceptor(grpc.aio.ServerInterceptor):
    """Lets a call through whose metadata has one ``authorization`` that holds, of a caller with the role it takes."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        try:
            caller = await self._caller(handler_call_details)
        except KnowledgeUnavailable:
            return _refusing(grpc.StatusCode.UNAVAILABLE, "credentials cannot be looked up now")
        if caller is None:
            return _refusing(grpc.StatusCode.UNAUTHENTICATED, "a valid credential is needed: authorization: Bearer …")
        if not caller.may(NEEDED_ROLE):
            return _refusing(grpc.StatusCode.PERMISSION_DENIED, f"this takes the role {NEEDED_ROLE.value}")
        CALLING_TENANT.set(caller.tenant_id)
        return await continuation(handler_call_details)

    async def _caller(self, call: grpc.HandlerCallDetails) -> Caller | None:
        shown = [value for name, value in call.invocation_metadata or () if name == "authorization"]
        if len(shown) != 1 or not isinstance(shown[0], str) or shown[0][: len(_SCHEME)].lower() != _SCHEME:
            return None
        credential = shown[0][len(_SCHEME) :].strip()
        return await self._authenticator.caller(credential) if credential else None


def _refusing(status: grpc.StatusCode, detail: str) -> grpc.RpcMethodHandler[Any, Any]:
    """Return what answers any call with this status."""

    async def refuse(_: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.abort(status, detail)

    return grpc.unary_unary_rpc_method_handler(refuse)
