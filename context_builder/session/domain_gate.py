"""Spares model calls for domains while plain text analysis is sure that nothing has changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import Analyst, DomainReading, Usage
from context_builder.errors import AnalystError
from context_builder.session.work import DomainWork

DISTANCE: Final = 0.3
"""Total variation between two plain readings, above which something may have changed."""

MOST_IN_A_ROW: Final = 4
"""Readings taken again before the model is asked all the same."""


def is_unchanged(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """Whether two plain readings (confidences, highest first) have one leading domain and are alike."""
    if not before or not now or next(iter(before)) != next(iter(now)):
        return False
    apart = sum(abs(before.get(domain, 0.0) - now.get(domain, 0.0)) for domain in {*before, *now}) / 2
    return apart <= DISTANCE


class DomainGate:
    """Compares the plain reading of the newest messages with that of those the model judged last.

    While they are alike the model's last reading stands, :data:`MOST_IN_A_ROW` times at most. ``plain`` is the plain
    text analysis, which works off the loop.
    """

    def __init__(self, plain: Analyst) -> None:
        self._plain = plain
        self._newest: Mapping[str, float] = {}
        self._judged: Mapping[str, float] = {}
        self._in_a_row = 0

    async def repeated(self, work: DomainWork) -> DomainReading | None:
        """The last reading again; ``None`` when the model is to be asked."""
        self._newest = {}
        with suppress(AnalystError):
            self._newest = (await self._plain.infer_domains(work.messages)).confidence
        if work.standing is None or self._in_a_row >= MOST_IN_A_ROW or not is_unchanged(self._judged, self._newest):
            return None
        self._in_a_row += 1
        return replace(work.standing, usage=Usage(), repeated=True)

    def judged(self, reading: DomainReading) -> None:
        """The messages of the last :meth:`repeated` were read after all; a reading by ``plain`` is no judgement."""
        self._judged = {} if reading.analyst == self._plain.name else self._newest
        self._in_a_row = 0
