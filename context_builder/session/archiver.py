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
        seq = await archive.deliver(row)
        about = {"session_id": row.session_id, "summary_seq": seq}
        if seq == row.summary_seq:
            log.info("summary.archived", **about)
        else:  # Redis lost what the archive kept, be it the whole session or its last moments
            log.warning("summary.renumbered", taken=row.summary_seq, **about)

    return Courier(outbox, deliver, archive.name, metrics.SUMMARIES_ARCHIVED)
