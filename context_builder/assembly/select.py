"""Selecting: each candidate once, the best memories by the ranking signals, as they may be shown. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol

from context_builder.assembly.budget import Outcome, Receipt, receipt
from context_builder.assembly.candidate import Candidate, ContextType, Signal
from context_builder.assembly.config import AssemblyConfig
from context_builder.assembly.govern import Governed, Redacted, RedactionPolicy
from context_builder.assembly.metrics import Metrics
from context_builder.assembly.section import SECTION_NAMES, ChatMessage, Item
from context_builder.assembly.session_state import ASSISTANT
from context_builder.assembly.turn import spoken
from context_builder.clock import moment
from context_builder.quoting import repeated
from context_builder.tracing import span

UNKNOWN_RECENCY: Final = 0.5
"""Recency of a memory without a time, or with one that cannot be read."""

_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """What candidates are ranked for: the query's text, and the time of the build, with a time zone."""

    text: str
    now: datetime


class RankingSignal(Protocol):
    """Scores candidates from 0 to 1, purely: without a clock and without I/O."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float:
        """Return how much the score counts."""
        ...

    def score(self, candidate: Candidate, query: RankingQuery) -> float: ...


@dataclass(frozen=True, slots=True)
class Similarity:
    """Scores by the similarity that the source gave, clamped to 0..1; what is not a number counts as 0."""

    weight: float
    name: ClassVar[str] = "similarity"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        return similarity(candidate)


@dataclass(frozen=True, slots=True)
class Recency:
    """Scores ``exp(-age / days)`` of the metadata's ``timestamp`` or ``created_at``: 1 now, 0.37 after ``days``."""

    weight: float
    days: float = 30.0
    name: ClassVar[str] = "recency"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        return recency(candidate.metadata, query.now, self.days)


@dataclass(frozen=True, slots=True)
class Helpfulness:
    """Scores how much the candidate helped before, from 0 to 1; 0.5 where nobody said; fades as recency does."""

    weight: float
    days: float = 30.0
    name: ClassVar[str] = "feedback"

    def score(self, candidate: Candidate, query: RankingQuery) -> float:
        feedback = candidate.metadata.get("feedback")
        score = feedback.get("score") if isinstance(feedback, Mapping) else None
        if feedback is None or not isinstance(score, int | float) or not 0 <= score <= 1:
            return 0.5
        return 0.5 + (score - 0.5) * recency(feedback, query.now, self.days)


def ranking_signals(config: AssemblyConfig) -> tuple[RankingSignal, ...]:
    """Return the signals that candidates are ranked by, weighted as ``config`` says."""
    signals: list[RankingSignal] = [
        Similarity(config.similarity_weight),
        Recency(config.recency_weight, config.recency_days),
    ]
    if config.feedback_weight:
        signals.append(Helpfulness(config.feedback_weight, config.recency_days))
    return tuple(signals)


def similarity(candidate: Candidate) -> float:
    """Return the candidate's ``base_score`` clamped to 0..1; what is not a number comes to 0."""
    return min(1.0, max(0.0, candidate.base_score))


def recency(metadata: Mapping[str, Any], now: datetime, days: float = 30.0) -> float:
    """Return ``exp(-age / days)`` of the metadata's time; ``days`` is the e-folding time: half-life by ln 2.

    What lies ahead counts as now.
    """
    return freshness(moment(metadata.get("timestamp") or metadata.get("created_at")), now, days)


def freshness(time: datetime | None, now: datetime, days: float) -> float:
    """Return ``exp(-age / days)`` of a time with an offset; :data:`UNKNOWN_RECENCY` without one."""
    if time is None:
        return UNKNOWN_RECENCY
    return math.exp(-max(0.0, (now - time).total_seconds() / _DAY) / days)


def score_candidates(
    candidates: Sequence[Candidate], query: RankingQuery, signals: Sequence[RankingSignal]
) -> list[Candidate]:
    """Return the candidates with their signals and ``score``, the signals' weighted sum."""
    columns = [
        [Signal(signal.name, signal.weight, signal.score(one, query)) for one in candidates] for signal in signals
    ]
    rows = zip(*columns, strict=True) if columns else [()] * len(candidates)
    return [
        _ranked(one, sum(signal.weight * signal.score for signal in row), row)
        for one, row in zip(candidates, rows, strict=True)
    ]


def _ranked(one: Candidate, score: float, signals: tuple[Signal, ...]) -> Candidate:
    """Return the candidate with its score and the signals that add up to it."""
    return Candidate(  # several times as fast as ``replace``, for every candidate of every prompt
        one.id, one.text, one.type, one.base_score, score, one.label, one.role, one.speaker, one.time,
        one.origins, one.metadata, signals, one.evidence, one.projections, one.memory,
    )  # fmt: skip


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates, best first; equals stay in the order their source gave them."""
    return sorted(candidates, key=lambda candidate: -candidate.score)


def deduplicate(candidates: Iterable[Candidate], *, by_text: bool = True) -> tuple[list[Candidate], list[Candidate]]:
    """Return every candidate once, and the others: of those with the same id (or, ``by_text``, text), the most similar
    one is kept, in first place, with the origins and the evidence of all of them.
    """
    kept: list[Candidate] = []
    merged: list[Candidate] = []
    places: dict[tuple[str, str], int] = {}
    for candidate in candidates:
        names = [("id", candidate.id)]
        if by_text:
            names.append(("text", candidate.text.strip().casefold()))
        place = next((places[name] for name in names if name in places), None)
        if place is None:
            place = len(kept)
            kept.append(candidate)
        else:
            better, other = _by_similarity(kept[place], candidate)
            origins = tuple(dict.fromkeys((*kept[place].origins, *candidate.origins)))
            kept[place] = replace(better, origins=origins, evidence=_most(better.evidence, other.evidence))
            merged.append(other)
        for name in names:
            places.setdefault(name, place)
    return kept, merged


def _most(one: Mapping[str, float], other: Mapping[str, float]) -> Mapping[str, float]:
    """Return the higher of both measures, by name."""
    if not other:
        return one
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in (*one, *other)}


def _by_similarity(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    """Return the better one first; the earlier one of equals."""
    return (other, one) if other.base_score > one.base_score else (one, other)


@dataclass(frozen=True, slots=True)
class Draft:
    """All that one prompt may be made of, as given and as retrieved.

    ``required`` are the messages that are always there. ``candidates`` are lists, one a source; of the memories among
    them the ``top_k`` best of at least ``threshold`` similarity are taken, all without these. ``history`` are chat
    messages, oldest first. ``order`` says which section is kept first. ``present_texts`` are texts that
    ``required`` holds already, each with where; ``keeps_duplicates`` is a section that keeps its items although
    another has them. ``refused`` and ``masked`` are what redaction did to ``required``. ``signals`` rank the memories;
    without any, those of ``config``. With ``unique_texts``, candidates of one text are one; without, only those of one
    id.
    """

    query: str
    required: tuple[ChatMessage, ...]
    candidates: Sequence[Sequence[Candidate]]
    order: Sequence[ContextType]
    config: AssemblyConfig
    history: Sequence[ChatMessage] = ()
    top_k: int | None = None
    threshold: float | None = None
    present_texts: Mapping[str, str] = field(default_factory=dict)
    keeps_duplicates: ContextType | None = None
    refused: Sequence[Receipt] = ()
    masked: Sequence[tuple[str, str]] = ()
    signals: Sequence[RankingSignal] = ()
    unique_texts: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """What competes for the room in a prompt: deduplicated, ranked, and redacted as it may be shown.

    ``refused`` are the receipts of what is out already, ``masked`` the texts that redaction changed, before and after.
    """

    draft: Draft
    items: Mapping[ContextType, Sequence[Item]]
    refused: Sequence[Receipt]
    masked: Sequence[tuple[str, str]]


def select(
    draft: Draft,
    governed: Governed,
    now: datetime,
    metrics: Metrics,
    redaction_of_governed: RedactionPolicy,
    redaction: RedactionPolicy | None,
) -> Selection:
    """Return what competes for a prompt: each candidate of the draft once, the best memories, as they may be shown.

    What an access policy lets be seen redacted only goes through ``redaction_of_governed``, unless the policy redacted
    it itself; all else goes through ``redaction``, where there is one, and so does what the policy redacted.
    """
    refused, masked = list(draft.refused), list(draft.masked)
    query = RankingQuery(draft.query, now)
    signals = draft.signals or ranking_signals(draft.config)
    with metrics.time_salience(), span("context.salience"):
        offered, merged = _unique(draft)
        scored = score_candidates(offered.get(ContextType.SEMANTIC, ()), query, signals)
        refused += merged
        refused += _denied(governed, query, signals)
    with metrics.time_ranking(), span("context.ranking"):
        offered[ContextType.SEMANTIC], worse = _best(scored, draft)
        refused += worse
    items: dict[ContextType, list[Item]] = {}
    with metrics.time_redaction(), span("context.redaction"):
        for kind in draft.order:
            items[kind] = kept = []
            for given in offered.get(kind, ()):
                shown, altered, withheld = _redacted(given, governed, redaction_of_governed, redaction)
                if altered:
                    masked.append((given.text, "" if withheld else shown.text))
                if withheld:
                    refused.append(receipt(given.id, given, SECTION_NAMES[given.type], Outcome.WITHHELD, altered))
                else:
                    kept.append(_item(shown, altered))
    return Selection(draft, items, refused, masked)


def _redacted(
    given: Candidate,
    governed: Governed,
    redaction_of_governed: RedactionPolicy,
    redaction: RedactionPolicy | None,
) -> Redacted[Candidate]:
    """Return the candidate as it may be shown."""
    is_governed = given.id in governed.redacted
    ruled = governed.rulings[given.id].redacted if is_governed else None
    if ruled is None:
        policy = redaction_of_governed if is_governed else redaction
        return Redacted(given) if policy is None or policy.is_free else policy.candidate(given)
    if redaction is None:
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
        yield receipt(one.id, one, SECTION_NAMES[one.type], Outcome.DENIED, ruling.reason if ruling else "no ruling")


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
            twice += _dropped(merged, SECTION_NAMES[kind], "found twice") if merged else ()
    if memories := unique.get(ContextType.SEMANTIC):
        told = {one.text.strip() for one in memories}
        told |= {str(one.metadata.get("words", one.text)).strip() for one in unique.get(ContextType.SUMMARY, ())}
        again = [one for one in memories if one.speaker == ASSISTANT and repeated(one.text) in told - {""}]
        unique[ContextType.SEMANTIC] = [one for one in memories if one not in again] if again else memories
        twice += _dropped(again, SECTION_NAMES[ContextType.SEMANTIC], "reads back what is told")
    return unique, twice


def _dropped(candidates: Iterable[Candidate], section: str, reason: str) -> list[Receipt]:
    """Return the receipts of candidates that are left out for the same reason."""
    return [
        Receipt(one.id, section, Outcome.DROPPED, reason, 0, one.score, one.signals, one.origins) for one in candidates
    ]


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
                worse.append(receipt(one.id, one, SECTION_NAMES[one.type], Outcome.DROPPED, reason))
        best = [one for one in best if one.base_score >= threshold]
    if draft.top_k is None:
        return best, worse
    reason = f"not among the best {draft.top_k}"
    worse += _dropped(best[draft.top_k :], SECTION_NAMES[ContextType.SEMANTIC], reason)
    return best[: draft.top_k], worse
