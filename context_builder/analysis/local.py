"""A small model, asked for no more at once than it can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    DomainResult,
    KeywordResult,
    ProjectDocument,
    SummaryRequest,
    SummaryResult,
)
from context_builder.analysis.chunking import chunks, summarized
from context_builder.costs import Usage

PORTION: Final = 6_000
"""Bytes of messages in one summary call, and so tokens at most: with prompt and reply within a window of 8,192."""


class LocalAnalyst(Analyst):
    """Asks ``model`` in small portions.

    Small models lose count of a batch of messages, so keywords are asked for one message at a time; and their window
    is short, so a long stretch is summarized in portions. A portion that fails fails the whole.
    """

    def __init__(self, model: Analyst) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        """Ask for the keywords of one message a call."""
        results = [await self._model.extract_keywords([said]) for said in messages]
        usage = sum((result.usage for result in results), Usage())
        return KeywordResult(tuple(result.keywords[0] for result in results), self.name, usage)

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        return await self._model.infer_domains(messages)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Ask for the points of one portion a call; return them in the messages' order."""
        parts = chunks(request.messages, PORTION, _bytes)
        return await summarized(request, parts, self._model.summarize, self.name)

    @property
    def project_document(self) -> ProjectDocument | None:
        return self._model.project_document

    async def close(self) -> None:
        await self._model.close()


def _bytes(line: str) -> int:
    return len(line.encode("utf-8", "replace"))
