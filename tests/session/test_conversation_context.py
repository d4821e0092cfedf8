"""A conversation as a library: the documented fields and methods, without a daemon and without Redis."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import pytest

from context_builder import ConversationContext, SessionConfig
from context_builder.domains import DOMAINS
from context_builder.errors import AnalystUnavailable, DatabaseUnavailable, MessageError
from context_builder.session.conversation.conversation import Conversation
from context_builder.testing import InMemoryArchive, ManualClock, StubAnalyst
from tests.session.saying import TEXT, advised, spoken


class Ratio(float):
    """A number of a type that JSON does not know, as NumPy has them."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def analyst() -> StubAnalyst:
    return StubAnalyst()


@pytest.fixture
def archive() -> InMemoryArchive:
    return InMemoryArchive()


@pytest.fixture
def context(clock: ManualClock, analyst: StubAnalyst, archive: InMemoryArchive) -> ConversationContext:
    return ConversationContext("monday", analyst=analyst, archive=archive, clock=clock)


async def said(context: ConversationContext, *numbers: int) -> None:
    for number in numbers:
        await context.add_message(spoken(number))


async def test_a_new_conversation_is_empty(context: ConversationContext, clock: ManualClock) -> None:
    assert context.session_id == "monday"
    assert (context.raw_recent_buffer, context.consilience_responses) == ([], [])
    assert (context.current_domains, context.domain_confidence, context.current_keywords) == ([], {}, [])
    assert context.rolling_summary["text"] == ""
    assert context.last_message_time == clock.now().wall
    due = (context.should_infer_domains(), context.should_summarize(), context.is_silence())
    assert due == (False, False, False)


async def test_a_message_is_in_the_buffer_with_its_keywords(context: ConversationContext) -> None:
    assert await context.add_message(spoken(1))
    (entry,) = context.raw_recent_buffer
    assert (entry["message_number"], entry["keywords"]) == (1, ["Helicase", "unwinds", "double", "helix"])


async def test_a_message_that_is_known_changes_nothing(context: ConversationContext) -> None:
    assert await context.add_message(spoken(1))
    assert not await context.add_message(spoken(1))
    assert len(context.raw_recent_buffer) == 1


async def test_a_message_without_text_is_refused(context: ConversationContext) -> None:
    with pytest.raises(MessageError, match="text is missing"):
        await context.add_message({"speaker": "Alice"})


async def test_the_assistants_responses_are_in_both_places(context: ConversationContext) -> None:
    advice = {"text": "From a Law perspective", "message_number": 1_759_394_000_123}
    assert await context.add_consilience_response({**advice, "metadata": {"priority": "P1"}})
    assert not await context.add_message({**advice, "speaker": "Consilience"})
    (response,) = context.consilience_responses
    assert (response["speaker"], response["metadata"]) == ("Consilience", {"priority": "P1"})
    assert context.raw_recent_buffer[0]["type"] == "consilience"


async def test_domains_are_inferred_when_asked_for_and_due_after_five_messages(context: ConversationContext) -> None:
    await said(context, 1, 2, 3, 4)
    assert not context.should_infer_domains()
    await said(context, 5)
    assert context.should_infer_domains()
    await context.infer_domains()
    assert not context.should_infer_domains()
    assert (context.current_domains, context.current_keywords) == (["Biology / Life Sciences"], ["topic"])
    assert context.domain_confidence == {"Biology / Life Sciences": 0.9}
    assert all(entry["domains"] == context.current_domains for entry in context.raw_recent_buffer)


async def test_an_inference_returns_domains_confidence_and_topic_keywords(context: ConversationContext) -> None:
    assert await context.infer_domains() == ([], {}, [])
    await said(context, 1)
    inferred = await context.infer_domains()
    assert inferred.domains == ["Biology / Life Sciences"]
    assert inferred.confidence == {"Biology / Life Sciences": 0.9}
    assert inferred.keywords == ["topic"]
    domains, confidence, keywords = inferred
    assert (domains, confidence, keywords) == (
        context.current_domains,
        context.domain_confidence,
        context.current_keywords,
    )


async def test_without_a_message_there_is_nothing_to_infer_or_summarize(
    context: ConversationContext, analyst: StubAnalyst
) -> None:
    await context.infer_domains()
    await context.update_summary()
    assert (analyst.domain_calls, analyst.summary_calls) == ([], [])


async def test_a_summary_empties_the_buffer_and_is_archived(
    context: ConversationContext, archive: InMemoryArchive, clock: ManualClock
) -> None:
    await said(context, 1, 2)
    clock.advance(120)
    assert context.should_summarize()
    await context.update_summary()
    assert context.raw_recent_buffer == []
    assert context.rolling_summary["covers_messages"] == [1, 2]
    assert archive.rows["monday", 1].summary_text == f"Said:\n- Alice: {TEXT}\n- Alice: {TEXT}"


async def test_more_messages_than_the_buffer_holds_are_all_summarized(analyst: StubAnalyst) -> None:
    context = ConversationContext("monday", analyst=analyst, rules=SessionConfig(buffer_max=3))
    await said(context, *range(1, 8))
    assert len(context.raw_recent_buffer) == 3
    assert context.should_summarize()
    await context.update_summary()
    assert context.rolling_summary["message_count"] == 7
    assert [said.number for call in analyst.summary_calls for said in call.messages] == list(range(1, 8))


@pytest.mark.parametrize("method", ["update_summary", "infer_domains"])
async def test_what_is_asked_for_twice_at_once_counts_once(
    context: ConversationContext, analyst: StubAnalyst, archive: InMemoryArchive, method: str
) -> None:
    await said(context, 1, 2, 3, 4, 5)
    analyst.gate.clear()
    both = [asyncio.create_task(getattr(context, method)()) for _ in range(2)]
    await asyncio.sleep(0)
    analyst.gate.set()
    await asyncio.gather(*both)
    state = context.to_dict()
    assert state["rolling_summary"]["message_count"] == 5 - state["messages_since_summary"]
    assert state["messages_since_domain_inference"] in (0, 5)
    assert len(archive.rows) == state["rolling_summary"]["summary_seq"] <= 1


async def test_a_failing_analyst_loses_nothing(
    context: ConversationContext, analyst: StubAnalyst, clock: ManualClock
) -> None:
    analyst.failure = AnalystUnavailable("the model is away")
    await said(context, 1)
    for method in (context.infer_domains, context.update_summary):
        with pytest.raises(AnalystUnavailable):
            await method()
    assert context.raw_recent_buffer[0]["keywords"] == []
    analyst.failure = None
    clock.advance(15)
    await said(context, 2)
    await context.infer_domains()
    assert all(entry["keywords"] and entry["domains"] for entry in context.raw_recent_buffer)
    await context.update_summary()
    assert context.rolling_summary["message_count"] == 2


@pytest.mark.parametrize(
    ("method", "due"), [("update_summary", "should_summarize"), ("infer_domains", "should_infer_domains")]
)
async def test_what_nobody_waited_for_is_due_again(
    context: ConversationContext, analyst: StubAnalyst, clock: ManualClock, method: str, due: str
) -> None:
    await said(context, 1, 2)
    analyst.gate.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(getattr(context, method)(), 0.01)
    analyst.gate.set()
    clock.advance(130)
    assert getattr(context, due)()
    await getattr(context, method)()
    assert not getattr(context, due)()


async def test_keywords_that_nobody_waited_for_come_with_a_later_message(
    context: ConversationContext, analyst: StubAnalyst, clock: ManualClock
) -> None:
    analyst.gate.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(context.add_message(spoken(1)), 0.01)
    analyst.gate.set()
    clock.advance(60)
    await said(context, 2)
    assert [bool(entry["keywords"]) for entry in context.raw_recent_buffer] == [True, True]


async def test_a_message_that_was_not_taken_in_is_not_known(
    context: ConversationContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Conversation, "receive", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            await context.add_message(spoken(1))
    assert await context.add_message(spoken(1))
    assert len(context.raw_recent_buffer) == 1


async def test_metadata_that_json_has_not_becomes_strings(context: ConversationContext) -> None:
    day = datetime(2025, 1, 2, 3, 4, tzinfo=UTC)
    metadata = {1: {2}, None: day, "raw": b"\xff", "path": Path("a/b"), "pair": (1, day), ("k", 1): Ratio(0.5)}
    assert await context.add_consilience_response({"text": "Look", "metadata": metadata, "timestamp": day})
    (response,) = context.to_dict()["consilience_responses"]
    assert response["metadata"] == {
        "1": "{2}",
        "None": str(day),
        "raw": "b'\\xff'",
        "path": "a/b",
        "pair": [1, str(day)],
        "('k', 1)": 0.5,
    }
    assert context.raw_recent_buffer[0]["timestamp_raw"] == str(day)


async def test_a_failing_archive_gets_the_summaries_with_the_next_one(
    context: ConversationContext, archive: InMemoryArchive
) -> None:
    archive.failure = DatabaseUnavailable("the archive is away")
    await said(context, 1)
    with pytest.raises(DatabaseUnavailable):
        await context.update_summary()
    assert context.rolling_summary["message_count"] == 1
    await said(context, 2)
    archive.failure = None
    await context.update_summary()
    assert [(seq, row.message_count) for (_, seq), row in archive.rows.items()] == [(1, 1), (2, 2)]


async def test_keywords_of_any_text(context: ConversationContext) -> None:
    assert await context.extract_keywords("Helicase unwinds") == ["Helicase", "unwinds"]
    assert await context.extract_keywords("too short") == []


async def test_the_two_published_forms(context: ConversationContext, clock: ManualClock) -> None:
    await said(context, 1)
    await context.add_consilience_response(advised())
    clock.advance(4.5)
    conversation = context.get_conversation_state()
    assert (conversation["session_id"], conversation["silence"]) == ("monday", True)
    assert conversation["time_since_last_message"] == context.time_since_last_message() == 4.5
    assert context.is_silence()
    state = context.to_dict()
    assert state["raw_recent_buffer"] == context.raw_recent_buffer
    assert (state["received_messages"], state["highest_message_number"]) == (2, 1)


async def test_what_is_given_out_can_be_changed_without_changing_the_conversation(
    context: ConversationContext,
) -> None:
    await said(context, 1)
    await context.add_consilience_response(advised())
    await context.infer_domains()
    context.raw_recent_buffer[0]["keywords"].append("meddled")
    context.raw_recent_buffer[0]["domain_confidence"]["meddled"] = 1.0
    context.consilience_responses[0]["metadata"]["meddled"] = True
    context.current_domains.append("meddled")
    context.current_keywords.append("meddled")
    context.domain_confidence["meddled"] = 1.0
    assert "meddled" not in str(context.to_dict())


async def test_without_an_analyst_plain_text_analysis_reads_what_is_said() -> None:
    context = ConversationContext("monday")
    for number, text in enumerate(("Helicase unwinds the DNA double helix.", "DNA polymerase copies strands."), 1):
        await context.add_message(spoken(number, text))
    await context.infer_domains()
    await context.update_summary()
    assert set(context.current_domains) <= set(DOMAINS)
    assert context.to_dict()["analyst"] == {"keywords": "text", "domains": "text", "summary": "text"}
    assert "DNA" in context.rolling_summary["text"]


async def test_what_is_corrected_struck_and_renamed_follows(
    context: ConversationContext, archive: InMemoryArchive, clock: ManualClock
) -> None:
    await context.add_message(spoken(1, "It costs fifteen thousand euros.", "Speaker 2"))
    await context.add_message(spoken(2, "We hide it in Zanzibar."))
    assert await context.add_message({"corrects": 1, "text": "It costs fifty thousand euros.", "timestamp": "1"})
    assert not await context.add_message({"corrects": 1, "text": "It costs fifty thousand euros.", "timestamp": "1"})
    assert await context.add_message({"renames": "Speaker 2", "speaker": "Ida"})
    await context.update_summary()
    assert await context.add_message({"strikes": 2})
    await context.update_summary()
    assert "Zanzibar" not in str(context.to_dict())
    assert [(one["text"], one["by"]) for one in context.rolling_summary["points"]] == [
        ("It costs fifty thousand euros.", ["Ida"])
    ]
    assert not [row for row in archive.rows.values() if "Zanzibar" in row.summary_text]
    with pytest.raises(MessageError, match="not of this session"):
        await context.add_message({"corrects": "id:9", "text": "What?"})
