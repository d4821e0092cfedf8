"""A model writes artifacts' projections in the background: points of their passages, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.analysis.analyst import Analyst, AnalystMessage, SummaryRequest
from context_builder.knowledge.artifact import StoredArtifact
from context_builder.knowledge.passages import passages
from context_builder.knowledge.projection import LARGEST_SHARE, SIZES
from context_builder.knowledge.store import KnowledgeStore

LONGEST: Final = 60_000
"""Characters of an artifact that a model is asked about; of a longer one the extracts stay."""

PASSAGES_A_CALL: Final = 12
"""Passages that a model reads at once; it makes up to 12 points of them."""

FILLED: Final = 0.5
"""Share of a projection's words that points have to fill; of fewer, the extract tells more."""

_AT_ONCE: Final = 20


class ModelProjections:
    """Puts the points that a model makes of an artifact in place of extracts, once for each version.

    The model is shown nothing that is confidential or restricted. Points whose names and numbers are not those of the
    passages they cite are refused by the analyst.
    """

    def __init__(self, store: KnowledgeStore, analyst: Analyst) -> None:
        self._store = store
        self._analyst = analyst

    async def make_missing(self, tenant_id: str) -> int:
        """Make the projections of the tenant's artifacts that have extracts only; return of how many artifacts.

        Raises :class:`~context_builder.errors.KnowledgeError` and
        :class:`~context_builder.errors.AnalystError`.
        """
        made, tried = 0, set[tuple[str, int]]()
        while True:
            waiting = await self._store.unprojected(tenant_id, LONGEST, _AT_ONCE + len(tried))
            waiting = [one for one in waiting if (one.ref, one.version) not in tried]
            if not waiting:
                return made
            for artifact in waiting:
                tried.add((artifact.ref, artifact.version))
                made += await self._make(tenant_id, artifact)

    async def _make(self, tenant_id: str, artifact: StoredArtifact) -> bool:
        points: list[str] = []
        shown = [
            AnalystMessage(place, artifact.title, text) for place, text in enumerate(passages(artifact.content), 1)
        ]
        for first in range(0, len(shown), PASSAGES_A_CALL):
            result = await self._analyst.summarize(SummaryRequest(shown[first : first + PASSAGES_A_CALL]))
            points += [point.text for point in result.points]
        shorter = projections_of(points, len(artifact.content.split()))
        is_kept = await self._store.project(tenant_id, artifact.ref, artifact.version, self._analyst.name, shorter)
        return is_kept and bool(shorter)


def projections_of(points: Sequence[str], words: int) -> dict[int, str]:
    """Return texts made of the points of a text of so many ``words``, by their most words: a line for each that fits.

    None of a size that the points do not fill, nor of one that saves too little.
    """
    made: dict[int, str] = {}
    for size in SIZES:
        room, lines = size, []
        for point in points:
            length = len(point.split())
            if length <= room:
                lines.append(point)
                room -= length
        if size <= words * LARGEST_SHARE and size - room >= FILLED * size:
            made[size] = "\n".join(lines)
    return made
