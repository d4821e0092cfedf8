"""A package is built with these services; each runs in this process, or elsewhere over gRPC.

Every call raises :class:`~context_builder.errors.ContextBuilderError`, and takes the tenant from a verified credential.
``longest`` is in characters: of longer contents only projections are returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from context_builder.knowledge.artifact import Link
from context_builder.knowledge.excerpt import Part
from context_builder.knowledge.governance import Access, AccessDecision, Agent, DecisionContext, GovernedSource
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.request import GraphRetrieval, MetadataRetrieval, Scope, SemanticRetrieval

SessionSensitivities: TypeAlias = Callable[[str, Iterable[str]], Awaitable[Mapping[str, str]]]
"""Returns the sensitivities of those of a tenant's sessions of which any is stated."""


async def nothing_stated(tenant_id: str, sessions: Iterable[str]) -> Mapping[str, str]:
    """Return no sensitivity of any session."""
    return {}


@dataclass(frozen=True, slots=True)
class GraphProjection:
    """A neighbourhood: its nearest nodes, how near each ref in it is (0..1), and the edges among these nodes, and
    between them and sessions, people and tasks."""

    nodes: tuple[KnowledgeNode, ...]
    proximity: Mapping[str, float]
    edges: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class VectorDocument:
    """A node that is like an intent, how much (0..1), and whether its meaning was compared, or its words alone.

    ``passages`` are those of a document that were found, in their order, each with how much it is like the intent.
    ``seed`` is how much a walk in the graph should begin there at least (0..1).
    """

    node: KnowledgeNode
    similarity: float
    by_meaning: bool
    passages: tuple[Part, ...] = ()
    seed: float = 0.0


@dataclass(frozen=True, slots=True)
class AccessReport:
    """Access decisions in the order of the sources, and the policies that made them.

    ``policy_version`` names the policies; ``governance`` counts all changes of what may be seen. A decision that
    ``depends_on_time`` must not be reused. ``known`` are refs of sources of which the agent may know, though it may not
    read them as they are. ``by_sensitivity``: sources of one tenant and sensitivity are decided alike.
    """

    decisions: tuple[AccessDecision, ...]
    policy_version: str
    governance: int
    depends_on_time: bool
    known: frozenset[str] = frozenset()
    by_sensitivity: bool = False

    def readable(self) -> frozenset[str]:
        """Return the refs of the sources that may be read as they are."""
        return frozenset(one.ref for one in self.decisions if one.access is Access.READ)


class KnowledgeGraph(Protocol):
    """Finds nodes that are connected in the graph."""

    async def neighbourhood(
        self,
        tenant_id: str,
        seeds: Mapping[str, float],
        asked: GraphRetrieval,
        longest: int,
        known: Mapping[str, KnowledgeNode],
    ) -> GraphProjection:
        """Return what is around the seeds, which are refs with weights.

        Nodes that the caller holds already are ``known``, by ref; they need not be loaded again.
        """
        ...


class VectorMemory(Protocol):
    """Finds nodes that are similar to an intent."""

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
        """Return what is like the intent, best first; artifacts and sessions that are left out as if not there.

        With ``sensitivities``, all that is of other ones is left out, too.
        """
        ...


class MetadataIndex(Protocol):
    """Finds artifacts by their metadata fields."""

    async def find(self, tenant_id: str, asked: MetadataRetrieval, scope: Scope, longest: int) -> list[KnowledgeNode]:
        """Return what has the fields, the newest first."""
        ...

    async def nodes(self, tenant_id: str, refs: Sequence[str], longest: int) -> dict[str, KnowledgeNode]:
        """Return the nodes that there are, by ref."""
        ...


class MemoryPolicy(Protocol):
    """Decides which sources an agent may see."""

    async def decide(self, agent: Agent, sources: Sequence[GovernedSource], context: DecisionContext) -> AccessReport:
        """Return a decision for each source."""
        ...


class MemoryRedaction(Protocol):
    """Redacts texts that may only be seen redacted."""

    async def redact(self, texts: Sequence[str]) -> list[str | None]:
        """Return the texts redacted; None for one that could not be."""
        ...


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """The services that packages are made with, each in this process or elsewhere."""

    graph: KnowledgeGraph
    vectors: VectorMemory
    index: MetadataIndex
    policy: MemoryPolicy
    redaction: MemoryRedaction
