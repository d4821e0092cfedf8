"""Selecting: each candidate once, the best memories, as they may be shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from context_builder.assembly.access import Governed, Redacted
from context_builder.assembly.budget.receipt import Outcome, Receipt, receipt
from context_builder.assembly.budget.section import Item, name_of
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.phases import Metrics, phase
from context_builder.assembly.prompt.fitting import Draft, Selection
from context_builder.assembly.ranking.scoring import deduplicate, ranked, score_candidates
from context_builder.assembly.ranking.signals import RankingQuery, RankingSignal, ranking_signals, similarity
from context_builder.assembly.redaction_policy import RedactionPolicy
from context_builder.assembly.turn import spoken


def select(
    draft: Draft,
    governed: Governed,
    now: datetime,
    metrics: Metrics,
    redaction: RedactionPolicy,
    redaction_of_governed: RedactionPolicy,
) -> Selection:
    """Return what competes for a prompt: each candidate of the draft once, the best memories, as they may be shown.

    What an access policy lets be seen redacted only goes through ``redaction_of_governed``, unless the policy redacted
    it itself; everything else goes through ``redaction`` where the draft says so.
    """
    refused, masked = list(draft.refused), list(draft.masked)
    query = RankingQuery(draft.query, now)
    signals = draft.signals or ranking_signals(draft.config)
    with phase("salience", metrics.time_salience()):
        offered, merged = _unique(draft)
        scored = score_candidates(offered.get(ContextType.SEMANTIC, ()), query, signals)
        refused += merged
        refused += _denied(governed, query, signals)
    with phase("ranking", metrics.time_ranking()):
        offered[ContextType.SEMANTIC], worse = _best(scored, draft)
        refused += worse
    items: dict[ContextType, list[Item]] = {}
    with phase("redaction", metrics.time_redaction()):
        for kind in draft.order:
            items[kind] = kept = []
            for given in offered.get(kind, ()):
                shown, altered, withheld = _redacted(given, draft, governed, redaction, redaction_of_governed)
                if altered:
                    masked.append((given.text, "" if withheld else shown.text))
                if withheld:
                    refused.append(receipt(given.id, given, name_of(given.type), Outcome.WITHHELD, altered))
                else:
                    kept.append(_item(shown, altered))
    return Selection(draft, items, refused, masked)


def _redacted(
    given: Candidate,
    draft: Draft,
    governed: Governed,
    redaction: RedactionPolicy,
    redaction_of_governed: RedactionPolicy,
) -> Redacted[Candidate]:
    """Return the candidate as it may be shown."""
    is_governed = governed.is_redacted(given.id)
    ruled = governed.rulings[given.id].redacted if is_governed else None
    if not (draft.redacts_all or is_governed):
        return Redacted(given)
    if ruled is None:
        return (redaction_of_governed if is_governed else redaction).candidate(given)
    if not draft.redacts_all:
        return ruled._replace(value=given)
    shown, altered, withheld = redaction.candidate(given)
    return Redacted(shown, altered or ruled.altered, withheld or ruled.withheld)


def _item(shown: Candidate, altered: str) -> Item:
    if shown.type is not ContextType.RECENT:
        return Item(shown.id, shown.text, shown.score, candidate=shown, altered=altered, projections=shown.projections)
    message = spoken(shown)
    return Item(shown.id, message["content"], message=message, candidate=shown, altered=altered)


def _denied(governed: Governed, query: RankingQuery, signals: Sequence[RankingSignal]) -> Iterator[Receipt]:
    """Yield the receipts of what an access policy denies, with the score that it would have had."""
    for one in score_candidates(governed.denied, query, signals):
        ruling = governed.rulings.get(one.id)
        yield receipt(one.id, one, name_of(one.type), Outcome.DENIED, ruling.reason if ruling else "no ruling")


def _unique(draft: Draft) -> tuple[dict[ContextType, Sequence[Candidate]], list[Receipt]]:
    """Return the candidates by their type, each once, messages as often as they were said; and receipts of the rest."""
    offered: dict[ContextType, list[Candidate]] = {}
    for one in (candidate for candidates in draft.candidates for candidate in candidates):
        offered.setdefault(one.type, []).append(one)
    unique: dict[ContextType, Sequence[Candidate]] = {}
    twice: list[Receipt] = []
    for kind, found in offered.items():
        if kind is ContextType.RECENT:
            unique[kind] = found
        else:
            unique[kind], merged = deduplicate(found, by_text=draft.unique_texts)
            twice += (receipt(one.id, one, name_of(one.type), Outcome.DROPPED, "found twice") for one in merged)
    return unique, twice


def _best(scored: Sequence[Candidate], draft: Draft) -> tuple[list[Candidate], list[Receipt]]:
    """Return the best of those that are similar enough, and receipts of the others.

    A memory may have ignored the threshold it was asked with.
    """
    best, threshold = ranked(scored), draft.threshold
    worse: list[Receipt] = []
    if threshold is not None:
        for one in best:
            if not one.base_score >= threshold:
                reason = f"similarity {similarity(one):.2f} is below {threshold:g}"
                worse.append(receipt(one.id, one, name_of(one.type), Outcome.DROPPED, reason))
        best = [one for one in best if one.base_score >= threshold]
    if draft.top_k is None:
        return best, worse
    reason = f"not among the best {draft.top_k}"
    worse += (receipt(one.id, one, name_of(one.type), Outcome.DROPPED, reason) for one in best[draft.top_k :])
    return best[: draft.top_k], worse
