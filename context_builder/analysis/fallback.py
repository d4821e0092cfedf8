"""Analysts in order of quality: when the better one fails, the next one answers, under its own name."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from context_builder.analysis.analyst import (
    Analyst,
    AnalystMessage,
    Compact,
    CompactionResult,
    DocumentResult,
    DomainResult,
    KeywordResult,
    PreferenceResult,
    ProjectDocument,
    ReadBoth,
    ReadPreferences,
    SummaryRequest,
    SummaryResult,
)
from context_builder.breaker import CallGuard, CircuitBreaker
from context_builder.errors import AnalystError, AnalystUnavailable, ContentRefused, OverBudget

_log = structlog.get_logger(__name__)

T = TypeVar("T")
R = TypeVar("R", KeywordResult, DomainResult, SummaryResult, CompactionResult, PreferenceResult, DocumentResult)


class BreakerOpen(AnalystUnavailable):
    """Raised when the model is not asked, because it keeps failing."""


class FallbackAnalyst(Analyst):
    """Asks ``primary`` while its breaker lets it, else ``fallback``.

    Keywords and domains are answered by either. A summary lasts, so plain text analysis never
    stands in for a model unasked: :meth:`summarize` raises the primary's error, and whoever has
    waited long enough asks the plain text analysis itself. For a chain, let ``fallback`` be another
    ``FallbackAnalyst``: its model does answer summaries.
    """

    def __init__(
        self,
        primary: Analyst,
        fallback: Analyst,
        breaker: CircuitBreaker | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary = primary
        self._fallback = fallback
        self._calls = CallGuard(
            breaker or CircuitBreaker(), is_answer=_is_answer, refusal=_refusal, monotonic=monotonic
        )

    @property
    def name(self) -> str:
        return self._primary.name

    @property
    def read_both(self) -> ReadBoth | None:
        """Return a function that finds keywords and domains in one call, where the primary has one."""
        read_both = self._primary.read_both
        return read_both and partial(self._read_both, read_both)

    async def extract_keywords(self, messages: Sequence[AnalystMessage]) -> KeywordResult:
        return await self._by_either(
            "keywords", self._primary.extract_keywords, self._fallback.extract_keywords, messages
        )

    async def infer_domains(self, messages: Sequence[AnalystMessage]) -> DomainResult:
        return await self._by_either("domains", self._primary.infer_domains, self._fallback.infer_domains, messages)

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        """Return the summary by the first model that answers; raises the primary's error if none does."""
        second = self._fallback.summarize if isinstance(self._fallback, FallbackAnalyst) else None
        return await self._by_either("summary", self._primary.summarize, second, request)

    @property
    def compact(self) -> Compact | None:
        """Return a function that asks the models to rewrite points, where one of them can."""
        first = self._primary.compact
        return first and partial(self._by_either, "compaction", first, self._fallback.compact)

    @property
    def read_preferences(self) -> ReadPreferences | None:
        """Return a function that asks the models for stated preferences, where one of them can tell."""
        first = self._primary.read_preferences
        return first and partial(self._by_either, "preferences", first, self._fallback.read_preferences)

    @property
    def project_document(self) -> ProjectDocument | None:
        """Return a function that asks the models for a document's key statements, where one of them can tell."""
        first = self._primary.project_document
        return first and partial(self._by_either, "artifact", first, self._fallback.project_document)

    async def close(self) -> None:
        try:
            await self._primary.close()
        finally:
            await self._fallback.close()

    async def _read_both(
        self, read_both: ReadBoth, keyword_messages: Sequence[AnalystMessage], domain_messages: Sequence[AnalystMessage]
    ) -> tuple[KeywordResult, DomainResult]:
        try:
            with self._calls.guard():
                return await read_both(keyword_messages, domain_messages)
        except OverBudget:  # the call counts as one for domains; for keywords alone there may be enough
            return await self.extract_keywords(keyword_messages), await self.infer_domains(domain_messages)
        except AnalystError as error:
            self._log_fallback("keywords and domains", error)
            failed = error
        keywords = await self._fallback.extract_keywords(keyword_messages)
        return keywords, _after(failed, await self._fallback.infer_domains(domain_messages))

    async def _by_either(
        self, task: str, first: Callable[[T], Awaitable[R]], second: Callable[[T], Awaitable[R]] | None, asked: T
    ) -> R:
        """Return the answer of the first that has one; raises the first one's error if none has."""
        try:
            with self._calls.guard():
                return await first(asked)
        except AnalystError as error:
            if second is None:
                raise
            self._log_fallback(task, error)
            try:
                return _after(error, await second(asked))
            except AnalystError:
                raise error from None

    def _log_fallback(self, task: str, error: AnalystError) -> None:
        """Log failures, but not the calls skipped because of them, or the log would be full of these."""
        if not isinstance(error, BreakerOpen | OverBudget):
            names = {"primary": self._primary.name, "fallback": self._fallback.name}
            _log.warning("analyst.fell_back", task=task, reason=str(error), **names)


def _is_answer(error: BaseException) -> bool | None:
    """Judge how a call ended: a model that was not asked, or whose caller gave up, has shown nothing."""
    if isinstance(error, ContentRefused):
        return True
    return False if isinstance(error, AnalystError) and not isinstance(error, OverBudget) else None


def _refusal(wait: float) -> BreakerOpen:
    return BreakerOpen("the model keeps failing and is left alone for now", retry_after=wait)


def _after(failed: AnalystError, result: R) -> R:
    """Return ``result`` with the usage of the call that failed before it."""
    return replace(result, usage=failed.usage + result.usage) if failed.usage else result
