"""Other strategies, as the kind of the query wants them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.published import State
from context_builder.assembly.query import QueryKind, kind_of
from context_builder.assembly.strategies.recent import RecentMessagesStrategy, SessionMessagesStrategy
from context_builder.assembly.strategies.rolling_summary import RollingSummaryStrategy
from context_builder.assembly.strategies.semantic import SemanticSearchStrategy
from context_builder.assembly.strategies.strategy import ContextStrategy, Request
from context_builder.assembly.strategies.user_preferences import UserPreferencesStrategy


class QueryStrategy:
    """Asks those strategies that serve the request's query; with a session's published ``state``, that one's too."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        asked = (one.candidates(request) for one in self.chosen(request.query))
        return [candidate for found in await asyncio.gather(*asked) for candidate in found]

    def chosen(self, query: str) -> Sequence[ContextStrategy]:
        """The strategies for a query."""
        match kind_of(query):
            case QueryKind.SUMMARY:
                return [*self._summary(), self._messages(10), SemanticSearchStrategy(3)]
            case QueryKind.PREFERENCE:
                return [UserPreferencesStrategy(), SemanticSearchStrategy(5), self._messages(5)]
            case QueryKind.RECENT:
                return [self._messages(30), *self._summary()]
            case _:
                return [SemanticSearchStrategy(10), self._messages(5), *self._summary()]

    def _messages(self, count: int) -> ContextStrategy:
        if self._state is None:
            return RecentMessagesStrategy(count)
        return SessionMessagesStrategy(self._state, count)

    def _summary(self) -> Sequence[ContextStrategy]:
        return [] if self._state is None else [RollingSummaryStrategy(self._state)]
