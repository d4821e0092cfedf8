"""Delivers summaries to the archive."""

from __future__ import annotations

import structlog

from context_builder import metrics
from context_builder.archive.archive import Archive, SummaryRow
from context_builder.session.courier import Courier
from context_builder.session.outbox import Outbox

log = structlog.get_logger(__name__)


def archiver(outbox: Outbox, archive: Archive) -> Courier:
    """Takes the outbox's summary rows to the archive."""

    async def deliver(entry: bytes) -> None:
        row = SummaryRow.model_validate_json(entry)
        await archive.deliver(row)
        log.info("summary.archived", session_id=row.session_id, summary_seq=row.summary_seq)

    return Courier(outbox, deliver, archive.name, metrics.SUMMARIES_ARCHIVED)
