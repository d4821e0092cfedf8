"""A channel connects to the services at one address and translates gRPC errors into this package's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio
import structlog
from google.protobuf.message_factory import GetMessageClass

from context_builder.errors import (
    DatabaseError,
    DatabaseRejected,
    DatabaseUnavailable,
    DataRejected,
    KnowledgeTimeout,
)
from context_builder.knowledge.grpc import knowledge_pb2 as pb

log = structlog.get_logger(__name__)

T = TypeVar("T")

MAX_MESSAGE: Final = 128 * 1024 * 1024
"""Bytes of one message, enough for 50 contents of 2 MB; ``longest`` keeps replies to small budgets far below."""

_RECONNECT_MS: Final = 1_000
"""Most milliseconds between two tries to connect, so that a service that is back is soon asked again."""

_REFUSALS: Final = {
    grpc.StatusCode.UNAUTHENTICATED: "does not take KNOWLEDGE_SERVICE_TOKEN",
    grpc.StatusCode.PERMISSION_DENIED: "does not let KNOWLEDGE_SERVICE_TOKEN ask this, of this tenant",
    grpc.StatusCode.UNIMPLEMENTED: "does not have this call",
    grpc.StatusCode.FAILED_PRECONDITION: "refuses this call",
}
_DATA_REFUSALS: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: "refuses what was sent",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "takes or sends no message of this size",
}


class ServiceChannel:
    """Calls the services at ``grpc://host:port``, or ``grpcs://`` over TLS, and shows them ``token``.

    A call that is not answered within ``patience`` seconds, or its own, raises
    :class:`~context_builder.errors.DatabaseUnavailable`, one that is refused
    :class:`~context_builder.errors.DatabaseRejected`. A message has at most ``max_message`` bytes.
    """

    def __init__(self, url: str, token: str | None, patience: float, max_message: int = MAX_MESSAGE) -> None:
        where = urlsplit(url)
        self._address = where.netloc
        self._patience = patience
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        options = (
            ("grpc.enable_http_proxy", 0),
            ("grpc.max_receive_message_length", max_message),
            ("grpc.max_send_message_length", max_message),
            ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS // 10),
            ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS),
        )
        if where.scheme == "grpcs":
            credentials = grpc.ssl_channel_credentials()
            self.channel = grpc.aio.secure_channel(self._address, credentials, options)
        else:
            self.channel = grpc.aio.insecure_channel(self._address, options)
        self.channel.get_state(try_to_connect=True)  # or the first call would spend its patience on that

    def method(self, service: str, name: str) -> Any:
        """Return a method of a service, as ``knowledge.proto`` describes it; :meth:`call` calls it."""
        described = pb.DESCRIPTOR.services_by_name[service]
        method = described.methods_by_name[name]
        return self.channel.unary_unary(
            f"/{described.full_name}/{name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )

    async def call(
        self, method: Any, request: Callable[[], Any], value_of: Callable[[Any], T], patience: float | None = None
    ) -> T:
        """Return the value of what ``method`` answers to the request."""
        patience = self._patience if patience is None else patience
        try:
            message = request()
        except ValueError:
            raise DataRejected("holds half of a surrogate pair, or a number out of bounds") from None
        try:
            return value_of(await method(message, timeout=patience, metadata=self._metadata))
        except grpc.aio.AioRpcError as error:
            raise self._error(error.code(), patience) from None
        except ValueError:
            raise DatabaseRejected(f"the service at {self._address} answers what nobody asked for") from None

    async def close(self) -> None:
        """Close the connection."""
        await self.channel.close()

    def _error(self, code: grpc.StatusCode, patience: float) -> DatabaseError:
        """Return the error of a status; what the other side says of it is not told: it may quote what was sent."""
        log.warning("knowledge_service.failed", address=self._address, status=code.name)
        service = f"the service at {self._address}"
        if code in _DATA_REFUSALS:
            return DataRejected(f"{service} {_DATA_REFUSALS[code]}")
        if code in _REFUSALS:
            return DatabaseRejected(f"{service} {_REFUSALS[code]}")
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return KnowledgeTimeout(service, patience)
        return DatabaseUnavailable(f"{service} does not answer")
