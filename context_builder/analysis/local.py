"""A small model, asked for no more at once than it can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from context_builder.analysis.analyst import (
    Analyst,
    DomainReading,
    KeywordReading,
    Said,
    SummaryReading,
    SummaryRequest,
    Usage,
)

PORTION: Final = 6_000
"""Characters of messages in one summary call: with the prompt and the reply well within a window of 8,192 tokens."""


class LocalAnalyst:
    """Asks ``model`` in small portions.

    Small models lose count of a batch of messages, so keywords are asked for one message at a time; and their window
    is short, so a long stretch is summarized in portions. A portion that fails fails the whole.

    Implements :class:`~context_builder.analysis.analyst.Analyst`.
    """

    def __init__(self, model: Analyst) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def extract_keywords(self, messages: Sequence[Said]) -> KeywordReading:
        """One call a message."""
        readings = [await self._model.extract_keywords([said]) for said in messages]
        usage = sum((reading.usage for reading in readings), Usage())
        return KeywordReading(tuple(reading.keywords[0] for reading in readings), self.name, usage)

    async def infer_domains(self, messages: Sequence[Said]) -> DomainReading:
        return await self._model.infer_domains(messages)

    async def summarize(self, request: SummaryRequest) -> SummaryReading:
        """One call a portion; the points in the messages' order."""
        whole = SummaryReading((), self.name)
        for portion in _portions(request.messages):
            reading = await self._model.summarize(replace(request, messages=portion))
            whole = replace(
                whole,
                points=whole.points + reading.points,
                rejected=whole.rejected + reading.rejected,
                usage=whole.usage + reading.usage,
            )
        return whole

    async def close(self) -> None:
        await self._model.close()


def _portions(messages: Sequence[Said]) -> Iterator[list[Said]]:
    """The messages in order, up to :data:`PORTION` characters together; of a longer one, its beginning."""
    portion: list[Said] = []
    size = 0
    for said in messages:
        clipped = replace(said, text=said.text[:PORTION])
        if portion and size + len(clipped.text) > PORTION:
            yield portion
            portion, size = [], 0
        portion.append(clipped)
        size += len(clipped.text)
    if portion:
        yield portion
