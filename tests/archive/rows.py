"""Summary rows to deliver."""

from __future__ import annotations

from typing import Any

from context_builder.archive.archive import SummaryRow

ORIGINAL_TABLE = """
CREATE TABLE context_summaries (
    id bigserial PRIMARY KEY,
    session_id text NOT NULL,
    summary_text text NOT NULL,
    covers_message_start integer,
    covers_message_end integer,
    message_count integer,
    time_range_start timestamptz,
    time_range_end timestamptz,
    domains_covered {domains}
)
"""
"""A table as the first projects had it; their writer sent the domains as JSON text."""


def summary(seq: int = 1, **changes: Any) -> SummaryRow:
    return SummaryRow(
        **{
            "session_id": "session-1",
            "summary_seq": seq,
            "summary_text": f"- Alice asked how DNA is copied ({seq})",
            "covers_message_start": 1,
            "covers_message_end": 40 * seq,
            "message_count": 41 * seq,
            "time_range_start": "2025-10-02T10:30:45.123456",
            "time_range_end": "2025-10-02T12:00:00+02:00",
            "domains_covered": ["Biology / Life Sciences", "Philosophy / Ethics"],
            **changes,
        }
    )
