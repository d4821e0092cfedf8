"""A summary row as PostgreSQL's JSON functions take it, whichever way it gets there."""

from __future__ import annotations

from typing import Any, Final

from context_builder.archive.archive import SummaryRow

TABLE: Final = "context_summaries"
MIGRATIONS: Final = "context_builder_migrations"
"""The table of what was applied to the database; its column is ``name``."""

COLUMNS: Final = tuple(SummaryRow.model_fields)
KEY: Final = ("session_id", "summary_seq")
SAME_BY: Final = ("session_id", "covers_message_end", "message_count", "summary_text")
"""Rows that are equal in these are the same summary."""


def as_record(row: SummaryRow) -> dict[str, Any]:
    """Values by column. NUL is dropped from texts: PostgreSQL's cannot hold it."""
    return {
        name: value.replace("\x00", "") if isinstance(value, str) else value
        for name, value in row.model_dump(mode="json").items()
    }
