"""Knowledge in a conversation's turn: the graph and documents as one more memory source of its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.health import gather
from context_builder.assembly.sources import RetrievalQuery
from context_builder.errors import DatabaseUnavailable
from context_builder.knowledge.artifact import ArtifactKind
from context_builder.knowledge.node import node_of
from context_builder.knowledge.request import LONGEST_INTENT, ContextBuildRequest, Retrieval, Scope, SemanticRetrieval
from context_builder.knowledge.sources import (
    GRAPH,
    SEMANTIC,
    Admission,
    PackageQuery,
    PackageSources,
    near_candidates,
    similar_candidates,
)

KNOWLEDGE: Final = "knowledge"

LONGEST: Final = 100_000
"""Characters of a content that is looked at whole; of a longer one its projections are."""

_DOCUMENTS: Final = SemanticRetrieval(kinds=tuple(kind.value for kind in ArtifactKind))


class TurnKnowledgeSource:
    """Asks the sources of packages for a turn's query, in a scope; walks in the graph begin at the turn's session, too.

    Each is waited for ``patience`` seconds; without one of them it goes on. What a document is to the query is its
    similarity, or how near it is in the graph to what is most alike. It has to be governed by an access policy.
    """

    name = KNOWLEDGE

    def __init__(
        self,
        sources: PackageSources,
        tenant_id: str,
        scope: Scope,
        patience: float,
        admission: Admission | None = None,
    ) -> None:
        self._sources = sources
        self._tenant_id = tenant_id
        self._scope = scope
        self._patience = patience
        self._admission = admission

    async def find(self, query: RetrievalQuery) -> Sequence[Candidate]:
        """Return what fits. Raises :class:`DatabaseUnavailable` where no source answers in time."""
        sessions = dict.fromkeys((*self._scope.session_ids, *([query.session_id] if query.session_id else ())))
        request = ContextBuildRequest(
            intent=query.query[:LONGEST_INTENT],
            token_budget=1,
            scope=self._scope.model_copy(update={"session_ids": tuple(sessions)}),
            retrieval=Retrieval(semantic=_DOCUMENTS, metadata=None),
        )
        asked = PackageQuery(request=request, tenant=self._tenant_id, longest=LONGEST, admission=self._admission)
        found = await gather(self._sources.questions(asked), self._patience)
        if not found.answers:
            raise DatabaseUnavailable("; ".join(f"{one.name}: {one.message}" for one in found.failures))
        alike = similar_candidates(found.answers[SEMANTIC]) if SEMANTIC in found.answers else []
        near = near_candidates(found.answers[GRAPH]) if GRAPH in found.answers else []
        return list(_merged([*alike, *near], query.session_id))

    async def warm_up(self) -> None:
        """Do nothing: the sources connect at their first use."""


def _merged(candidates: Iterable[Candidate], session_id: str | None) -> Iterator[Candidate]:
    """Yield each candidate once, but for what was said in the turn's own session, which the turn has anyway."""
    best: dict[str, Candidate] = {}
    for one in candidates:
        held = best.get(one.id, one)
        best[one.id] = replace(
            held,
            base_score=max(held.base_score, one.base_score),
            evidence={**held.evidence, **one.evidence},
            origins=tuple(dict.fromkeys((*held.origins, *one.origins))),
        )
    highest = max((one.base_score for one in best.values()), default=0.0)
    for one in best.values():
        if one.text and (not session_id or node_of(one).session != session_id):
            score = max(one.base_score, highest * one.evidence.get("graph", 0.0))
            yield replace(one, base_score=score, score=score, origins=(KNOWLEDGE, *one.origins))
