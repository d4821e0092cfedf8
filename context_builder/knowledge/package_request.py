"""What sources found for a package is fitted into its budget. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from context_builder.assembly.budget import Outcome, Receipt, added, receipt
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import Governed
from context_builder.assembly.section import Item, name_of
from context_builder.assembly.select import Draft, RankingSignal, Selection
from context_builder.errors import PinnedOverBudget
from context_builder.knowledge.access import AccessRulings
from context_builder.knowledge.bundle import FittedBundle, entry_tokens, fitted
from context_builder.knowledge.excerpt import Part, excerpts, found_parts, parts_of, pieces
from context_builder.knowledge.filling import UNFOUND, RankedSource
from context_builder.knowledge.governance import Agent
from context_builder.knowledge.node import KnowledgeNode
from context_builder.knowledge.repetition import unrepeated
from context_builder.knowledge.request import ContextBuildRequest
from context_builder.knowledge.signals import node_of
from context_builder.knowledge.sources import GRAPH, PackageFindings, PackageQuery


@dataclass(frozen=True, slots=True)
class PackageFit:
    """A selection in a budget. ``tokens`` are those of each source as rendered."""

    selection: Selection
    bundle: FittedBundle
    tokens: tuple[int, ...]

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
    """What a package is made of; ``refit`` fits the same candidates into another limit, in tokens."""

    query: PackageQuery
    agent: Agent
    now: datetime
    found: PackageFindings
    access: AccessRulings
    governed: Governed
    fit: PackageFit
    refit: Callable[[int], PackageFit]

    def added_by(self, tokens: int) -> list[Receipt]:
        """Return the receipts of what ``tokens`` more would add, from the same candidates: no source is asked again."""
        larger = self.refit(self.query.request.token_budget + tokens)
        return added(self.fit.receipts(), larger.receipts())


def package_draft(
    query: PackageQuery, governed: Governed, config: AssemblyConfig, signals: Sequence[RankingSignal]
) -> tuple[Draft, list[tuple[Item, str]]]:
    """Return what the package may be made of, and messages that are left out because a point says what they do."""
    candidates, repeated = unrepeated(_named(governed.lists), query.request.pinned)
    draft = Draft(
        query=query.request.intent,
        required=(),
        candidates=candidates,
        order=(ContextType.SEMANTIC,),
        config=config,
        signals=signals,
        unique_texts=False,
        redacts_all=False,
    )
    return draft, [
        (Item(ref, message.text, candidate=message), f"{point} says so") for ref, (message, point) in repeated.items()
    ]


def fit_package(
    selection: Selection,
    repeated: Sequence[tuple[Item, str]],
    request: ContextBuildRequest,
    limit: int,
    count: Callable[[str], int],
) -> PackageFit:
    """Return what of the selection fits into ``limit`` tokens: what is pinned, and the best passages of the rest.

    Raises :class:`~context_builder.errors.PinnedOverBudget`.
    """
    items = list(selection.items[ContextType.SEMANTIC])
    by_ref = {item.id: item for item in items}
    pinned = [by_ref[ref] for ref in dict.fromkeys(request.pinned) if ref in by_ref]
    if any(map(_is_unread, pinned)):
        raise PinnedOverBudget({item.id: count(item.text) or limit + 1 for item in pinned}, limit)
    found = [item for item in items if item.id not in request.pinned]
    rest = [item for item in found if not _is_beside_the_point(item, request)]
    bundle = fitted(
        [_whole(item) for item in pinned],
        [_ranked(_whole(item), request.intent) for item in rest if not _is_unread(item)],
        limit,
        count,
        lambda item: _shorter(item, request.intent),
    )
    unread = tuple((item, "does not fit: too long, and one word") for item in rest if _is_unread(item))
    beside = tuple((item, "has nothing of the intent in it") for item in found if _is_beside_the_point(item, request))
    bundle = replace(bundle, left=(*bundle.left, *unread, *beside, *repeated))
    tokens = tuple(entry_tokens(number, item, count) for number, item in enumerate(bundle.items, 1))
    return PackageFit(selection, bundle, tokens)


def _ranked(item: Item, intent: str) -> RankedSource:
    """Return the source with those of its passages that were found, and with how the others are."""
    node, text = _node(item), _text(item)
    found = found_parts(_found(item), text)

    def read() -> Sequence[Part]:
        if text is None and found:
            return found
        return parts_of(item.text, node.kind, node.ref, intent, found, UNFOUND)

    return RankedSource(item, node.title, item.value, found, read, text)


def _shorter(item: Item, intent: str) -> Sequence[str]:
    """Return shorter texts that may stand for a pinned source, the longest first: passages like the intent, then what
    was made when it was stored."""
    node, text = _node(item), _text(item)
    found = found_parts(_found(item), text)
    parts = parts_of(text, node.kind, node.ref, intent, found, UNFOUND) if text is not None else found
    made = excerpts(parts, node.title)
    return [*made, *(one for one in item.projections if not made or len(one) < len(made[-1]))]


def _is_beside_the_point(item: Item, request: ContextBuildRequest) -> bool:
    """Return whether a source is there for its project alone: neither alike the intent nor near to what is.

    That is what a package would be filled with while searches are slow. Fields that the request names are a reason of
    their own, and so is the scope where the request wants no search by meaning, which alone tells what is alike.
    """
    named = request.retrieval.metadata
    if item.candidate is None or request.retrieval.semantic is None or named is None:
        return False
    if named.types or named.statuses or named.modules or named.tags or request.scope.module_id:
        return False
    return item.candidate.base_score <= 0 and not item.candidate.evidence.get(GRAPH)


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
