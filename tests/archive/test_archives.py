"""Every archive behaves alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

import asyncpg
import pytest

from context_builder.archive.archive import COLUMNS, Archive, SummaryRow
from context_builder.archive.postgres import PostgresArchive
from context_builder.archive.supabase import SupabaseArchive
from context_builder.database.postgres import PostgresDatabase
from context_builder.database.supabase import SupabaseDatabase
from context_builder.errors import DatabaseError, DatabaseUnavailable, DataRejected
from context_builder.testing import InMemoryArchive
from tests.archive.rows import summary
from tests.services.postgrest import api_key, serving_project

ENGINES = ("PostgreSQL", "Supabase")
TIMEOUT = 1.0
LARGEST = 2**53 - 1


class Backend(Protocol):
    """What an archive keeps its rows in: read, and made to fail."""

    async def rows(self, session_id: str = "session-1") -> list[SummaryRow]:
        """The session's rows, the newest first."""
        ...

    def stuck(self) -> AbstractAsyncContextManager[None]:
        """While it does not answer."""
        ...

    def refusing_secrets(self) -> AbstractAsyncContextManager[None]:
        """While it takes no text about a secret."""
        ...


class InMemory:
    def __init__(self) -> None:
        self.archive = InMemoryArchive()

    async def rows(self, session_id: str = "session-1") -> list[SummaryRow]:
        found = [row for row in self.archive.rows.values() if row.session_id == session_id]
        return sorted(found, key=lambda row: -row.summary_seq)

    def stuck(self) -> AbstractAsyncContextManager[None]:
        return self._failing(DatabaseUnavailable("away"))

    def refusing_secrets(self) -> AbstractAsyncContextManager[None]:
        return self._failing(DataRejected("no"))

    @asynccontextmanager
    async def _failing(self, failure: DatabaseError) -> AsyncIterator[None]:
        self.archive.failure = failure
        yield
        self.archive.failure = None


class InDatabase:
    """Reached as its superuser, whichever way the archive goes."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def rows(self, session_id: str = "session-1") -> list[SummaryRow]:
        query = f"SELECT {', '.join(COLUMNS)} FROM context_summaries WHERE session_id = $1 ORDER BY summary_seq DESC"
        found = await self._connection.fetch(query, session_id)
        return [SummaryRow(**{**row, "domains_covered": json.loads(row["domains_covered"])}) for row in found]

    @asynccontextmanager
    async def stuck(self) -> AsyncIterator[None]:
        async with self._connection.transaction():
            await self._connection.execute("LOCK TABLE context_summaries")
            yield

    @asynccontextmanager
    async def refusing_secrets(self) -> AsyncIterator[None]:
        alter = "ALTER TABLE context_summaries"
        await self._connection.execute(f"{alter} ADD CONSTRAINT no_secrets CHECK (summary_text NOT LIKE '%secret%')")
        yield
        await self._connection.execute(f"{alter} DROP CONSTRAINT no_secrets")


@pytest.fixture(
    params=["memory", *(pytest.param(engine, marks=pytest.mark.engines) for engine in ENGINES)],
)
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Archive, Backend]]:
    if request.param == "memory":
        backend = InMemory()
        yield backend.archive, backend
        return
    url = request.getfixturevalue("postgres_server").create_database(migrated=True)
    connection = await asyncpg.connect(url)
    async with serving_project(url) as front:
        archive: Archive = PostgresArchive(PostgresDatabase(url, timeout=TIMEOUT))
        if request.param == "Supabase":
            archive = SupabaseArchive(SupabaseDatabase(front.url, api_key("service_role"), timeout=TIMEOUT))
        yield archive, InDatabase(connection)
        await archive.close()
    await connection.close()


@pytest.fixture
def archive(opened: tuple[Archive, Backend]) -> Archive:
    return opened[0]


@pytest.fixture
def backend(opened: tuple[Archive, Backend]) -> Backend:
    return opened[1]


async def test_a_summary_is_kept_as_it_was(archive: Archive, backend: Backend) -> None:
    row = summary(covers_message_start=LARGEST - 1, covers_message_end=LARGEST, message_count=LARGEST)
    empty = summary(2, summary_text="", time_range_start=None, time_range_end=None, domains_covered=[])
    await archive.check()
    assert [await archive.deliver(one) for one in (row, empty)] == [1, 2]
    assert await backend.rows() == [empty, row]


async def test_delivering_again_changes_nothing(archive: Archive, backend: Backend) -> None:
    assert [await archive.deliver(summary(seq)) for seq in (1, 2, 1)] == [1, 2, 1]
    assert await backend.rows() == [summary(2), summary(1)]


async def test_a_summary_is_the_same_however_its_times_and_domains_are_written(
    archive: Archive, backend: Backend
) -> None:
    await archive.deliver(summary(1))
    again = summary(1, time_range_end="2025-10-02T10:00:00Z", domains_covered=["Biology"], covers_message_start=2)
    assert await archive.deliver(again) == 1
    assert await backend.rows() == [summary(1)]


async def test_another_summary_under_a_taken_number_gets_the_one_after_all_others_once(
    archive: Archive, backend: Backend
) -> None:
    for row in (summary(1), summary(4), summary(7, session_id="session-2")):
        await archive.deliver(row)
    another = summary(1, summary_text="another")
    assert await asyncio.gather(archive.deliver(another), archive.deliver(another)) == [5, 5]
    assert await archive.deliver(another) == 5
    assert [(row.summary_seq, row.summary_text) for row in await backend.rows()] == [
        (5, "another"),
        (4, summary(4).summary_text),
        (1, summary(1).summary_text),
    ]


async def test_sessions_do_not_see_each_other(archive: Archive, backend: Backend) -> None:
    sessions = ("session-1", "session-10", "session-1.eq", "SESSION-1", "s" * 128)
    for session_id in sessions:
        assert await archive.deliver(summary(1, session_id=session_id)) == 1
    await archive.deliver(summary(2))
    assert [await archive.forget(session_id) for session_id in ("session-1", "session-1", "unknown")] == [2, 0, 0]
    assert await backend.rows() == []
    for session_id in sessions[1:]:
        assert await backend.rows(session_id) == [summary(1, session_id=session_id)]
    assert await archive.deliver(summary(1)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "a\x00b'); DROP TABLE context_summaries; --",
        "\x00",
        "é ı 𝔘 \u202e \r\n\t\x1b",
        "'\"\\{}[],():*%&=#",
        "x" * 10**6,
    ],
)
async def test_any_text_is_only_text_and_is_without_nul(archive: Archive, backend: Backend, text: str) -> None:
    row = summary(1, summary_text=text, domains_covered=["a,b", '"', "{}", "ü"])
    another = summary(1, summary_text=f"{text}.")
    assert [await archive.deliver(one) for one in (row, row, another, row)] == [1, 1, 2, 1]
    assert await backend.rows() == [
        another.model_copy(update={"summary_seq": 2, "summary_text": another.summary_text.replace("\x00", "")}),
        row.model_copy(update={"summary_text": text.replace("\x00", "")}),
    ]


async def test_every_timestamp_that_a_message_may_have_is_kept(archive: Archive, backend: Backend) -> None:
    moments = {
        "2025-10-02 10:30:45,123": datetime(2025, 10, 2, 10, 30, 45, 123000),
        "2025-W40-4T10:00": datetime(2025, 10, 2, 10),
        "20251002T103045Z": datetime(2025, 10, 2, 10, 30, 45, tzinfo=UTC),
        "2025-10-02T10:30:45+23:59": datetime(2025, 10, 1, 10, 31, 45, tzinfo=UTC),
        "2025-10-02T10:30:45+05:30:15.5": datetime(2025, 10, 2, 5, 0, 29, 500000, UTC),
        "0001-01-01T00:00:00+23:59": datetime(1, 1, 1, tzinfo=UTC),
        "9999-12-31T23:59:59-23:59": datetime.max.replace(tzinfo=UTC),
    }
    for number, given in enumerate(moments, start=1):
        row = summary(number, time_range_start=given, time_range_end=given)
        assert [await archive.deliver(row) for _ in range(2)] == [number, number]
    kept = {one.summary_seq: (one.time_range_start, one.time_range_end) for one in await backend.rows()}
    assert [kept[number] for number in sorted(kept)] == [(moment.isoformat(),) * 2 for moment in moments.values()]


async def test_a_row_refused_for_good_leaves_the_others(archive: Archive, backend: Backend) -> None:
    await archive.deliver(summary(1))
    refused = summary(2, summary_text="The secret is tortoise")
    async with backend.refusing_secrets():
        with pytest.raises(DataRejected) as caught:
            await archive.deliver(refused)
    assert "tortoise" not in str(caught.value)
    assert await archive.deliver(summary(3)) == 3
    assert await backend.rows() == [summary(3), summary(1)]
    assert await archive.deliver(refused) == 2


async def test_a_delivery_that_got_no_answer_is_kept_once_when_it_is_tried_again(
    archive: Archive, backend: Backend
) -> None:
    await archive.deliver(summary(1))
    async with backend.stuck():
        with pytest.raises(DatabaseUnavailable):
            await archive.deliver(summary(2))
    assert await archive.deliver(summary(2)) == 2
    assert await backend.rows() == [summary(2), summary(1)]


async def test_whatever_gets_no_answer_is_worth_another_try(archive: Archive, backend: Backend) -> None:
    async with backend.stuck():
        for unanswered in (archive.deliver(summary()), archive.forget("session-1"), archive.check()):
            with pytest.raises(DatabaseUnavailable):
                await unanswered
