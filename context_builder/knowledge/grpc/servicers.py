"""These servicers answer gRPC calls with any implementation of the five services' protocols.

Whoever lets callers in sets ``CALLING_TENANT`` for each call. Errors become statuses; one that is not of this project
is named by its type alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, Final, TypeVar

import grpc
import grpc.aio
import structlog
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from context_builder.errors import (
    ContextBuilderError,
    DatabaseUnavailable,
    DataRejected,
)
from context_builder.knowledge.grpc import encoding
from context_builder.knowledge.grpc import knowledge_pb2 as pb
from context_builder.knowledge.grpc.channel import MAX_MESSAGE
from context_builder.knowledge.request import GraphRetrieval, MetadataRetrieval
from context_builder.knowledge.services import (
    KnowledgeGraph,
    KnowledgeServices,
    MemoryPolicy,
    MemoryRedaction,
    MetadataIndex,
    VectorMemory,
)

log = structlog.get_logger(__name__)

CALLING_TENANT: Final[ContextVar[str]] = ContextVar("calling_tenant")
"""The tenant of the credential of the call under way."""

MOST_ITEMS: Final = 20_000
"""Items of all lists of one message: to look at more would hold up others."""

MOST_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a message that asks: only what is to be redacted holds whole contents."""

Context = grpc.aio.ServicerContext[Any, Any]

S = TypeVar("S")
Request = TypeVar("Request")
Reply = TypeVar("Reply")


class _AnotherTenant(Exception):
    """Raised for a message that means another tenant than the credential's."""


def _answering(
    answer: Callable[[S, Request], Awaitable[Reply]],
) -> Callable[[S, Request, Context], Coroutine[Any, Any, Reply]]:
    """Return the method as gRPC calls it; what it raises ends the call with a status."""

    @wraps(answer)
    async def answered(servicer: S, request: Request, context: Context) -> Reply:
        try:
            if _count_items(request, MOST_ITEMS) > MOST_ITEMS:
                raise ValueError(f"holds more than {MOST_ITEMS} items")
            return await answer(servicer, request)
        except DatabaseUnavailable:
            status, detail = grpc.StatusCode.UNAVAILABLE, "the service cannot do its work now"
        except (DataRejected, ValueError):
            status, detail = grpc.StatusCode.INVALID_ARGUMENT, "the request is not one that can be answered"
        except ContextBuilderError:
            status, detail = grpc.StatusCode.FAILED_PRECONDITION, "the service refuses this call"
        except _AnotherTenant:
            status, detail = grpc.StatusCode.PERMISSION_DENIED, "the credential is another tenant's"
        except Exception as error:  # of any kind: whoever asked gets a status
            log.exception("knowledge_service.failed")
            status, detail = grpc.StatusCode.INTERNAL, type(error).__name__
        return await context.abort(status, detail)

    return answered


def _reading(kind: Any) -> Callable[[bytes], Any]:
    """Return what reads messages of a kind. It raises :class:`DecodeError`, also for one that is too large."""
    most = MAX_MESSAGE if kind is pb.RedactRequest else MOST_BYTES

    def read(written: bytes) -> Any:
        if len(written) > most:
            raise DecodeError(f"has more than {most} bytes")
        return kind.FromString(written)

    return read


def _count_items(message: Any, enough: int) -> int:
    """Return how many items the lists of a message have, at any depth; no more are counted than are ``enough``."""
    count = 0
    for field, value in message.ListFields():
        is_list = field.is_repeated
        count += len(value) if is_list else 0
        for inner in (value if is_list else (value,)) if field.message_type is not None and count <= enough else ():
            count += _count_items(inner, enough - count)
            if count > enough:
                break
    return count


def _own(tenant_id: str) -> str:
    """Return the tenant of the credential; raise unless the message means the same."""
    own = CALLING_TENANT.get()
    if tenant_id != own:
        raise _AnotherTenant
    return own


class GraphServicer:
    """Answers with a graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    @_answering
    async def Neighbourhood(self, request: pb.NeighbourhoodRequest) -> pb.NeighbourhoodReply:  # noqa: N802
        asked = GraphRetrieval(depth=request.depth, edge_types=tuple(request.edge_types), limit=request.limit)
        seeds = encoding.weights_of(request.seeds)
        tenant = _own(request.tenant)
        found = await self._graph.neighbourhood(tenant, seeds, asked, request.longest, {})
        return encoding.projection_message(found)


class VectorServicer:
    """Answers with a vector memory."""

    def __init__(self, vectors: VectorMemory) -> None:
        self._vectors = vectors

    @_answering
    async def Search(self, request: pb.SearchRequest) -> pb.SearchReply:  # noqa: N802
        asked = encoding.search_of(request)
        scope = encoding.scope_of(request.scope)
        tenant = _own(request.tenant)
        found = await self._vectors.search(
            tenant, request.intent, asked, scope, request.longest, request.without, request.sensitivities
        )
        return pb.SearchReply(documents=map(encoding.document_message, found))


class IndexServicer:
    """Answers with a metadata index."""

    def __init__(self, index: MetadataIndex) -> None:
        self._index = index

    @_answering
    async def Find(self, request: pb.FindRequest) -> pb.NodesReply:  # noqa: N802
        asked = MetadataRetrieval(
            types=tuple(request.types),
            statuses=tuple(request.statuses),
            modules=tuple(request.modules),
            tags=tuple(request.tags),
            limit=request.limit,
        )
        scope = encoding.scope_of(request.scope)
        found = await self._index.find(_own(request.tenant), asked, scope, request.longest)
        return pb.NodesReply(nodes=map(encoding.node_message, found))

    @_answering
    async def Nodes(self, request: pb.NodesRequest) -> pb.NodesReply:  # noqa: N802
        found = await self._index.nodes(_own(request.tenant), list(request.refs), request.longest)
        return pb.NodesReply(nodes=map(encoding.node_message, found.values()))


class PolicyServicer:
    """Answers with a policy service, about whomever a trusted caller names of its own tenant."""

    def __init__(self, policy: MemoryPolicy) -> None:
        self._policy = policy

    @_answering
    async def Decide(self, request: pb.DecideRequest) -> pb.DecideReply:  # noqa: N802
        _own(request.agent.tenant)
        return encoding.report_message(await self._policy.decide(*encoding.question_of(request)))


class RedactionServicer:
    """Answers with a redaction service."""

    def __init__(self, redaction: MemoryRedaction) -> None:
        self._redaction = redaction

    @_answering
    async def Redact(self, request: pb.RedactRequest) -> pb.RedactReply:  # noqa: N802
        return encoding.redacted_message(await self._redaction.redact(list(request.texts)))


def add_services(server: grpc.aio.Server, services: KnowledgeServices) -> None:
    """Let the server answer with these services."""
    servicers = {
        "KnowledgeGraphService": GraphServicer(services.graph),
        "VectorMemoryService": VectorServicer(services.vectors),
        "MetadataIndexService": IndexServicer(services.index),
        "MemoryPolicyService": PolicyServicer(services.policy),
        "MemoryRedactionService": RedactionServicer(services.redaction),
    }
    for name, servicer in servicers.items():
        described = pb.DESCRIPTOR.services_by_name[name]
        answers = {
            method.name: grpc.unary_unary_rpc_method_handler(
                getattr(servicer, method.name),
                request_deserializer=_reading(GetMessageClass(method.input_type)),
                response_serializer=GetMessageClass(method.output_type).SerializeToString,
            )
            for method in described.methods
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(described.full_name, answers),))
