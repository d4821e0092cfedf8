"""What a summary leaves to the long-term memory."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from context_builder.analysis.analyst import CompactedPoint, CompactionResult, DraftPoint, PointKind, SummaryResult
from context_builder.demo import load_demo
from context_builder.errors import EntryUnreadable
from context_builder.memory.memory import Memory
from context_builder.memory.rows import as_row
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.memory_batch import MOST_UNPACKED, Amendment, MemoryBatch, of_message
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import decode
from context_builder.session.store.dead_letters import DeadLetter
from context_builder.testing import ManualClock
from tests.damage import WRONG, damaged
from tests.session.saying import (
    ARRIVAL,
    START,
    advice,
    conversation,
    hear,
    infer,
    keywords_for,
    message,
    points_of,
    quoting,
    summarize,
)


def remembered(subject: Conversation) -> MemoryBatch:
    (part,) = subject.take_changes().memory_outbox
    return part


def summarize_as(subject: Conversation, clock: ManualClock, *drafts: DraftPoint) -> MemoryBatch:
    work = subject.next_summary_task()
    assert work is not None
    subject.finish(work, SummaryResult(drafts, "stub"), clock.now())
    return remembered(subject)


def points(part: MemoryBatch) -> list[Memory]:
    return [memory for memory in part.memories if memory.kind == "point"]


def test_a_message_is_remembered_with_all_that_is_known_of_it(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True, domain_messages=1)
    hear(subject, clock, 7)
    work = subject.next_keyword_task(clock.now())
    assert work is not None
    subject.finish(work, keywords_for(work, "helicase"), clock.now())
    infer(subject, clock)
    summarize(subject, clock)
    said, point = remembered(subject).memories
    assert (said.kind, said.session_id, said.speaker, said.text) == ("message", "monday", "Alice", point.text)
    assert said.time == datetime.fromtimestamp(START + 7, UTC)
    assert (said.position, said.tags) == (1, ("Biology / Life Sciences",))
    assert said.metadata == {
        "message_number": 7,
        "keywords": ["helicase"],
        "published": {
            "timestamp": "2023-11-14T22:13:27",
            "buffer_entry_time": START,
            "domain_confidence": {"Biology / Life Sciences": 0.9},
        },
    }
    assert (point.kind, point.speaker, point.time, point.tags) == ("point", "Alice", said.time, said.tags)
    assert point.metadata == {
        "point": "claim",
        "cites": (1,),
        "messages": (7,),
        "speakers": ("Alice",),
        "keywords": ["helicase"],
    }


def test_a_point_has_the_keywords_of_the_messages_it_cites_and_of_no_others(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    for number, keywords in ((1, ("helicase", "DNA")), (2, ("DNA", "primer")), (3, ("weather",))):
        hear(subject, clock, number)
        work = subject.next_keyword_task(clock.now())
        assert work is not None
        subject.finish(work, keywords_for(work, *keywords), clock.now())
    (point,) = points(summarize_as(subject, clock, DraftPoint("how DNA is copied", quoting(1, 2))))
    assert point.metadata["keywords"] == ["helicase", "DNA", "primer"]


def test_the_same_message_has_the_same_id_in_another_run_of_the_session(clock: ManualClock) -> None:
    ids = []
    for earlier in ([], [message(1, "something else")]):
        subject = conversation(clock, feed_memory=True)
        subject.receive([*earlier, message(2), advice()], clock.now())
        summarize(subject, clock)
        ids.append([memory.id for memory in remembered(subject).memories if memory.kind == "message"][-2:])
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 2


@pytest.mark.parametrize("timestamp", ['"yesterday"', "1e300", "NaN", "[]", '"2025-10-02T10:30:45Z"'])
def test_a_message_that_comes_again_later_has_the_same_id(clock: ManualClock, timestamp: str) -> None:
    """Also when its timestamp cannot be read, and the moment at which it came stands in for it."""

    def came() -> BufferedMessage:
        raw = b'{"speaker": "Bob", "text": "Tea, please.", "timestamp": %s}' % timestamp.encode()
        return BufferedMessage(1, decode(raw, clock.now(), max_bytes=1_000), clock.now())

    first = came()
    clock.advance(5)
    kept = BufferedMessage.decode(first.encode(), clock.now())
    assert {of_message("monday", each).id for each in (first, kept, came())} == {of_message("monday", first).id}


def test_an_entry_comes_out_of_the_outbox_as_it_went_in_and_is_hardly_larger_than_what_was_said(
    clock: ManualClock,
) -> None:
    subject = conversation(clock, feed_memory=True)
    talk = [message(number, said.text, speaker=said.speaker) for number, said in enumerate(load_demo())]
    subject.receive(talk, clock.now())
    summarize(subject, clock)
    part = remembered(subject)
    read = MemoryBatch.decode(part.encode())
    assert [as_row(memory) for memory in read.memories] == [as_row(memory) for memory in part.memories]
    assert len(part.encode()) < 1.5 * sum(len(said.text) for said in talk)


def test_a_point_that_leaves_the_summary_stays_in_the_memory(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True, summary_budget=6)
    hear(subject, clock, 1)
    told = "the helicase unwinds the double helix of the DNA"
    part = summarize_as(subject, clock, DraftPoint(told, quoting(1)))
    assert subject.summary.ledger.points == []
    assert ([point.text for point in points(part)], part.superseded) == ([told], [])


def test_a_decision_names_the_one_that_it_replaces(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    hear(subject, clock, 1)
    (first,) = points(
        summarize_as(subject, clock, DraftPoint("clips are labelled by hand", quoting(1), PointKind.DECISION))
    )
    hear(subject, clock, 2)
    told = DraftPoint("clips are labelled by a model instead", quoting(2), PointKind.DECISION)
    (second,) = points(summarize_as(subject, clock, told))
    assert "supersedes" not in first.metadata
    assert second.metadata["supersedes"] == subject.summary.ledger.points[0].id


def test_a_point_that_another_restates_is_superseded(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    hear(subject, clock, 1)
    (first,) = points(summarize_as(subject, clock, DraftPoint("sequence on Monday", quoting(1), PointKind.DECISION)))
    hear(subject, clock, 2)
    part = summarize_as(
        subject, clock, DraftPoint("sequence on Tuesday", quoting(2), PointKind.DECISION, replaces=(1,))
    )
    (second,) = points(part)
    assert part.superseded == [first.id]
    assert (second.text, second.metadata["cites"]) == ("sequence on Tuesday", (1, 2))


def test_a_point_that_is_over_is_superseded_and_leaves_the_summary(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    hear(subject, clock, 1)
    [promised] = points(summarize_as(subject, clock, DraftPoint("Bob will order primers.", quoting(1))))
    [known] = subject.summary.ledger.points
    hear(subject, clock, 2)
    work = subject.next_summary_task()
    assert work is not None
    subject.finish(work, SummaryResult((), "stub", over=frozenset({known.id})), clock.now())
    assert (remembered(subject).superseded, subject.summary.ledger.render()) == ([promised.id], "")


def test_points_that_were_rewritten_stay_in_the_memory_until_they_are_replaced(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True, summary_budget=50)
    kept: dict[str, Memory] = {}
    for number in range(1, 12):
        hear(subject, clock, number)
        draft = DraftPoint(f"enzyme K{number} cuts strand {number}", quoting(number), PointKind.DECISION)
        kept |= {point.id: point for point in points(summarize_as(subject, clock, draft))}
    task = subject.next_compaction_task()
    assert task is not None
    assert subject.next_compaction_task() is None, "one at a time"
    told = CompactedPoint("K1 and K2 cut.", PointKind.DECISION, (1, 2))
    subject.finish(task, CompactionResult((told,), "stub"), clock.now())
    assert subject.take_changes().memory_outbox == []
    hear(subject, clock, 12)
    [whole] = [point for point in subject.summary.ledger.points if point.text == "K1 and K2 cut."]
    part = summarize_as(subject, clock, DraftPoint("neither cuts", quoting(12), replaces=(whole.id,)))
    assert {*part.superseded} & {*kept} == {*[*kept][:2]}


@pytest.mark.parametrize(("budget", "times"), [(190, 2), (198, 1)])
def test_where_points_stay_hidden_a_rewriting_is_asked_for_once_more_about_others(
    clock: ManualClock, budget: int, times: int
) -> None:
    subject = conversation(clock, summary_budget=budget)
    for number in range(1, 33):
        hear(subject, clock, number)
        summarize_as(subject, clock, DraftPoint(f"enzyme K{number} cuts strand {number}", quoting(number)))
    asked: list[set[int]] = []
    while (task := subject.next_compaction_task()) is not None:
        asked.append({point.id for point in task.request.points})
        subject.finish(task, CompactionResult((), "stub"), clock.now())
    assert len(asked) == times
    assert len(set[int]().union(*asked)) == sum(map(len, asked)), "others each time"


def test_what_is_summarized_again_gives_new_points_and_no_message_twice(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    hear(subject, clock, 1)
    work = subject.next_summary_task()
    assert work is not None
    subject.finish(work, replace(points_of(work), degraded=True), clock.now())
    (degraded,) = points(remembered(subject))
    hear(subject, clock, 2)
    summarize(subject, clock)
    remembered(subject)
    summarize(subject, clock)
    again = remembered(subject)
    assert again.superseded == [degraded.id]
    assert [memory.kind for memory in again.memories] == ["point"]


def test_a_session_that_feeds_no_memory_leaves_nothing_in_the_outbox(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=False)
    hear(subject, clock, 1)
    summarize(subject, clock)
    assert subject.take_changes().memory_outbox == []


def test_of_what_is_delivered_late_only_what_was_not_replaced_is_kept(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    hear(subject, clock, 1, 2, 3)
    batch = summarize_as(subject, clock, *(DraftPoint(f"point {n}", quoting(n)) for n in (1, 2, 3)))
    hear(subject, clock, 4)
    summarize_as(subject, clock, DraftPoint("point 4", quoting(4), replaces=(2,)))
    late = MemoryBatch.decode(batch.encode()).at_present(subject.summary.ledger.replaced)
    assert [memory.text for memory in points(late)] == ["point 1", "point 3"]
    assert [memory.kind for memory in late.memories].count("message") == 3
    assert late.session_id == batch.session_id


def test_what_is_no_batch_says_so() -> None:
    with pytest.raises(EntryUnreadable, match="not a memory batch: error"):
        MemoryBatch.decode(b"anything else")


def test_a_batch_with_any_other_value_is_refused_or_harmless() -> None:
    said = {
        "id": "m:1",
        "text": "Ann sells it.",
        "kind": "point",
        "speaker": "Ann",
        "time": ARRIVAL.iso(),
        "position": 1,
    }
    whole: dict[str, Any] = {
        "session_id": "monday",
        "memories": [[*said.values(), ["x"], {"keywords": ["a"], "cites": ["b"]}]],
        "superseded": ["m:9"],
        "amended": [{"id": "m:1", "text": "No.", "speaker": "Ann"}],
        "struck": [{"id": "m:2", "entry_id": 2, "points": ["p"]}],
        "renamed": [["Ann", "Eve"]],
    }
    refused = 0
    for place in range(8):
        for other in WRONG:
            row = [*whole["memories"][0]]
            row[place] = other
            refused += is_refused({**whole, "memories": [row]})
    for _, other in damaged(whole):
        refused += is_refused(other)
    assert not is_refused(whole)
    assert refused > 200


def is_refused(written: object) -> bool:
    """Whether a batch is refused; what can be done with it is done with one that is not."""
    try:
        batch = MemoryBatch.decode(zlib.compress(orjson.dumps(written)))
    except EntryUnreadable:
        return True
    batch.followed_by(batch).without(batch.struck).at_present([(1, 1.0)]).encode()
    return False


def test_what_is_packed_to_be_huge_is_not_unpacked() -> None:
    written = orjson.dumps({"session_id": "monday", "memories": [], "superseded": []})
    packed = zlib.compress(written + b" " * MOST_UNPACKED, level=1)
    with pytest.raises(EntryUnreadable):
        MemoryBatch.decode(packed)
    assert DeadLetter("", 0.0, packed, len(packed)).content("memory") == packed


def test_what_the_assistant_said_is_remembered_as_the_assistants(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    subject.receive([advice(message_number=3), message(1, metadata={"user_id": "u-1"})], clock.now())
    summarize(subject, clock)
    known = [dict(memory.metadata) for memory in remembered(subject).memories if memory.kind == "message"]
    assert [one.pop("published").get("metadata") for one in known] == [{"priority": "P0"}, None]
    assert known == [{"message_number": 3, "consilience": True}, {"message_number": 1, "user_id": "u-1"}]


def test_what_waits_says_what_was_corrected_and_renamed_since() -> None:
    said = Memory(id="m1", text="old", session_id="monday", speaker="Ann")
    part = MemoryBatch("monday", [said], amended=(Amendment("m2", "old", "Ann"),), renamed=(("S1", "Ann"),))
    names = (("Ann", "Ida"), ("Bo", "Ann"))
    renamed = part.followed_by(MemoryBatch("monday", renamed=names))
    assert [(one.text, one.speaker) for one in renamed.memories] == [("old", "Ida")]
    assert (renamed.amended, renamed.renamed) == ((Amendment("m2", "old", "Ida"),), (("S1", "Ida"),))
    later = (Amendment("m1", "new", "Ann"), Amendment("m2", None, "Ann"))
    corrected = part.followed_by(MemoryBatch("monday", amended=later, renamed=names))
    assert [(one.text, one.speaker) for one in corrected.memories] == [("new", "Ann")]
    assert corrected.amended == (Amendment("m2", "old", "Ann"),)
