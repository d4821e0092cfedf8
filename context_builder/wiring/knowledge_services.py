"""The settings choose for each service of context packages whether it is in this process or elsewhere, over gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.errors import require_extra
from context_builder.knowledge.redaction import PreparedRedactor
from context_builder.knowledge.service import PINNED_TIME, PackageServices
from context_builder.knowledge.services import KnowledgeServices
from context_builder.settings.groups import KnowledgeServiceSettings

if TYPE_CHECKING:
    from context_builder.knowledge.grpc.channel import ServiceChannel

T = TypeVar("T")


@asynccontextmanager
async def chosen_services(where: KnowledgeServiceSettings, local: KnowledgeServices) -> AsyncIterator[PackageServices]:
    """Open what packages are made with: of ``local`` what the settings do not name elsewhere."""
    urls = (where.graph_url, where.vectors_url, where.index_url, where.policy_url, where.redaction_url)
    if not any(urls):
        prepared = PreparedRedactor(local.redaction)
        yield PackageServices(
            local.graph, local.vectors, local.index, local.policy, RedactionPolicy(prepared), prepared
        )
        return
    require_extra("grpc", "grpc", "a service over gRPC")
    from context_builder.knowledge.grpc import clients
    from context_builder.knowledge.grpc.channel import ServiceChannel

    async with AsyncExitStack() as stack:
        token = where.token.get_secret_value() if where.token else None
        channels = {url: ServiceChannel(url, token, where.retrieval_time) for url in set(urls) if url is not None}
        for channel in channels.values():
            stack.push_async_callback(channel.close)

        def chosen(url: str | None, remote: Callable[[ServiceChannel], T], here: T) -> T:
            return here if url is None else remote(channels[url])

        prepared = PreparedRedactor(chosen(where.redaction_url, clients.RemoteRedaction, local.redaction))
        yield PackageServices(
            chosen(where.graph_url, clients.RemoteGraph, local.graph),
            chosen(where.vectors_url, clients.RemoteVectors, local.vectors),
            chosen(where.index_url, lambda channel: clients.RemoteIndex(channel, PINNED_TIME), local.index),
            chosen(where.policy_url, clients.RemotePolicy, local.policy),
            RedactionPolicy(prepared),
            prepared,
        )
