"""What a session's summary holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.strategies.strategy import Request


class RollingSummaryStrategy:
    """The points of a session's published state, newest first; its summary as a whole where there are no points."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = state

    async def candidates(self, request: Request) -> Sequence[Candidate]:
        summary = self._state.get("rolling_summary") or {}
        points = [point for point in summary.get("points") or () if point.get("text")]
        if points:
            return [_candidate(f"point-{point.get('id', place)}", point["text"]) for place, point in enumerate(points)][
                ::-1
            ]
        return [_candidate("summary", summary["text"])] if summary.get("text") else []


def _candidate(name: str, text: str) -> Candidate:
    return Candidate(name, str(text), ContextType.SUMMARY, origins=("session",))
