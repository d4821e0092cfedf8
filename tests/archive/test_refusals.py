"""Rows that an archive would refuse, or does refuse for good, whichever way they get there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.archive.archive import Archive, as_record
from context_builder.archive.postgres import PostgresArchive
from context_builder.archive.supabase import SupabaseArchive
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.database.supabase import SupabaseDatabase
from context_builder.errors import (
    DatabaseError,
    DatabaseRejected,
    DatabaseUnavailable,
    DataRejected,
    Undeliverable,
)
from tests.archive.rows import ORIGINAL_TABLE, summary
from tests.services.postgrest import PostgrestFront, api_key
from tests.services.refusing import refusing


@pytest.fixture(params=["asyncpg", "supabase"])
async def archive(
    request: pytest.FixtureRequest, supabase_project: PostgrestFront, database_url: str
) -> AsyncIterator[Archive]:
    """Each way into the same database."""
    if request.param == "asyncpg":
        archive: Archive = PostgresArchive(PostgresDatabase(database_url))
    else:
        archive = SupabaseArchive(SupabaseDatabase(supabase_project.url, api_key("service_role")))
    yield archive
    await archive.close()


@pytest.mark.engines
async def test_every_timestamp_that_a_message_may_have_is_archived_in_a_column_of_times(
    archive: Archive, database_url: str, database: asyncpg.Connection
) -> None:
    moments = {
        "2025-10-02 10:30:45,123": datetime(2025, 10, 2, 10, 30, 45, 123000, UTC),
        "2025-W40-4T10:00": datetime(2025, 10, 2, 10, tzinfo=UTC),
        "2025-10-02T10:30:45+23:59": datetime(2025, 10, 1, 10, 31, 45, tzinfo=UTC),
        "2025-10-02T10:30:45+05:30:15.5": datetime(2025, 10, 2, 5, 0, 29, 500000, UTC),
        "20251002T103045Z": datetime(2025, 10, 2, 10, 30, 45, tzinfo=UTC),
        "0001-01-01T00:00:00+23:59": datetime(1, 1, 1, tzinfo=UTC),
    }
    await database.execute(ORIGINAL_TABLE.format(domains="jsonb"))
    await database.execute("ALTER DATABASE %s SET timezone = 'UTC'" % database_url.rpartition("/")[2])  # noqa: UP031
    await apply(database_url)
    for number, timestamp in enumerate(moments, start=1):
        await archive.deliver(summary(number, time_range_start=timestamp, time_range_end=None))
    kept = await database.fetch("SELECT time_range_start FROM context_summaries ORDER BY summary_seq")
    assert [row[0] for row in kept] == [*moments.values()]


@pytest.mark.engines
async def test_python_and_postgresql_read_the_same_moments(database: asyncpg.Connection) -> None:
    """Whatever ``fromisoformat`` takes; each is tried in one statement."""
    written = [as_record(summary(time_range_start=given))["time_range_start"] for given in _TIMESTAMPS]
    assert await database.fetchval("SELECT count(t::timestamptz) FROM unnest($1::text[]) AS t", written) == len(written)


_TIMESTAMPS = [
    f"{day}{separator}{time}{offset}"
    for day in ("0001-01-01", "9999-12-31", "2025-W40-4", "2025W404", "20251002", "1582-10-10")
    for separator in ("T", " ", "_", "~")
    for time in ("10", "10:30", "1030", "10:30:45", "103045", "10:30:45.1", "10:30:45,123456", "23:59:59.999999999")
    for offset in ("", "Z", "+00:00", "-23:59", "+2359", "+15:59", "-16:00", "+23:59:59.999999", "+01:00:30")
]


@given(st.datetimes(timezones=st.none() | st.timezones()))
def test_an_ordinary_timestamp_is_archived_as_it_came(moment: datetime) -> None:
    assert as_record(summary(time_range_end=moment.isoformat()))["time_range_end"] == moment.isoformat()


@pytest.mark.engines
async def test_a_table_that_takes_nothing_is_told_from_a_row_that_it_refuses(archive: Archive) -> None:
    with pytest.raises(DatabaseRejected) as nothing_is_taken:
        await archive.deliver(summary(1))
    assert not isinstance(nothing_is_taken.value, Undeliverable)


@pytest.mark.engines
async def test_what_a_trigger_raises_is_not_told(
    archive: Archive, database_url: str, database: asyncpg.Connection
) -> None:
    await apply(database_url)
    await database.execute(
        "CREATE FUNCTION quote() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no: %', NEW.summary_text; END $$;"
        "CREATE TRIGGER quote BEFORE INSERT ON context_summaries FOR EACH ROW EXECUTE FUNCTION quote()"
    )
    with pytest.raises(DatabaseError, match="P0001") as refused:
        await archive.deliver(summary(1, summary_text="The secret is tortoise"))
    assert "tortoise" not in str(refused.value)


async def test_a_number_that_the_column_cannot_hold_is_refused_for_good(
    archive: Archive, database: asyncpg.Connection
) -> None:
    await database.execute(ORIGINAL_TABLE.format(domains="jsonb"))
    await database.execute(
        "ALTER TABLE context_summaries ADD summary_seq integer, ADD UNIQUE (session_id, summary_seq)"
    )
    with pytest.raises(DataRejected, match="SQLSTATE 22003"):
        await archive.deliver(summary(covers_message_end=2**53 - 1))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, DataRejected) for status in (400, 413, 422)),
        *((status, DatabaseRejected) for status in (401, 403, 404, 405)),
        *((status, DatabaseUnavailable) for status in (408, 429, 500, 502, 503)),
    ],
)
async def test_what_a_gateway_says_of_a_row_is_told_from_what_it_says_of_all(
    status: int, error: type[DatabaseError]
) -> None:
    async with refusing(status) as url:
        archive = SupabaseArchive(SupabaseDatabase(url, api_key("service_role")))
        with pytest.raises(error) as refused:
            await archive.deliver(summary())
        assert type(refused.value) is error
        await archive.close()
