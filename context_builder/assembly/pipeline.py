"""The one pipeline: retrieve, govern, deduplicate, score, redact, fit, assemble, record."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, Protocol, Self, TypeVar

import structlog

from context_builder.assembly.access import AccessPolicy, AccessQuestion
from context_builder.assembly.background import Background
from context_builder.assembly.budget.message_tokens import MessageTokenCounter
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt
from context_builder.assembly.budget.section import Item, name_of
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.phases import Metrics, phase, report, span
from context_builder.assembly.prompt.cache import ContextCache
from context_builder.assembly.prompt.fitting import Draft, Fitting, Selection
from context_builder.assembly.ranking.scoring import deduplicate, ranked, score_candidates
from context_builder.assembly.ranking.signals import RankingQuery, RankingSignal, ranking_signals, similarity
from context_builder.assembly.redaction_policy import RedactionPolicy, redacting_while
from context_builder.assembly.retrieval.retriever import AskStrategy, RetrievalResult, Retriever
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.assembly.turn import spoken
from context_builder.clock import Clock

log = structlog.get_logger(__name__)

REDACTION_SECONDS: Final = 5.0
"""Seconds in which a prompt for others has to be redacted. What is not done then is withheld; what is done is
remembered for the next prompt."""


class Cacheable(Protocol):
    """Defines a prompt that can be returned again from the cache."""

    def copied(self, *, cached: bool = False) -> Self:
        """Return a copy that shares nothing mutable; ``cached`` marks one that was built before."""
        ...


class FittedPrompt(Protocol):
    """Defines what is recorded of the candidates that were fitted into a limit."""

    @property
    def memories(self) -> int:
        """Return how many memories are in the prompt."""
        ...

    @property
    def has_unseen(self) -> bool:
        """Return whether counting what was offered takes long."""
        ...

    def offered_tokens(self, counter: MessageTokenCounter, total: int) -> tuple[int, int]:
        """Return the tokens of all that competed for a prompt of ``total`` tokens, as given and as redacted."""
        ...


P = TypeVar("P", bound=Cacheable)
F = TypeVar("F", bound=FittedPrompt)


@dataclass(frozen=True, slots=True)
class Assembled(Generic[P, F]):
    """Holds a prompt, what it was made of, and its tokens."""

    prompt: P
    fitted: F
    tokens: int


class PromptRequest(Protocol[P, F]):
    """Defines what is particular to one kind of prompt: what it asks of the sources, and how it is assembled."""

    @property
    def limit(self) -> int:
        """Return the prompt's token limit."""
        ...

    def cache_key(self) -> Hashable:
        """Return everything that the prompt is made from."""
        ...

    def query(self) -> RetrievalQuery | None:
        """Return the query for the memories; None to ask them nothing."""
        ...

    def strategies(self, now: datetime) -> Mapping[str, AskStrategy]:
        """Return the strategies that are asked too, by name."""
        ...

    def access_question(self, now: datetime) -> AccessQuestion:
        """Return for whom and for what an access policy is asked."""
        ...

    def draft(self, retrieved: RetrievalResult) -> Draft:
        """Return what the prompt may be made of; raises the error that makes the prompt impossible."""
        ...

    def fit(self, fitting: Fitting, selection: Selection, limit: int) -> F:
        """Return what of the selection fits into ``limit`` tokens."""
        ...

    def assemble(self, fitted: F, refit: Callable[[int], F], retrieved: RetrievalResult) -> Assembled[P, F]:
        """Return the prompt of the items that fit; ``refit`` fits the same selection into another limit, in tokens."""
        ...

    def finish(self, assembled: Assembled[P, F], retrieved: RetrievalResult, now: datetime) -> None:
        """Start the work that follows the prompt, in the background."""
        ...


class Pipeline:
    """Builds prompts of any kind; with an ``access`` policy, of what that allows."""

    def __init__(
        self,
        config: AssemblyConfig,
        retriever: Retriever,
        counter: MessageTokenCounter,
        policy: RedactionPolicy,
        metrics: Metrics,
        background: Background,
        clock: Clock,
        access: AccessPolicy | None = None,
        signals: Sequence[RankingSignal] = (),
    ) -> None:
        self._config = config
        self._signals = signals
        self._retriever = retriever
        self._counter = counter
        self._policy = policy
        self._metrics = metrics
        self._background = background
        self._clock = clock
        self._access = access
        self._governed_policy = policy
        self._fitting = Fitting(counter, policy)
        self._cache = ContextCache(config.cache_seconds, config.cache_size)

    async def build(self, request: PromptRequest[P, F]) -> P:
        """Return the requested prompt, or a copy of one built before within the cache's time."""
        key = request.cache_key() if self._cache.is_on else None
        cached: P | None = self._cache.get(key, self._clock.now().monotonic)
        if cached is not None:
            return cached
        with phase("total", self._metrics.time_total()):
            now = self.now()
            retrieved = await self._retriever.retrieve(request.query(), request.strategies(now))
            if self._access is not None:
                retrieved = await self._governed(self._access, request, retrieved, now)
            if self._access is None:
                assembled = self.assembled(request, retrieved, now)
            else:  # other tenants' callers wait on the same loop
                until = self._clock.now().monotonic + REDACTION_SECONDS
                with redacting_while(lambda: self._clock.now().monotonic <= until):
                    assembled = await asyncio.to_thread(self.assembled, request, retrieved, now)
            request.finish(assembled, retrieved, now)
            with span("recording"):
                self._record(assembled, request.limit)
            if retrieved.is_whole:
                self._cache.put(key, assembled.prompt, self._clock.now().monotonic)
            return assembled.prompt

    def assembled(self, request: PromptRequest[P, F], retrieved: RetrievalResult, now: datetime) -> Assembled[P, F]:
        """Return the prompt made of the retrieved candidates; does no I/O, so equal input gives an equal prompt."""
        selection = self._select(request.draft(retrieved), retrieved, now)

        def fitted(limit: int) -> F:
            return request.fit(self._fitting, selection, limit)

        with phase("tokenisation", self._metrics.time_tokenisation()):
            fits = fitted(request.limit)
        with phase("prompt", self._metrics.time_prompt()):
            return request.assemble(fits, fitted, retrieved)

    def governed(self, retriever: Retriever, access: AccessPolicy, policy: RedactionPolicy) -> Pipeline:
        """Return a pipeline that asks ``retriever`` and caches nothing: what it shows is for one reader alone.

        What ``access`` lets be seen redacted only is redacted by ``policy``, where it has not been already.
        """
        changed = copy.copy(self)
        changed._retriever = retriever
        changed._access = access
        changed._governed_policy = policy
        changed._cache = ContextCache(0.0, 0)
        return changed

    def clear_cache(self) -> None:
        """Forget all prompts, because the memories that they were made of have changed."""
        self._cache.clear()

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.fromtimestamp(self._clock.now().wall, UTC)

    async def _governed(
        self, policy: AccessPolicy, request: PromptRequest[P, F], retrieved: RetrievalResult, now: datetime
    ) -> RetrievalResult:
        """Return what the policy allows; whatever stops it, all is denied."""
        lists = (*retrieved.candidates, *retrieved.found.values())
        candidates = list({one.id: one for candidates in lists for one in candidates}.values())
        with span("access"):
            try:
                rulings = await policy.decide(candidates, request.access_question(now))
            except Exception:  # a policy of any kind
                log.exception("access.failed")
                rulings = {}
        return retrieved.governed(rulings)

    def _select(self, draft: Draft, retrieved: RetrievalResult, now: datetime) -> Selection:
        """Return what competes for the prompt: each thing once, the best memories, as they may be shown."""
        refused, masked = list(draft.refused), list(draft.masked)
        query = RankingQuery(draft.query, now)
        signals = draft.signals or self._signals or ranking_signals(draft.config)
        with phase("salience", self._metrics.time_salience()):
            offered = _unique(draft, refused)
            scored = score_candidates(offered.get(ContextType.SEMANTIC, ()), query, signals)
            refused += _denied(retrieved, query, signals)
        with phase("ranking", self._metrics.time_ranking()):
            offered[ContextType.SEMANTIC] = _best(scored, draft, refused)
        with phase("redaction", self._metrics.time_redaction()):
            items = {
                kind: [
                    item
                    for one in offered.get(kind, ())
                    if (item := self._item(one, retrieved, refused, masked, redacts_all=draft.redacts_all))
                ]
                for kind in draft.order
            }
        return Selection(draft, items, refused, masked)

    def _item(
        self,
        given: Candidate,
        retrieved: RetrievalResult,
        refused: list[Receipt],
        masked: list[tuple[str, str]],
        *,
        redacts_all: bool,
    ) -> Item | None:
        """Return the candidate as it may be shown; None where it may not be."""
        is_governed = retrieved.is_redacted(given.id)
        ruled = retrieved.rulings[given.id].redacted if is_governed else None
        if ruled is not None and not redacts_all:
            shown, altered, withheld = given, ruled.altered, ruled.withheld
        elif redacts_all or is_governed:
            policy = self._governed_policy if is_governed and ruled is None else self._policy
            shown, altered, withheld = policy.candidate(given)
            if ruled is not None:
                altered, withheld = altered or ruled.altered, withheld or ruled.withheld
        else:
            shown, altered, withheld = given, "", False
        if altered:
            masked.append((given.text, "" if withheld else shown.text))
        if withheld:
            refused.append(receipt(given.id, given, name_of(given.type), Outcome.WITHHELD, altered))
            return None
        if given.type is not ContextType.RECENT:
            return Item(
                shown.id, shown.text, shown.score, candidate=shown, altered=altered, projections=shown.projections
            )
        message = spoken(shown)
        return Item(shown.id, message["content"], message=message, candidate=shown, altered=altered)

    def _record(self, assembled: Assembled[P, F], limit: int) -> None:
        if assembled.fitted.has_unseen:
            self._background.start("count tokens", self._count_history(assembled))
        else:
            self._record_tokens(assembled, assembled.fitted.offered_tokens(self._counter, assembled.tokens))
        self._metrics.inc_prompt()
        self._metrics.inc_snippets("final", assembled.fitted.memories)
        report(self._metrics, "observe_utilization", assembled.tokens / limit)

    async def _count_history(self, assembled: Assembled[P, F]) -> None:
        """Count what is long past, too; nothing but a metric needs that, so no turn waits for it."""
        offered = await asyncio.to_thread(assembled.fitted.offered_tokens, self._counter, assembled.tokens)
        self._record_tokens(assembled, offered)

    def _record_tokens(self, assembled: Assembled[P, F], offered: tuple[int, int]) -> None:
        before, redacted = offered
        self._metrics.record_tokens(before, assembled.tokens, redacted, assembled.tokens)


def _denied(retrieved: RetrievalResult, query: RankingQuery, signals: Sequence[RankingSignal]) -> Iterator[Receipt]:
    """Yield the receipts of what an access policy denies, with the score that it would have had."""
    for one in score_candidates(retrieved.denied, query, signals):
        ruling = retrieved.rulings.get(one.id)
        yield receipt(one.id, one, name_of(one.type), Outcome.DENIED, ruling.reason if ruling else "no ruling")


def _unique(draft: Draft, refused: list[Receipt]) -> dict[ContextType, Sequence[Candidate]]:
    """Return the candidates by their type, each once; messages as often as they were said."""
    offered: dict[ContextType, list[Candidate]] = {}
    for one in (candidate for candidates in draft.candidates for candidate in candidates):
        offered.setdefault(one.type, []).append(one)
    merged: list[Candidate] = []
    unique: dict[ContextType, Sequence[Candidate]] = {
        kind: found if kind is ContextType.RECENT else deduplicate(found, merged, by_text=draft.unique_texts)
        for kind, found in offered.items()
    }
    refused += (receipt(one.id, one, name_of(one.type), Outcome.DROPPED, "found twice") for one in merged)
    return unique


def _best(scored: Sequence[Candidate], draft: Draft, refused: list[Receipt]) -> list[Candidate]:
    """Return the best of those that are similar enough; a memory may have ignored the threshold it was asked with."""
    best, threshold = ranked(scored), draft.threshold
    if threshold is not None:
        for one in best:
            if not one.base_score >= threshold:
                reason = f"similarity {similarity(one):.2f} is below {threshold:g}"
                refused.append(receipt(one.id, one, name_of(one.type), Outcome.DROPPED, reason))
        best = [one for one in best if one.base_score >= threshold]
    if draft.top_k is None:
        return best
    reason = f"not among the best {draft.top_k}"
    refused.extend(receipt(one.id, one, name_of(one.type), Outcome.DROPPED, reason) for one in best[draft.top_k :])
    return best[: draft.top_k]
