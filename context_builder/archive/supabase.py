"""The archive in a Supabase project, through the supabase client.

A project whose table has only the original columns works too. What it lacks is found out from
PostgREST's refusals, left out from then on, and said once. Without ``summary_seq`` the database
cannot tell a repeated delivery, so an equal row is looked for first.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import structlog

from context_builder.archive.archive import (
    ASKED,
    COLUMNS,
    KEY,
    MIGRATIONS,
    SAME_BY,
    SUPERSEDED_BY,
    TABLE,
    RevisedSummaryRow,
    SummaryRow,
    as_record,
)
from context_builder.database.supabase import SupabaseDatabase

if TYPE_CHECKING:
    import postgrest

T = TypeVar("T")

INDISPENSABLE: Final = frozenset({"session_id", "summary_text"})
"""Without these columns a row says nothing."""

_UNIQUE: Final = f"unique ({', '.join(KEY)})"

_UNKNOWN_COLUMN: Final = ("PGRST204", "42703")
_NO_UNIQUE_INDEX: Final = "42P10"  # for the ON CONFLICT of a delivery
_NOT_ALLOWED: Final = "42501"
_NOT_TO_BE_SEEN: Final = ("PGRST205", _NOT_ALLOWED)
_COLUMN_IN_MESSAGE: Final = re.compile(r"""'(\w+)' column|column "?(?:\w+\.)?(\w+)"?""")

_MIGRATE: Final = "run the SQL that `context-builder migrate` prints in Supabase's SQL editor"

log = structlog.get_logger(__name__)


class SupabaseArchive:
    """Keeps summaries in a project's table. See :class:`~context_builder.archive.archive.Archive`."""

    def __init__(self, database: SupabaseDatabase) -> None:
        self._database = database
        self._lacking: set[str] = set()
        self._warned = False

    @property
    def name(self) -> str:
        return self._database.name

    async def deliver(self, row: SummaryRow) -> int:
        record = as_record(row)
        seq = await self._adapting(lambda table: self._insert(table, record))
        if isinstance(row, RevisedSummaryRow):
            await self._adapting(lambda table: self._supersede(table, row, record, seq))
        return seq

    async def forget(self, session_id: str) -> int:
        client = await self._database.client()
        from postgrest.types import CountMethod, ReturnMethod

        deletion = client.table(TABLE).delete(count=CountMethod.exact, returning=ReturnMethod.minimal)
        with self._database.translated(ASKED):
            return (await self._database.bounded(deletion.eq("session_id", session_id).execute())).count or 0

    async def check(self) -> None:
        await self._adapting(lambda table: table.select(*self._columns()).limit(0).execute())

    async def check_inserts(self) -> None:
        """Try an insert that leaves no row: of one row twice, which PostgreSQL takes back as a whole (21000).

        Raises :class:`DatabaseRejected` where the project does not let the key insert or update rows.
        """
        row = as_record(
            SummaryRow(
                session_id="doctor",
                summary_seq=0,
                summary_text="",
                covers_message_start=0,
                covers_message_end=0,
                message_count=0,
                time_range_start=None,
                time_range_end=None,
                domains_covered=[],
            )
        )
        client = await self._database.client()
        from postgrest import APIError
        from postgrest.types import ReturnMethod

        known = {name: row[name] for name in self._columns()}
        twice = client.table(TABLE).upsert([known, known], on_conflict=",".join(KEY), returning=ReturnMethod.minimal)
        with self._database.translated(ASKED):
            try:
                await self._database.bounded(twice.execute())
            except APIError as error:
                if error.code == _NOT_ALLOWED:
                    raise

    async def applied(self) -> frozenset[str]:
        client = await self._database.client()
        from postgrest import APIError

        with self._database.translated(ASKED):
            try:
                rows = await self._database.bounded(_rows(client.table(MIGRATIONS).select("name")))
            except APIError as error:
                if error.code in _NOT_TO_BE_SEEN:
                    return frozenset()
                raise
        return frozenset(row["name"] for row in rows)

    async def close(self) -> None:
        await self._database.close()

    async def _insert(self, table: postgrest.AsyncRequestBuilder, record: dict[str, Any]) -> int:
        from postgrest.types import ReturnMethod

        known = {name: record[name] for name in self._columns()}
        if not self._lacking.isdisjoint((*KEY, _UNIQUE)):
            if not await _same(table, known, (*KEY, *SAME_BY)):
                await table.insert(known, returning=ReturnMethod.minimal).execute()
            return int(record["summary_seq"])
        while not await _rows(table.upsert(known, on_conflict=",".join(KEY), ignore_duplicates=True)):
            # In this order, so that what somebody else delivers in between either is seen or takes the number.
            following = await _next(table, known["session_id"])
            for same in await _same(table, known, SAME_BY):
                return int(same["summary_seq"])
            known["summary_seq"] = following
        return int(known["summary_seq"])

    async def _supersede(
        self, table: postgrest.AsyncRequestBuilder, row: RevisedSummaryRow, record: dict[str, Any], seq: int
    ) -> None:
        """Delete or mark the rows that a row takes the place of; without numbers, all others may have been struck."""
        since = row.supersedes_from
        if "summary_seq" in self._lacking:
            if row.strikes:
                await table.delete().eq("session_id", row.session_id).execute()
                await self._insert(table, record)
            return
        if row.strikes:
            struck = table.delete().eq("session_id", row.session_id).gte("summary_seq", since)
            await struck.lt("summary_seq", seq).execute()
        if SUPERSEDED_BY not in self._lacking:
            marked = table.update({SUPERSEDED_BY: seq}).eq("session_id", row.session_id).lt("summary_seq", seq)
            await marked.or_(f"summary_seq.gte.{since},{SUPERSEDED_BY}.gte.{since}").execute()

    async def _adapting(self, request: Callable[[postgrest.AsyncRequestBuilder], Awaitable[T]]) -> T:
        """Do the request, again with less for as long as the project turns out to lack something."""
        client = await self._database.client()
        from postgrest import APIError

        with self._database.translated(ASKED):
            while True:
                try:
                    answer = await self._database.bounded(request(client.table(TABLE)))
                    break
                except APIError as error:
                    lacking = _what_is_lacking(error)
                    if (
                        lacking not in (*self._columns(), SUPERSEDED_BY, _UNIQUE)
                        or lacking in self._lacking | INDISPENSABLE
                    ):
                        raise
                    self._lacking.add(lacking)
        if self._lacking and not self._warned:
            self._warned = True
            log.warning("archive.columns_lacking", archive=self.name, lacking=sorted(self._lacking), advice=_MIGRATE)
        return answer

    def _columns(self) -> list[str]:
        return [name for name in COLUMNS if name not in self._lacking]


async def _same(
    table: postgrest.AsyncRequestBuilder, record: dict[str, Any], by: Iterable[str]
) -> list[dict[str, Any]]:
    """Return the rows equal to ``record`` in the columns ``by``, compared here: a text may be too long for a URL."""
    text = "summary_text"
    query = table.select(*{text, *KEY} & record.keys())
    for name in {*by} & record.keys() - {text}:
        query = query.eq(name, record[name])
    return [row for row in await _rows(query) if row[text] == record[text]]


async def _next(table: postgrest.AsyncRequestBuilder, session_id: str) -> int:
    """Return the number after all that the session's rows have."""
    seqs = table.select("summary_seq").eq("session_id", session_id)
    highest = await _rows(seqs.order("summary_seq", desc=True, nullsfirst=False).limit(1))
    return int(highest[0]["summary_seq"] or 0) + 1 if highest else 1


async def _rows(query: postgrest.AsyncSelectRequestBuilder) -> list[dict[str, Any]]:
    """Return the rows that the request answers; the client says only that they are JSON."""
    return cast("list[dict[str, Any]]", (await query.execute()).data)


def _what_is_lacking(error: postgrest.APIError) -> str:
    """Return the column or index that the project turned out to lack; empty when that is not what is wrong."""
    if error.code == _NO_UNIQUE_INDEX:
        return _UNIQUE
    found = _COLUMN_IN_MESSAGE.search(error.message or "") if error.code in _UNKNOWN_COLUMN else None
    return next(filter(None, found.groups()), "") if found else ""
