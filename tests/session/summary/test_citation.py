"""Each point of the summary is explained by the messages it cites, also after these have left the buffer."""

from __future__ import annotations

from context_builder.analysis.analyst import DraftPoint, SummaryResult
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import restore, write_head
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.citation import SOURCE_CHARS, CitedMessage, explain, read_sources
from context_builder.testing import ManualClock
from tests.session.saying import ARRIVAL, TEXT, advice, at, conversation, hear, message, quoting, summarize, words


def written(clock: ManualClock) -> dict[str, bytes]:
    """The checkpoint of a session in which two messages became a point each, and one was said since."""
    subject = conversation(clock)
    hear(subject, clock, 7, 8)
    summarize(subject, clock)
    hear(subject, clock, 9)
    subject.everything_changed()
    return {**subject.take_changes().encoded_fields(), "head": write_head(subject)}


def test_a_point_is_explained_by_whom_when_and_in_which_words(clock: ManualClock) -> None:
    first, second = explain(written(clock))
    assert first.wire()["messages"] == [7]
    assert first.wire()["sources"] == [
        {
            "id": 1, "number": 7, "speaker": "Alice", "timestamp": at(7), "text": TEXT,
            "consilience": False, "clipped": False,
        }
    ]  # fmt: skip
    assert [source.id for source in second.sources] == [2]


def test_a_session_without_a_summary_has_nothing_to_explain() -> None:
    assert explain({}) == []


def test_the_continued_session_still_knows_what_its_points_cite(clock: ManualClock) -> None:
    fields = written(clock)
    again = restore("monday", fields, 0, SessionConfig(), clock.now(), words)
    assert again.summary.sources == read_sources(fields)
    assert list(again.summary.sources) == [1, 2]


def test_of_a_long_message_the_beginning_is_kept_and_said_to_be_one() -> None:
    for length in (SOURCE_CHARS, SOURCE_CHARS + 1):
        source = CitedMessage.of(BufferedMessage(1, message(1, "x" * length, speaker="y" * 9_999), ARRIVAL))
        assert (len(source.text), len(source.speaker)) == (SOURCE_CHARS, SOURCE_CHARS)
        assert source.clipped == (length > SOURCE_CHARS)
        assert CitedMessage.decode(source.encode()) == source
    assert CitedMessage.of(BufferedMessage(1, advice(), ARRIVAL)).consilience


def test_a_source_is_written_down_once_for_as_long_as_a_point_rests_on_it(clock: ManualClock) -> None:
    subject = conversation(clock)
    hear(subject, clock, *range(1, 5))
    summarize_as_one(subject, clock, replaces=())
    assert {"s:1", "s:2", "s:3", "s:4"} <= set(subject.take_changes().fields)
    hear(subject, clock, *range(5, 9))
    summarize_as_one(subject, clock, replaces=(1,))
    changes = subject.take_changes()
    assert [name for name in changes.fields if name.startswith("s:")] == ["s:5", "s:6", "s:7", "s:8"]
    assert not [name for name in changes.dropped if name.startswith("s:")], "an answer keeps the question's quotes"


def summarize_as_one(subject: Conversation, clock: ManualClock, *, replaces: tuple[int, ...]) -> None:
    work = subject.next_summary_task()
    assert work is not None
    point = DraftPoint("all of it", quoting(*(entry.id for entry in work.entries)), replaces=replaces)
    subject.finish(work, SummaryResult((point,), "stub"), clock.now())
