"""The protocol of the archive, where each summary is kept for good as one row."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from pydantic import BaseModel, ConfigDict

from context_builder.clock import in_utc


class SummaryRow(BaseModel):
    """One row of table ``context_summaries``; unique by (``session_id``, ``summary_seq``).

    ``time_range_start`` and ``time_range_end`` are ISO 8601 strings as the messages carried
    them, with the local offset where they had none; of a message whose timestamp was unreadable, the arrival time.
    """

    model_config = ConfigDict(frozen=True)

    session_id: str
    summary_seq: int
    summary_text: str
    covers_message_start: int
    covers_message_end: int
    message_count: int
    time_range_start: str | None
    time_range_end: str | None
    domains_covered: list[str]


class RevisedSummaryRow(SummaryRow):
    """A row that takes the place of the session's rows from number ``supersedes_from`` on.

    These are marked ``superseded_by`` its number; deleted, where it ``strikes`` what they may tell.
    """

    supersedes_from: int
    strikes: bool


class Archive(Protocol):
    """Keeps summary rows. Raises :class:`~context_builder.errors.DatabaseError` on failure."""

    @property
    def name(self) -> str:
        """Return the archive's name for people, such as ``PostgreSQL at localhost:5432``; free of secrets."""
        ...

    async def deliver(self, row: SummaryRow) -> int:
        """Keep the row, and return the ``summary_seq`` it is kept under. Delivering a row again changes nothing.

        That is another one than the row's when there is another row under that already, because Redis lost the
        session, or its last moments: then it is the one after the session's highest. A :class:`RevisedSummaryRow`
        supersedes or deletes the rows that it says, in the same step or after it is kept.
        """
        ...

    async def forget(self, session_id: str) -> int:
        """Delete every row of the session, and return how many there were."""
        ...

    async def check(self) -> None:
        """Raise the error that makes the archive unusable: unreachable, table missing, not allowed."""
        ...

    async def applied(self) -> frozenset[str] | None:
        """Return the migrations (``database/migrations.py``) that the database has had, as far as the caller may see.

        None where the archive is kept in something that they do not apply to.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


TABLE: Final = "context_summaries"
ASKED: Final = f"table {TABLE}"
"""Name of what the archive asks of the database, for errors."""

MIGRATIONS: Final = "context_builder_migrations"
"""The table of what was applied to the database; its column is ``name``."""

COLUMNS: Final = tuple(SummaryRow.model_fields)
KEY: Final = ("session_id", "summary_seq")
SUPERSEDED_BY: Final = "superseded_by"
"""Column of a row that others took the place of: the number of the latest of them."""

SAME_BY: Final = ("session_id", "covers_message_end", "message_count", "summary_text")
"""Rows that are equal in these are the same summary."""


_MOMENTS: Final = ("time_range_start", "time_range_end")
_LARGEST_OFFSET: Final = timedelta(hours=15, minutes=59, seconds=59)
"""PostgreSQL reads none beyond; Python reads any below 24 hours."""


def as_record(row: SummaryRow) -> dict[str, Any]:
    """Return the row's values by column. NUL is dropped from texts: PostgreSQL's cannot hold it."""
    record = {
        name: value.replace("\x00", "") if isinstance(value, str) else value
        for name, value in row.model_dump(mode="json", include=set(COLUMNS)).items()
    }
    return record | {name: _moment(record[name]) for name in _MOMENTS}


def _moment(timestamp: str | None) -> str | None:
    """Return the timestamp as PostgreSQL reads it too, which knows fewer forms of ISO 8601 than Python does."""
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
