"""The rolling summary is a ledger, and knows which part of the conversation it covers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final

import orjson

from context_builder.analysis.analyst import CompactionResult, KnownPoint, SummaryResult
from context_builder.archive.archive import RevisedSummaryRow, SummaryRow
from context_builder.clock import Instant, with_offset
from context_builder.quoting import quoted_name
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.citation import SOURCE_CHARS, CitedMessage
from context_builder.session.summary.cited_change import (
    CitedChange,
    long_words,
    renamer,
    revised,
    tells,
    words_that_tell,
)
from context_builder.session.summary.ledger import Ledger, LedgerUpdate
from context_builder.session.summary.point import Point
from context_builder.session.summary.token_budget import TokenBudget

MOST_PARTS: Final = 10_000
"""Newest summaries whose messages are told apart; what was said before counts as the first's."""

FEW: Final = 5
"""Messages whose median tells the time: no single clock does."""


class Summary:
    """Grows by one analyst's result at a time; ``seq`` counts them from 1.

    ``covers`` is the hull of summarized listener numbers, (0, 0) before any. ``degraded_messages`` counts those that
    were summarized by the last resort because the model refuses them, or failed for too long, and not again since.
    ``sources`` are the messages that the ledger's points cite, by id. Of each summary its highest message id is known.
    The budget of the ledger grows with the time between the first and the last messages that were summarized, so that a
    session that is continued or replayed has the same. The median of a few messages' times counts: a clock that is
    wrong moves nothing, unless it tells most of them.
    """

    def __init__(self, budget: TokenBudget, count: Callable[[str], int]) -> None:
        self.ledger = Ledger(budget.tokens, count)
        self._budget = budget
        self.sources: dict[int, CitedMessage] = {}
        self.seq = 0
        self.covers: tuple[int, int] | None = None
        self.message_count = 0
        self.degraded_messages = 0
        self.rejected_points = 0
        self.last_updated: str | None = None
        self._parts: list[tuple[int, int]] = []
        self._encoded: bytes | None = None
        self._start: tuple[float, str] | None = None
        self._end: tuple[float, str] | None = None
        self._times = deque[float](maxlen=FEW)
        self._talk: tuple[float, float] | None = None

    def take(
        self, entries: Sequence[BufferedMessage], result: SummaryResult, now: Instant, *, degraded: bool = False
    ) -> LedgerUpdate:
        """Add the result that covers ``entries``, and return what it changed."""
        for entry in entries:
            moment = (entry.time, entry.timestamp)
            self._start = moment if self._start is None else min(self._start, moment)
            self._end = moment if self._end is None else max(self._end, moment)
            self._hear(entry.time)
        self._grow()
        update = self._add(entries, result, now)
        highest = max((entry.id for entry in entries), default=0)
        self._parts = [*self._parts, (self.seq, max([highest, *(part[1] for part in self._parts[-1:])]))][-MOST_PARTS:]
        self.message_count += len(entries)
        self.degraded_messages += len(entries) if degraded else result.refused
        for entry in entries:
            if entry.number is not None and not entry.consilience:
                low, high = self.covers or (entry.number, entry.number)
                self.covers = (min(low, entry.number), max(high, entry.number))
        return update

    def _hear(self, time: float) -> None:
        self._times.append(time)
        if len(self._times) == FEW:
            middle = median(self._times)
            low, high = self._talk or (middle, middle)
            self._talk = min(low, middle), max(high, middle)

    def _grow(self) -> None:
        if self._talk is not None:
            self.ledger.grow(self._budget.after(self._talk[1] - self._talk[0]))

    def take_again(self, entries: Sequence[BufferedMessage], result: SummaryResult, now: Instant) -> LedgerUpdate:
        """Replace the degraded points of ``entries`` by a better result, and return what it changed."""
        self.degraded_messages -= len(entries) - result.refused
        return self._add(entries, result, now, instead=True)

    def take_revised(
        self, entries: Sequence[BufferedMessage], result: SummaryResult, now: Instant, *, degraded: bool = False
    ) -> LedgerUpdate:
        """Replace what is left of the points of corrected ``entries``, and return what that changed."""
        self.degraded_messages += len(entries) if degraded else result.refused
        return self._add(entries, result, now, instead=True)

    def first_seq(self, entry_id: int) -> int | None:
        """Return the number of the first summary that may cover a message; None if none does."""
        return next((seq for seq, highest in self._parts if highest >= entry_id), None)

    def correct(self, changes: Mapping[int, CitedChange], now: Instant, also: Collection[int] = ()) -> LedgerUpdate:
        """Check the points that cite corrected messages, by id, or whose own ids are among ``also``, against what the
        messages say now.
        """
        cited = {entry_id: change for entry_id, change in changes.items() if entry_id in self.sources}
        self.sources = {**self.sources, **{entry_id: change.new for entry_id, change in cited.items()}}

        def held_against(point: Point) -> Point | None:
            after: Point | None = point
            for entry_id, change in changes.items():
                if after is not None and (entry_id in point.ids or point.id in also):
                    after = revised(after, change, self.sources)
            return after

        return self._revised(self.ledger.revise(held_against), now)

    def strike(self, texts: Mapping[int, str], now: Instant) -> LedgerUpdate:
        """Retract the points that rest on messages, by id with their texts; those that name what only these do, of all
        that they rest on; and those that rest on what was said beside them, and have several of their words from them.
        """
        self.sources = {source_id: source for source_id, source in self.sources.items() if source_id not in texts}
        struck = frozenset[str]().union(*map(words_that_tell, texts.values()))
        beside = {entry_id: long_words(text) for entry_id, text in texts.items()}

        def kept(point: Point) -> Point | None:
            is_told = not texts.keys().isdisjoint(point.ids) or tells(point, struck, self.sources, beside)
            return None if is_told else point

        return self._revised(self.ledger.revise(kept), now)

    def rename(self, names: Mapping[str, str], now: Instant) -> LedgerUpdate:
        """Rename speakers in all points; ``names`` are the new names by the old ones."""
        others = {quoted_name(old): quoted_name(new) for old, new in reversed([*names.items()])}
        in_text = renamer(others)

        def renamed(point: Point) -> Point:
            evidence = tuple(
                replace(one, speaker=others[one.speaker]) if one.speaker in others else one for one in point.evidence
            )
            by = tuple(dict.fromkeys(others.get(one, one) for one in point.by))
            return replace(point, text=in_text(point.text), by=by, evidence=evidence)

        cited = {old[:SOURCE_CHARS]: new[:SOURCE_CHARS] for old, new in reversed([*names.items()])}
        self.sources = {
            entry_id: replace(one, speaker=cited[one.speaker]) if one.speaker in cited else one
            for entry_id, one in self.sources.items()
        }
        return self._revised(self.ledger.revise(renamed), now)

    def _revised(self, update: LedgerUpdate, now: Instant) -> LedgerUpdate:
        self._keep_cited({})
        if update.changes_anything:
            self.last_updated = now.iso()
        self._encoded = None
        return update

    def next_row(self, session_id: str, domains: Sequence[str], since: int, *, strikes: bool) -> RevisedSummaryRow:
        """Count a summary that takes the place of those ``since`` a number, which are deleted where one ``strikes``."""
        self.seq += 1
        self._encoded = None
        row = self.row(session_id, (), domains)
        return RevisedSummaryRow(**row.model_dump(), supersedes_from=since, strikes=strikes)

    def compact(self, asked: Sequence[KnownPoint], result: CompactionResult, now: Instant) -> bool:
        """Rewrite the oldest points; return whether that changed anything. No new messages are covered."""
        self.rejected_points += result.rejected
        compacted = self.ledger.compact(asked, result)
        if compacted:
            self._keep_cited({})
            self.last_updated = now.iso()
        self._encoded = None
        return compacted

    def reject(self, points: int) -> None:
        """Count points of replies that were rejected."""
        self.rejected_points += points
        self._encoded = None

    def _add(
        self, entries: Sequence[BufferedMessage], result: SummaryResult, now: Instant, *, instead: bool = False
    ) -> LedgerUpdate:
        by_id = {entry.id: entry for entry in entries}
        update = self.ledger.add(result.points, by_id, instead=instead, over=result.over)
        self.rejected_points += result.rejected + len(result.points) - len(update.written)
        self._keep_cited({entry.id: CitedMessage.of(entry) for entry in entries})
        self.seq += 1
        self.last_updated = now.iso()
        self._encoded = None
        return update

    def _keep_cited(self, new: Mapping[int, CitedMessage]) -> None:
        cited = {entry_id for point in self.ledger.points for entry_id in point.ids}
        self.sources = {entry_id: source for entry_id, source in {**self.sources, **new}.items() if entry_id in cited}

    def row(self, session_id: str, entries: Iterable[BufferedMessage], domains: Sequence[str]) -> SummaryRow:
        """Return the archive's row of the summary as it stands, just after it took ``entries``."""
        low, high = self.covers or (0, 0)
        covered = dict.fromkeys(domains)
        for entry in entries:
            covered.update(dict.fromkeys(entry.domains))
        return SummaryRow(
            session_id=session_id,
            summary_seq=self.seq,
            summary_text=self.ledger.render(),
            covers_message_start=low,
            covers_message_end=high,
            message_count=self.message_count,
            time_range_start=_archived(self._start),
            time_range_end=_archived(self._end),
            domains_covered=list(covered),
        )

    def wire(self) -> dict[str, Any]:
        """Return the contract's ``rolling_summary``, with the ledger itself as ``points``."""
        return {
            "text": self.ledger.render(),
            "covers_messages": list(self.covers or (0, 0)),
            "message_count": self.message_count,
            "time_range_start": self._start[1] if self._start else None,
            "time_range_end": self._end[1] if self._end else None,
            "last_updated": self.last_updated,
            "summary_seq": self.seq,
            "degraded_messages": self.degraded_messages,
            "rejected_points": self.rejected_points,
            "points": [point.wire() for point in self.ledger.shown],
        }

    def encoded(self) -> bytes:
        """Return :meth:`wire` as JSON, made once after each result."""
        if self._encoded is None:
            self._encoded = orjson.dumps(self.wire())
        return self._encoded

    def checkpoint(self) -> dict[str, Any]:
        """Return everything :meth:`restore` needs."""
        return {
            "covers": self.covers,
            "start": self._start,
            "end": self._end,
            "talk": self._talk,
            "times": [*self._times],
            "last_updated": self.last_updated,
            "seq": self.seq,
            "message_count": self.message_count,
            "degraded_messages": self.degraded_messages,
            "rejected_points": self.rejected_points,
            "points": [point.wire() for point in self.ledger.points],
            "replaced": [list(point) for point in self.ledger.replaced],
            "next_point": self.ledger.next_id,
            "parts": self._parts,
        }

    def restore(self, fields: Mapping[str, Any], sources: Mapping[int, CitedMessage]) -> None:
        self._start = _pair(fields["start"])
        self._end = _pair(fields["end"])
        self._talk = _pair(fields["talk"])
        self._times.extend(fields["times"])
        self._grow()
        points = map(Point.from_wire, fields["points"])
        self.ledger.restore(points, map(tuple, fields["replaced"]), fields["next_point"])
        self._keep_cited(sources)
        self.seq = fields["seq"]
        self.covers = _pair(fields["covers"])
        self.message_count = fields["message_count"]
        self.degraded_messages = fields["degraded_messages"]
        self.rejected_points = fields["rejected_points"]
        self.last_updated = fields["last_updated"]
        self._parts = [(seq, highest) for seq, highest in fields["parts"]]


def _archived(moment: tuple[float, str] | None) -> str | None:
    """Return a timestamp with its offset, because the archive's readers do not know this machine's time zone."""
    return None if moment is None else with_offset(moment[1], near=moment[0])


def _pair(value: Sequence[Any] | None) -> tuple[Any, Any] | None:
    return None if value is None else (value[0], value[1])
