"""What was said before and fits the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.stored import candidate_of
from context_builder.assembly.strategies.strategy import Request
from context_builder.memory.memory import MemoryQuery


class SemanticSearchStrategy:
    """The ``top_k`` memories most similar to the query, of the request's user.

    Of all conversations, unless ``within_conversation``. Without a query there is nothing to look for.
    """

    def __init__(self, top_k: int = 5, *, threshold: float = 0.0, within_conversation: bool = False) -> None:
        self._top_k = top_k
        self._threshold = threshold
        self._within_conversation = within_conversation

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        if not request.query.strip():
            return []
        where = request.where()
        if not self._within_conversation:
            where = replace(where, session_id=None)
        found = await request.search(MemoryQuery(request.query, self._top_k, self._threshold, where))
        return sorted(map(candidate_of, found), key=lambda candidate: -candidate.base_score)
