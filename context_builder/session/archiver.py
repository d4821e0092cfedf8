"""Delivers summaries to the archive."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from pydantic import ValidationError

from context_builder import metrics
from context_builder.archive.archive import Archive, SummaryRow
from context_builder.clock import Clock
from context_builder.errors import EntryUnreadable
from context_builder.session.courier import Courier
from context_builder.session.outbox import Outbox
from context_builder.session.recorder import DeadLettered

log = structlog.get_logger(__name__)


def archiver(outbox: Outbox, archive: Archive, clock: Clock, dead_lettered: Callable[[DeadLettered], None]) -> Courier:
    """Takes the outbox's summary rows to the archive."""

    async def deliver(entry: bytes) -> None:
        row = _decoded(entry)
        seq = await archive.deliver(row)
        about = {"session_id": row.session_id, "summary_seq": seq}
        if seq == row.summary_seq:
            log.info("summary.archived", **about)
        else:  # Redis lost what the archive kept, be it the whole session or its last moments
            log.warning("summary.renumbered", taken=row.summary_seq, **about)

    return Courier(outbox, deliver, archive.name, metrics.SUMMARIES_ARCHIVED, clock, dead_lettered)


def _decoded(entry: bytes) -> SummaryRow:
    try:
        return SummaryRow.model_validate_json(entry)
    except ValidationError as error:
        raise EntryUnreadable(f"not a summary: {error.errors(include_input=False)[0]['msg']}") from None
