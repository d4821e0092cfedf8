"""What a session's summary holds."""

from __future__ import annotations

from collections.abc import Sequence

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.published import State, summarized
from context_builder.assembly.strategies.strategy import Request


class RollingSummaryStrategy:
    """The points of a session's published state, newest first; its summary as a whole where there are no points."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        return summarized(self._state)
