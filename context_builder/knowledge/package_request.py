"""A request for a context package runs through the prompt pipeline; the candidates that fit become the package."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from context_builder.assembly.access import AccessQuestion
from context_builder.assembly.budget.message_tokens import MessageTokenCounter
from context_builder.assembly.budget.receipt import Outcome, Receipt, added, receipt
from context_builder.assembly.budget.section import Item, name_of
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.pipeline import Assembled
from context_builder.assembly.prompt.fitting import Draft, Fitting, Selection
from context_builder.assembly.ranking.signals import RankingSignal
from context_builder.assembly.retrieval.retriever import AskStrategy, RetrievalResult
from context_builder.assembly.retrieval.source import RetrievalQuery
from context_builder.errors import PinnedOverBudget
from context_builder.knowledge.artifact import MAX_CONTENT
from context_builder.knowledge.bundle import FittedBundle, entry_tokens, fitted
from context_builder.knowledge.excerpt import Part, excerpts, found_parts, parts_of, pieces
from context_builder.knowledge.filling import UNFOUND, RankedSource
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.repetition import unrepeated
from context_builder.knowledge.services import AccessReport
from context_builder.knowledge.signals import node_of
from context_builder.knowledge.sources.graph import GRAPH
from context_builder.knowledge.sources.query import PackageQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageQuestion(AccessQuestion):
    """Asks for the agent whom a credential names; the answer is noted in ``reports``, what failed in ``failures``.

    Contents of more than ``longest`` characters are not wanted.
    """

    agent: Agent
    reports: list[AccessReport]
    failures: dict[str, str]
    longest: int = MAX_CONTENT


@dataclass(frozen=True, slots=True)
class PackageFit:
    """Holds a selection in a budget; what is recorded of it. ``tokens`` are those of each source as rendered."""

    selection: Selection
    bundle: FittedBundle
    tokens: tuple[int, ...]

    @property
    def memories(self) -> int:
        return len(self.bundle.items)

    @property
    def has_unseen(self) -> bool:
        return False

    def offered_tokens(self, counter: MessageTokenCounter, total: int) -> tuple[int, int]:
        """Return what was used, twice: what is left out is not counted for its own sake."""
        return total, total

    def receipts(self) -> list[Receipt]:
        """Return a receipt for every candidate, each once."""
        made = []
        for item, tokens in zip(self.bundle.items, self.tokens, strict=True):
            outcome = Outcome.SUMMARISED if item.summarised else Outcome.REDACTED if item.altered else Outcome.INCLUDED
            reason = "; ".join(
                filter(None, (item.altered, "shown by the passages that fit the intent" if item.summarised else ""))
            )
            made.append(_receipt(item, outcome, reason, tokens))
        made += [_receipt(item, Outcome.DROPPED, reason, 0) for item, reason in self.bundle.left]
        known = {one.id for one in made}  # what several sources found is told once, with all its origins
        return [*made, *(one for one in self.selection.refused if one.id not in known)]


@dataclass(frozen=True, slots=True)
class PackageDraft:
    """Holds what a package is made of; ``refit`` fits the same candidates into another limit, in tokens.

    ``failures`` tell in words which of policy and redaction did not do its work.
    """

    fit: PackageFit
    refit: Callable[[int], PackageFit]
    retrieved: RetrievalResult
    query: PackageQuery
    agent: Agent
    report: AccessReport | None
    failures: Mapping[str, str]
    now: datetime

    def copied(self, *, cached: bool = False) -> Self:
        return self

    def added_by(self, tokens: int) -> list[Receipt]:
        """Return the receipts of what ``tokens`` more would add, from the same candidates: no source is asked again."""
        larger = self.refit(self.query.request.token_budget + tokens)
        return added(self.fit.receipts(), larger.receipts())


class PackageRequest:
    """Asks the sources of packages for what a build request wants, and fits it into its budget."""

    def __init__(
        self,
        query: PackageQuery,
        agent: Agent,
        config: AssemblyConfig,
        signals: tuple[RankingSignal, ...],
        count: Callable[[str], int],
        now: datetime,
    ) -> None:
        self.limit = query.request.token_budget
        self._query = query
        self._agent = agent
        self._config = config
        self._signals = signals
        self._count = count
        self._now = now
        self._reports: list[AccessReport] = []
        self._failures: dict[str, str] = {}
        self._repeated: list[tuple[Item, str]] = []

    def cache_key(self) -> Hashable:
        return None

    def query(self) -> RetrievalQuery | None:
        return self._query

    def strategies(self, now: datetime) -> Mapping[str, AskStrategy]:
        return {}

    def access_question(self, now: datetime) -> AccessQuestion:
        agent = self._agent
        reports, failures = self._reports, self._failures
        return PackageQuestion(
            self._query.query,
            now,
            agent.tenant,
            agent.sub,
            agent=agent,
            reports=reports,
            failures=failures,
            longest=self._query.longest,
        )

    def draft(self, retrieved: RetrievalResult) -> Draft:
        candidates, repeated = unrepeated(_named(retrieved.candidates), self._query.request.pinned)
        self._repeated = [
            (Item(ref, message.text, candidate=message), f"{point} says so")
            for ref, (message, point) in repeated.items()
        ]
        return Draft(
            query=self._query.query,
            required=(),
            candidates=candidates,
            order=(ContextType.SEMANTIC,),
            config=self._config,
            signals=self._signals,
            unique_texts=False,
            redacts_all=False,
        )

    def fit(self, fitting: Fitting, selection: Selection, limit: int) -> PackageFit:
        items = list(selection.items[ContextType.SEMANTIC])
        by_ref = {item.id: item for item in items}
        pinned = [by_ref[ref] for ref in dict.fromkeys(self._query.request.pinned) if ref in by_ref]
        if any(map(_is_unread, pinned)):
            raise PinnedOverBudget({item.id: self._count(item.text) or limit + 1 for item in pinned}, limit)
        found = [item for item in items if item.id not in self._query.request.pinned]
        rest = [item for item in found if not self._is_beside_the_point(item)]
        read = [_whole(item) for item in rest if not _is_unread(item)]
        bundle = fitted(
            [_whole(item) for item in pinned],
            [self._ranked(item) for item in read],
            limit,
            self._count,
            self._shorter,
        )
        unread = tuple((item, "does not fit: too long, and one word") for item in rest if _is_unread(item))
        beside = tuple((item, "has nothing of the intent in it") for item in found if self._is_beside_the_point(item))
        bundle = replace(bundle, left=(*bundle.left, *unread, *beside, *self._repeated))
        tokens = tuple(entry_tokens(number, item, self._count) for number, item in enumerate(bundle.items, 1))
        return PackageFit(selection, bundle, tokens)

    def _ranked(self, item: Item) -> RankedSource:
        """Return the source with those of its passages that were found, and with how the others are."""
        node, text = _node(item), _text(item)
        found = found_parts(_found(item), text)
        intent = self._query.request.intent

        def read() -> Sequence[Part]:
            if text is None and found:
                return found
            return parts_of(item.text, node.kind, node.ref, intent, found, UNFOUND)

        return RankedSource(item, node.title, item.value, found, read, text)

    def _shorter(self, item: Item) -> Sequence[str]:
        """Return shorter texts that may stand for a pinned source, the longest first: passages like the intent,
        then what was made when it was stored."""
        node, text = _node(item), _text(item)
        found = found_parts(_found(item), text)
        parts = (
            parts_of(text, node.kind, node.ref, self._query.request.intent, found, UNFOUND)
            if text is not None
            else found
        )
        made = excerpts(parts, node.title)
        return [*made, *(one for one in item.projections if not made or len(one) < len(made[-1]))]

    def _is_beside_the_point(self, item: Item) -> bool:
        """Return whether a source is there for its project alone: neither alike the intent nor near to what is.

        That is what a package would be filled with while searches are slow. Fields that the request names are a reason
        of their own, and so is the scope where the request wants no search by meaning, which alone tells what is alike.
        """
        asked = self._query.request.retrieval
        named = asked.metadata
        if item.candidate is None or asked.semantic is None or named is None:
            return False
        if named.types or named.statuses or named.modules or named.tags or self._query.request.scope.module_id:
            return False
        return item.candidate.base_score <= 0 and not item.candidate.evidence.get(GRAPH)

    def assemble(
        self, fitted: PackageFit, refit: Callable[[int], PackageFit], retrieved: RetrievalResult
    ) -> Assembled[PackageDraft, PackageFit]:
        report = self._reports[-1] if self._reports else None
        draft = PackageDraft(fitted, refit, retrieved, self._query, self._agent, report, self._failures, self._now)
        return Assembled(draft, fitted, fitted.bundle.tokens)

    def finish(self, assembled: Assembled[PackageDraft, PackageFit], retrieved: RetrievalResult, now: datetime) -> None:
        """Do nothing: who asked for the package records it."""


def _named(candidates: Sequence[Sequence[Candidate]]) -> list[list[Candidate]]:
    """Return the allowed candidates, none of which names a replacement that is not among them: it may be denied."""
    allowed = {one.id for found in candidates for one in found}

    def named(one: Candidate) -> Candidate:
        node = node_of(one)
        if node.superseded_by is None or node.superseded_by in allowed:
            return one
        hidden = node.unnamed()
        return replace(one, label=hidden.heading, metadata={**one.metadata, "node": hidden})

    return [[named(one) for one in found] for found in candidates]


def _node(item: Item) -> KnowledgeNode:
    """Return the node that an item of a package is of."""
    return node_of(item.candidate or Candidate(item.id, item.text))


def _found(item: Item) -> Sequence[Part]:
    """Return the passages of the source that a search found."""
    return item.candidate.metadata.get("passages", ()) if item.candidate is not None else ()


def _text(item: Item) -> str | None:
    """Return the whole text of the source; None where it is too long to be looked at."""
    return None if _node(item).content is None else item.text


def _is_unread(item: Item) -> bool:
    """Return whether the item's content is too long to be looked at, and there is nothing that stands for it."""
    return not item.text and _node(item).content is None and not _found(item)


def _whole(item: Item) -> Item:
    """Return the item as its longest projection where its content is too long to be looked at, else as the passages
    that were found."""
    candidate = item.candidate
    if candidate is None or candidate.metadata["node"].content is not None:
        return replace(item, tokens=0)
    text = item.text or "\n".join(pieces(sorted(_found(item)), _node(item).title, None))
    return replace(item, text=text, summarised=True, projections=item.projections[1:], tokens=0)


def _receipt(item: Item, outcome: Outcome, reason: str, tokens: int) -> Receipt:
    return receipt(item.id, item.candidate, name_of(ContextType.SEMANTIC), outcome, reason, tokens)
