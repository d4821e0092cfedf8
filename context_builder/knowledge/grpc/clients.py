"""These adapters call the five services over gRPC. Each raises the errors of :class:`ServiceChannel`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from context_builder.knowledge.governance import Agent, DecisionContext, GovernedSource
from context_builder.knowledge.grpc import encoding
from context_builder.knowledge.grpc import knowledge_pb2 as pb
from context_builder.knowledge.grpc.channel import ServiceChannel
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import GraphRetrieval, MetadataRetrieval, Scope, SemanticRetrieval
from context_builder.knowledge.services import AccessReport, GraphProjection, VectorDocument


class RemoteGraph:
    """Implements :class:`~context_builder.knowledge.services.KnowledgeGraph`."""

    def __init__(self, channel: ServiceChannel) -> None:
        self._channel = channel
        self._neighbourhood = channel.method("KnowledgeGraphService", "Neighbourhood")

    async def neighbourhood(
        self,
        tenant_id: str,
        seeds: Mapping[str, float],
        asked: GraphRetrieval,
        longest: int,
        known: Mapping[str, KnowledgeNode],
    ) -> GraphProjection:
        del known  # to send them would take as long as to load them

        def request() -> pb.NeighbourhoodRequest:
            return pb.NeighbourhoodRequest(
                tenant=tenant_id,
                seeds=encoding.weighted_messages(seeds),
                depth=asked.depth,
                edge_types=asked.edge_types,
                limit=asked.limit,
                longest=longest,
            )

        return await self._channel.call(self._neighbourhood, request, encoding.projection_of)


class RemoteVectors:
    """Implements :class:`~context_builder.knowledge.services.VectorMemory`."""

    def __init__(self, channel: ServiceChannel) -> None:
        self._channel = channel
        self._search = channel.method("VectorMemoryService", "Search")

    async def search(
        self,
        tenant_id: str,
        intent: str,
        asked: SemanticRetrieval,
        scope: Scope,
        longest: int,
        without: Collection[str] = (),
        sensitivities: Collection[str] = (),
    ) -> list[VectorDocument]:
        def request() -> pb.SearchRequest:
            return encoding.search_message(tenant_id, intent, asked, scope, longest, without, sensitivities)

        def documents(reply: pb.SearchReply) -> list[VectorDocument]:
            return list(map(encoding.document_of, reply.documents))

        return await self._channel.call(self._search, request, documents)


class RemoteIndex:
    """Implements :class:`~context_builder.knowledge.services.MetadataIndex`.

    What is asked for by its ref, as pinned sources are, is waited for ``patience`` seconds; None means the channel's.
    """

    def __init__(self, channel: ServiceChannel, patience: float | None = None) -> None:
        self._channel = channel
        self._patience = patience
        self._find = channel.method("MetadataIndexService", "Find")
        self._nodes = channel.method("MetadataIndexService", "Nodes")

    async def find(self, tenant_id: str, asked: MetadataRetrieval, scope: Scope, longest: int) -> list[KnowledgeNode]:
        def request() -> pb.FindRequest:
            return pb.FindRequest(
                tenant=tenant_id,
                types=asked.types,
                statuses=asked.statuses,
                modules=asked.modules,
                tags=asked.tags,
                limit=asked.limit,
                scope=encoding.scope_message(scope),
                longest=longest,
            )

        return await self._channel.call(self._find, request, _nodes)

    async def nodes(self, tenant_id: str, refs: Sequence[str], longest: int) -> dict[str, KnowledgeNode]:
        def request() -> pb.NodesRequest:
            return pb.NodesRequest(tenant=tenant_id, refs=refs, longest=longest)

        found = await self._channel.call(self._nodes, request, _nodes, self._patience)
        return {one.ref: one for one in found}


class RemotePolicy:
    """Implements :class:`~context_builder.knowledge.services.MemoryPolicy`."""

    def __init__(self, channel: ServiceChannel) -> None:
        self._channel = channel
        self._decide = channel.method("MemoryPolicyService", "Decide")

    async def decide(self, agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext) -> AccessReport:
        def request() -> pb.DecideRequest:
            return encoding.question_message(agent, sources, context)

        def report(reply: pb.DecideReply) -> AccessReport:
            if [one.ref for one in reply.decisions] != [one.ref for one in sources]:
                raise ValueError("decides on other sources")
            return encoding.report_of(reply)

        return await self._channel.call(self._decide, request, report)


class RemoteRedaction:
    """Implements :class:`~context_builder.knowledge.services.MemoryRedaction`."""

    def __init__(self, channel: ServiceChannel) -> None:
        self._channel = channel
        self._redact = channel.method("MemoryRedactionService", "Redact")

    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        def redacted(reply: pb.RedactReply) -> list[str | None]:
            if len(reply.texts) != len(texts):
                raise ValueError("redacts other texts")
            return encoding.redacted_of(reply)

        return await self._channel.call(self._redact, lambda: pb.RedactRequest(texts=texts), redacted)


def _nodes(reply: pb.NodesReply) -> list[KnowledgeNode]:
    return list(map(encoding.node_of, reply.nodes))
