"""A timestamp without an offset is local time, wherever it is read and whatever the clocks do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import asyncpg
import pytest

from context_builder.archive.postgres import PostgresArchive
from context_builder.assembly.select import recency
from context_builder.assembly.session_state import session_turn
from context_builder.clock import Instant, day, epoch, in_utc, moment, with_offset
from context_builder.database.migrations import apply
from context_builder.database.postgres import PostgresDatabase
from context_builder.memory.memory import Memory, MemoryFilter, MemoryQuery
from context_builder.memory.rows import embedding_text
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.quoting import label_of
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.memory_batch import of_message
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message, from_fields
from context_builder.testing import ManualClock
from context_builder.transcript.formats.json_lines import read_json_lines
from context_builder.transcript.source import Source
from tests.archive.rows import ORIGINAL_TABLE
from tests.session.saying import spoken, summarize, words
from tests.zones import AUCKLAND, NEW_YORK, ZONES, local_time

EVENING = datetime(2025, 12, 9, 21, 30)
"""In New York it is the next day in UTC by then; in Auckland it still is the day before, in the morning."""


@pytest.fixture(params=list(ZONES.values()), ids=list(ZONES))
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    with local_time(request.param):
        yield request.param


def arriving(timestamp: str, at: datetime, number: int = 1) -> Message:
    """A listener's message with this timestamp, at this moment."""
    return from_fields(spoken(number, timestamp=timestamp), Instant(at.timestamp(), 0.0))


def test_without_an_offset_it_is_local_and_with_one_it_is_what_it_says(zone: str) -> None:
    assert moment("2025-12-09T21:30:00") == moment(EVENING) == EVENING.astimezone(UTC)
    east = timezone(timedelta(hours=5))
    assert moment("2025-12-09T21:30:00+05:00") == EVENING.replace(tzinfo=east)
    assert moment("2025-12-09T21:30:00Z") == moment(1765315800) == EVENING.replace(tzinfo=UTC)
    assert with_offset("2025-12-09T21:30:00Z", near=0.0) == "2025-12-09T21:30:00Z"
    assert datetime.fromisoformat(with_offset("2025-12-09T21:30", near=0.0)) == EVENING.astimezone()


@pytest.mark.parametrize("value", [None, True, "", "noon", [], {}, 1e30, float("nan"), "2025-13-01", object()])
def test_what_is_no_time_is_none(value: object) -> None:
    assert (moment(value), epoch(value, near=0.0)) == (None, None)


def test_the_edges_of_the_calendar_break_nothing(zone: str) -> None:
    for edge in (datetime.min, datetime.max):
        for aware in (edge, edge.replace(tzinfo=timezone(timedelta(hours=23))), edge.replace(tzinfo=UTC)):
            assert in_utc(aware).year == edge.year
            assert day(aware)
            read = moment(aware.isoformat(), near=0.0)
            assert read is None or read.year == edge.year
            assert with_offset(aware.isoformat(), near=0.0)


def test_the_hour_that_a_change_of_the_clocks_repeats_is_read_as_that_of_the_arrival() -> None:
    with local_time(NEW_YORK):
        before = datetime(2025, 11, 2, 5, 59, 50, tzinfo=UTC)
        question = arriving("2025-11-02T01:59:50", before)
        thanks = arriving("2025-11-02T01:00:10", before + timedelta(seconds=20), 2)
    assert (question.time, thanks.time - question.time) == (before.timestamp(), 20.0)


def test_the_hour_that_a_change_of_the_clocks_leaves_out_breaks_nothing() -> None:
    with local_time(NEW_YORK):
        heard = arriving("2025-03-09T02:30:00", datetime(2025, 3, 9, 7, 30, tzinfo=UTC))
    assert heard.time == datetime(2025, 3, 9, 7, 30, tzinfo=UTC).timestamp()


def test_a_message_is_read_once_wherever_its_session_is_continued() -> None:
    with local_time(NEW_YORK):
        entry = BufferedMessage(1, arriving("2025-12-09T21:30:00", EVENING), Instant(EVENING.timestamp(), 0.0))
        said = EVENING.timestamp()
    with local_time(AUCKLAND):
        again = BufferedMessage.decode(entry.encode(), Instant(said, 0.0))
    assert (again.time, again.timestamp) == (said, "2025-12-09T21:30:00")


@pytest.mark.parametrize("with_ids", [True, False])
def test_thanks_come_after_the_answer(zone: str, *, with_ids: bool) -> None:
    asked = EVENING.astimezone(UTC)
    said = [
        ("Ann", "How loud is it?", EVENING.isoformat()),
        ("Consilience", "It is 120 dB.", (asked + timedelta(seconds=5)).isoformat()),
        ("Ann", "Thanks.", (EVENING + timedelta(seconds=10)).isoformat()),
        ("Bob", "And now?", (EVENING + timedelta(seconds=15)).isoformat()),
    ]
    entries = [
        {"speaker": speaker, "text": text, "timestamp": timestamp, "message_number": number}
        | ({"id": number} if with_ids else {})
        for number, (speaker, text, timestamp) in enumerate(said, 1)
    ]
    state = {"raw_recent_buffer": [entries[0], *entries[2:]], "consilience_responses": [entries[1]]}
    history = [message["content"] for message in session_turn(state)["history"]]
    assert history == ["Ann: How loud is it?", "It is 120 dB.", "Ann: Thanks."]


def test_a_change_of_the_clocks_does_not_reorder_what_was_said() -> None:
    said = [("Ann", "Before?", "2025-11-02T01:59:50"), ("Bob", "After.", "2025-11-02T01:00:10")]
    entries = [{"speaker": name, "text": text, "timestamp": at} for name, text, at in said]
    with local_time(NEW_YORK):
        turn = session_turn({"raw_recent_buffer": entries})
    assert ([message["content"] for message in turn["history"]], turn["user_message"]) == (
        ["Ann: Before?"],
        "Bob: After.",
    )


def test_what_is_said_now_is_as_fresh_in_the_prompt(zone: str) -> None:
    assert recency({"timestamp": EVENING.isoformat()}, EVENING.astimezone(UTC)) == 1.0


def test_the_prompt_shows_the_day_on_which_it_was_said(zone: str) -> None:
    remembered = of_message("monday", BufferedMessage(1, arriving(EVENING.isoformat(), EVENING), Instant(0.0, 0.0)))
    assert label_of({}, "Ann", remembered.time) == label_of({}, "Ann", EVENING) == "Ann, 2025-12-09"


def test_the_text_that_is_embedded_is_the_same_in_every_zone(zone: str) -> None:
    said = Memory("m", "Loud.", time=datetime(2025, 12, 9, 21, 30, tzinfo=UTC))
    assert embedding_text(said) == "[09 December 2025] Loud."


@pytest.mark.engines
async def test_the_memory_keeps_the_moment_at_which_it_was_said(zone: str, migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url)
    soon = EVENING.astimezone(UTC) + timedelta(seconds=1)
    await memory.remember("lab", [Memory("a", "Loud.", time=EVENING), Memory("b", "Thanks.", time=soon)])
    for until, said in ((EVENING + timedelta(seconds=1), ["a"]), (None, ["b", "a"])):
        found = await memory.search("lab", MemoryQuery("", filter=MemoryFilter(since=EVENING, until=until)))
        assert [one.memory.id for one in found] == said
    assert found[-1].memory.time == EVENING.astimezone(UTC)
    await memory.close()


@pytest.mark.engines
async def test_an_archive_of_another_zone_holds_the_moment_at_which_it_was_said(
    zone: str, database_url: str, database: asyncpg.Connection
) -> None:
    await database.execute(ORIGINAL_TABLE.format(domains="jsonb"))
    await apply(database_url)
    clock = ManualClock()
    clock.set_wall(EVENING.timestamp() - clock.now().wall)
    subject = Conversation("monday", SessionConfig(), clock.now(), words)
    subject.receive([arriving(EVENING.isoformat(), EVENING)], clock.now())
    subject.take_changes()
    summarize(subject, clock)
    (row,) = subject.take_changes().outbox
    archive = PostgresArchive(PostgresDatabase(database_url))
    await archive.deliver(row)
    await archive.close()
    assert await database.fetchval("SELECT time_range_start FROM context_summaries") == EVENING.astimezone(UTC)
    assert subject.summary.wire()["time_range_start"] == EVENING.isoformat()


def test_a_transcript_may_mix_both_and_cross_a_change_of_the_clocks() -> None:
    lines = ("2025-11-02T01:59:50", "2025-11-02T06:00:00Z", "2025-11-02T01:00:10", "2025-11-02T03:00:10")
    text = "\n".join(f'{{"text": "a", "timestamp": "{timestamp}"}}' for timestamp in lines)
    with local_time(NEW_YORK):
        assert [one.at for one in read_json_lines(Source("x", text)).utterances] == [0.0, 10.0, 20.0, 7220.0]
