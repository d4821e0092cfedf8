"""Where summaries are kept for good: one row a summary, however often it is delivered."""

from __future__ import annotations

from typing import Protocol

from pydantic import BaseModel, ConfigDict


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


class Archive(Protocol):
    """Keeps summary rows. Raises :class:`~context_builder.errors.ArchiveError` on failure."""

    @property
    def name(self) -> str:
        """What people call it, such as ``PostgreSQL at localhost:5432``; free of secrets."""
        ...

    async def deliver(self, row: SummaryRow) -> int:
        """Keep the row; the ``summary_seq`` it is kept under. Delivering a row again changes nothing.

        That is another one than the row's when there is another row under that already, because Redis lost the
        session, or its last moments: then it is the session's next free number.
        """
        ...

    async def forget(self, session_id: str) -> int:
        """Delete every row of the session; how many there were."""
        ...

    async def check(self) -> None:
        """Raise what is wrong: unreachable, table missing, not allowed."""
        ...

    async def applied(self) -> frozenset[str]:
        """The migrations (``archive/migrations.py``) that its database has had, as far as this caller may see."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
