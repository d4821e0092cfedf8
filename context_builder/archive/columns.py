"""A summary row as PostgreSQL's JSON functions take it, whichever way it gets there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from context_builder.archive.archive import SummaryRow
from context_builder.timestamps import in_utc

TABLE: Final = "context_summaries"
MIGRATIONS: Final = "context_builder_migrations"
"""The table of what was applied to the database; its column is ``name``."""

COLUMNS: Final = tuple(SummaryRow.model_fields)
KEY: Final = ("session_id", "summary_seq")
SAME_BY: Final = ("session_id", "covers_message_end", "message_count", "summary_text")
"""Rows that are equal in these are the same summary."""


_MOMENTS: Final = ("time_range_start", "time_range_end")
_LARGEST_OFFSET: Final = timedelta(hours=15, minutes=59, seconds=59)
"""PostgreSQL reads none beyond; Python reads any below 24 hours."""


def as_record(row: SummaryRow) -> dict[str, Any]:
    """Values by column. NUL is dropped from texts: PostgreSQL's cannot hold it."""
    record = {
        name: value.replace("\x00", "") if isinstance(value, str) else value
        for name, value in row.model_dump(mode="json").items()
    }
    return record | {name: _moment(record[name]) for name in _MOMENTS}


def _moment(timestamp: str | None) -> str | None:
    """The timestamp as PostgreSQL reads it too, which knows fewer forms of ISO 8601 than Python does."""
    try:
        moment = datetime.fromisoformat(timestamp) if timestamp is not None else None
    except ValueError:
        return timestamp
    if moment is None:
        return None
    offset = moment.utcoffset()
    if offset is not None and (abs(offset) > _LARGEST_OFFSET or offset.microseconds):
        moment = in_utc(moment)
    return moment.isoformat()
