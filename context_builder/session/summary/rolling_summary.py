"""The rolling summary is a ledger, and knows which part of the conversation it covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from context_builder.analysis.analyst import CompactionResult, KnownPoint, SummaryResult
from context_builder.archive.archive import SummaryRow
from context_builder.clock import Instant
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.citation import CitedMessage
from context_builder.session.summary.ledger import Ledger, LedgerUpdate
from context_builder.session.summary.point import Point
from context_builder.timestamps import with_offset


class Summary:
    """Grows by one analyst's result at a time; ``seq`` counts them from 1.

    ``covers`` is the hull of summarized listener numbers, (0, 0) before any. ``degraded_messages`` counts those that
    were summarized by the last resort because the model refuses them, or failed for too long, and not again since.
    ``sources`` are the messages that the ledger's points cite, by id.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.sources: dict[int, CitedMessage] = {}
        self.seq = 0
        self.covers: tuple[int, int] | None = None
        self.message_count = 0
        self.degraded_messages = 0
        self.rejected_points = 0
        self.last_updated: str | None = None
        self._encoded: bytes | None = None
        self._start: tuple[float, str] | None = None
        self._end: tuple[float, str] | None = None

    def take(
        self, entries: Sequence[BufferedMessage], result: SummaryResult, now: Instant, *, degraded: bool = False
    ) -> LedgerUpdate:
        """Add the result that covers ``entries``, and return what it changed."""
        update = self._add(entries, result, now)
        self.message_count += len(entries)
        self.degraded_messages += len(entries) if degraded else result.refused
        for entry in entries:
            moment = (entry.time, entry.timestamp)
            self._start = moment if self._start is None else min(self._start, moment)
            self._end = moment if self._end is None else max(self._end, moment)
            if entry.number is not None and not entry.consilience:
                low, high = self.covers or (entry.number, entry.number)
                self.covers = (min(low, entry.number), max(high, entry.number))
        return update

    def take_again(self, entries: Sequence[BufferedMessage], result: SummaryResult, now: Instant) -> LedgerUpdate:
        """Replace the degraded points of ``entries`` by a better result, and return what it changed."""
        self.degraded_messages -= len(entries) - result.refused
        return self._add(entries, result, now, instead=True)

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
        update = self.ledger.add(result.points, {entry.id: entry for entry in entries}, instead=instead)
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
            "last_updated": self.last_updated,
            "seq": self.seq,
            "message_count": self.message_count,
            "degraded_messages": self.degraded_messages,
            "rejected_points": self.rejected_points,
            "points": [point.wire() for point in self.ledger.points],
            "replaced": [list(point) for point in self.ledger.replaced],
            "next_point": self.ledger.next_id,
        }

    def restore(self, fields: Mapping[str, Any], sources: Mapping[int, CitedMessage]) -> None:
        points = map(Point.from_wire, fields["points"])
        self.ledger.restore(points, map(tuple, fields["replaced"]), fields["next_point"])
        self._keep_cited(sources)
        self.seq = fields["seq"]
        self.covers = _pair(fields["covers"])
        self.message_count = fields["message_count"]
        self.degraded_messages = fields["degraded_messages"]
        self.rejected_points = fields["rejected_points"]
        self.last_updated = fields["last_updated"]
        self._start = _pair(fields["start"])
        self._end = _pair(fields["end"])


def _archived(moment: tuple[float, str] | None) -> str | None:
    """Return a timestamp with its offset, because the archive's readers do not know this machine's time zone."""
    return None if moment is None else with_offset(moment[1], near=moment[0])


def _pair(value: Sequence[Any] | None) -> tuple[Any, Any] | None:
    return None if value is None else (value[0], value[1])
