"""A model writes artifacts' projections in the background: key statements of theirs, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.analysis.analyst import Analyst, DocumentRequest, ProjectDocument
from context_builder.knowledge.artifact import StoredArtifact
from context_builder.knowledge.node import LARGEST_SHARE, SIZES
from context_builder.knowledge.passages import passages
from context_builder.knowledge.store import KnowledgeStore

LONGEST: Final = 60_000
"""Characters of an artifact that a model is asked about; of a longer one the extracts stay."""

PASSAGES_A_CALL: Final = 12
"""Passages that a model reads at once; it makes up to 12 statements of them."""

FILLED: Final = 0.5
"""Share of a projection's words that statements have to fill; of fewer, the extract tells more."""

_AT_ONCE: Final = 20


class ModelProjections:
    """Puts an artifact's key statements, by a model, in place of extracts, once for each version.

    The model is shown nothing that is confidential or restricted. Statements whose names and numbers are not those of
    their passage are refused by the analyst.
    """

    def __init__(self, store: KnowledgeStore, analyst: Analyst) -> None:
        self._store = store
        self._analyst = analyst

    async def make_missing(self, tenant_id: str) -> int:
        """Replace extracts of the tenant's artifacts by texts that the model writes; return for how many artifacts.

        None are made where the analyst has no model that can.

        Raises :class:`~context_builder.errors.DatabaseError` and
        :class:`~context_builder.errors.AnalystError`.
        """
        ask = self._analyst.project_document
        made, tried = 0, set[tuple[str, int]]()
        if ask is None:
            return made
        while True:
            waiting = await self._store.unprojected(tenant_id, LONGEST, _AT_ONCE + len(tried))
            waiting = [one for one in waiting if (one.ref, one.version) not in tried]
            if not waiting:
                return made
            for artifact in waiting:
                tried.add((artifact.ref, artifact.version))
                made += await self._make(tenant_id, artifact, ask)

    async def _make(self, tenant_id: str, artifact: StoredArtifact, ask: ProjectDocument) -> bool:
        statements: list[str] = []
        shown = [one.text for one in passages(artifact.content)]
        for first in range(0, len(shown), PASSAGES_A_CALL):
            result = await ask(DocumentRequest(artifact.title, shown[first : first + PASSAGES_A_CALL]))
            statements += result.statements
        shorter = projections_of(statements, len(artifact.content.split()))
        is_kept = await self._store.project(tenant_id, artifact.ref, artifact.version, self._analyst.name, shorter)
        return is_kept and bool(shorter)


def projections_of(statements: Sequence[str], words: int) -> dict[int, str]:
    """Return texts made of the statements of a text of so many ``words``, by their most words: a line for each that
    fits. None of a size that the statements do not fill, nor of one that saves too little.
    """
    made: dict[int, str] = {}
    for size in SIZES:
        room, lines = size, []
        for statement in statements:
            length = len(statement.split())
            if length <= room:
                lines.append(statement)
                room -= length
        if size <= words * LARGEST_SHARE and size - room >= FILLED * size:
            made[size] = "\n".join(lines)
    return made
