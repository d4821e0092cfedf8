"""A correction, another name or a strike reaches everything that a session keeps, once, through crashes."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.analysis.analyst import DraftPoint, SummaryRequest, SummaryResult
from context_builder.errors import DatabaseUnavailable, DataRejected, MessageError
from context_builder.memory.memory import Memory, MemoryQuery, TenantMemory
from context_builder.session import committer, inbox
from context_builder.session.client import SessionClient
from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.keys import Keys
from context_builder.session.memory_corrections import revise_memories
from context_builder.session.messages.revision import Correction, SpeakerRename, Strike, read_reference
from context_builder.session.session import Session
from context_builder.session.store.dead_letters import DeadLetters
from context_builder.testing import InMemoryStore, ManualClock, StubAnalyst
from tests.services.waiting import wait_until
from tests.session.live import TENANT, Live
from tests.session.saying import at, conversation, hear, quoting, spoken
from tests.session.test_undeliverable import ChoosyArchive

pytestmark = pytest.mark.engines

FIFTEEN, FIFTY = "The pump costs fifteen thousand euros.", "The pump costs fifty thousand euros."
WINDOW = 10.0
KEYS = Keys("monday")


class Quoting(StubAnalyst):
    """Makes each message a point, or its paraphrase; while ``gate`` is cleared, a summary waits."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[SummaryRequest] = []
        self.paraphrases: dict[str, str] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def summarize(self, request: SummaryRequest) -> SummaryResult:
        self.asked.append(request)
        await self.gate.wait()
        points = (
            DraftPoint(
                self.paraphrases.get(said.text, f"{said.speaker} says: {said.text}"), quoting(said.id, words=said.text)
            )
            for said in request.messages
        )
        return SummaryResult(tuple(points), "stub")


@pytest.fixture
def analyst(live: Live) -> Quoting:
    live.analyst = analyst = Quoting()
    return analyst


async def begin(live: Live, **rules: Any) -> Session:
    return await live.start(buffer_window=WINDOW, **rules)


async def summarized(live: Live, *messages: dict[str, Any]) -> None:
    """Have the messages said, summarized and delivered."""
    await live.push(*messages)
    numbers = [one.get("message_number") for one in messages]
    await live.shows(*numbers)
    live.clock.advance(WINDOW + 1)
    await live.shows()
    await delivered(live)


async def delivered(live: Live) -> None:
    async def empty() -> bool:
        return not (await live.redis.llen(KEYS.outbox) + await live.redis.llen(KEYS.memory_outbox))

    await wait_until(empty, "everything is delivered")


async def taken_in(live: Live) -> None:
    async def read() -> bool:
        return not await live.redis.llen(KEYS.input)

    await wait_until(read, "the input is read")
    await delivered(live)


def remembered(live: Live, kind: str = "message") -> list[str]:
    assert isinstance(live.memory, InMemoryStore)
    return sorted(f"{one.speaker}: {one.text}" for one in live.memory.kept.get(TENANT, {}).values() if one.kind == kind)


async def points(live: Live) -> list[str]:
    return [point["text"] for point in (await live.state())["rolling_summary"]["points"]]


async def everything_held(redis: Redis) -> bytes:
    """All bytes that Redis holds, what is compressed or encoded also as it reads."""
    found = b""
    for key in await redis.keys("*"):
        kind = await redis.type(key)
        values: Sequence[bytes] = []
        if kind == b"string":
            values = [await redis.get(key)]
        elif kind == b"list":
            values = await redis.lrange(key, 0, -1)
        elif kind == b"hash":
            values = [part for pair in (await redis.hgetall(key)).items() for part in pair]
        elif kind == b"set":
            values = [*await redis.smembers(key)]
        for value in values:
            found += value + b"\n"
            with suppress(zlib.error):
                found += zlib.decompress(value) + b"\n"
    return found


async def test_a_corrected_message_stands_in_the_buffer_once_with_its_last_words(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await live.push(spoken(1, FIFTEEN), spoken(2, "And it is blue."))
    await live.shows(1, 2)
    await live.push(spoken(1, FIFTY))

    async def corrected() -> bool:
        return [one["text"] for one in (await live.state())["raw_recent_buffer"]] == [FIFTY, "And it is blue."]

    await wait_until(corrected, "the correction is published")
    assert (await live.state())["received_messages"] == 2
    await wait_until(lambda: remembered(live) == ["Alice: And it is blue.", f"Alice: {FIFTY}"], "it is remembered")


async def test_a_correction_of_what_is_summarized_reaches_points_archive_and_memory(
    live: Live, analyst: Quoting
) -> None:
    await begin(live)
    await summarized(live, spoken(1, FIFTEEN), spoken(2, "And it is blue."))
    await live.push({"corrects": 1, "text": FIFTY, "timestamp": at(60)})
    await taken_in(live)
    assert await points(live) == [f"Alice says: {FIFTY}", "Alice says: And it is blue."]
    assert remembered(live) == ["Alice: And it is blue.", f"Alice: {FIFTY}"]
    assert remembered(live, "point") == [f"Alice: Alice says: {one}" for one in ("And it is blue.", FIFTY)]
    (first, first_row), (second, second_row) = sorted(live.archive.rows.items())
    assert (FIFTEEN in first_row.summary_text, FIFTEEN in second_row.summary_text) == (True, False)
    assert live.archive.superseded_by == {first: second[1]}
    assert second_row.message_count == 2


async def test_a_row_that_the_archive_refused_is_not_put_back_after_a_correction(live: Live, analyst: Quoting) -> None:
    live.archive = archive = ChoosyArchive(lambda: DataRejected("refuses: violates a constraint"), 1)
    await begin(live)
    await summarized(live, spoken(1, FIFTEEN))
    await live.until("it is a dead letter", undeliverable={"archive": 1, "memory": 0})
    await live.push({"corrects": 1, "text": FIFTY, "timestamp": at(60)})
    await taken_in(live)
    await delivered(live)
    assert [row.summary_text for row in archive.rows.values()] == [f"Said:\n- Alice says: {FIFTY}"]
    assert await live.redis.llen(KEYS.archive_dead) == 0


async def test_what_can_not_be_rewritten_is_retracted_and_summarized_again(live: Live, analyst: Quoting) -> None:
    analyst.paraphrases["Kelp sings at night."] = "Algae make music."
    await begin(live)
    await summarized(live, spoken(1, "Kelp sings at night."), spoken(2, "And it is blue."))
    await live.push({"corrects": 1, "text": "We meet on Friday instead.", "timestamp": at(60)})
    await wait_until(lambda: len(analyst.asked) == 2, "the message is summarized again")
    assert [said.text for said in analyst.asked[1].messages] == ["We meet on Friday instead."]

    async def again() -> bool:
        return sorted(await points(live)) == ["Alice says: And it is blue.", "Alice says: We meet on Friday instead."]

    await wait_until(again, "its new point is published")
    await delivered(live)
    assert remembered(live, "point") == [
        "Alice: Alice says: And it is blue.",
        "Alice: Alice says: We meet on Friday instead.",
    ]
    assert (await live.state())["rolling_summary"]["message_count"] == 2
    assert not [name for name in await live.redis.hkeys(KEYS.checkpoint) if name.startswith(b"r:")]


async def test_a_correction_while_the_summary_is_in_the_making_is_in_its_points(live: Live, analyst: Quoting) -> None:
    await begin(live)
    analyst.gate.clear()
    await live.push(spoken(1, FIFTEEN))
    await live.shows(1)
    live.clock.advance(WINDOW + 1)
    await wait_until(lambda: analyst.asked, "a summary is asked for")
    await live.push(spoken(1, FIFTY), spoken(1, FIFTY, "Bo"))
    await taken_in(live)
    analyst.gate.set()
    await live.shows()
    await delivered(live)
    assert await points(live) == [f"Bo says: {FIFTY}"]
    assert remembered(live) == [f"Bo: {FIFTY}"]
    assert remembered(live, "point") == [f"Bo: Bo says: {FIFTY}"]


async def test_what_is_corrected_while_it_waits_in_the_pending_list_is_summarized_as_it_is_now(
    live: Live, analyst: Quoting
) -> None:
    await begin(live, buffer_max=2, pending_max=100)
    analyst.gate.clear()
    await live.push(*(spoken(number, f"Remark {number} is this.") for number in range(1, 7)))
    await live.shows(5, 6)
    await live.push({"corrects": 3, "text": "Remark three was other.", "timestamp": at(60)}, {"strikes": 4})
    await taken_in(live)
    assert b"Remark 4" not in await everything_held(live.redis)
    analyst.gate.set()
    live.clock.advance(WINDOW + 1)
    await live.shows()
    await delivered(live)
    said = [
        "Remark 1 is this.",
        "Remark 2 is this.",
        "Remark three was other.",
        "Remark 5 is this.",
        "Remark 6 is this.",
    ]
    assert sorted(await points(live)) == sorted(f"Alice says: {one}" for one in said)
    assert remembered(live) == sorted(f"Alice: {one}" for one in said)
    state = await live.state()
    assert (state["rolling_summary"]["message_count"], state["messages_since_summary"]) == (5, 0)
    assert not [name for name in await live.redis.hkeys(KEYS.checkpoint) if name[:2] in (b"x:", b"r:")]


async def test_nothing_is_left_of_a_struck_message_and_it_does_not_come_back(live: Live, analyst: Quoting) -> None:
    secret = "Zanzibar is where we hide it."
    await begin(live)
    await summarized(live, spoken(1, secret), spoken(2, "And it is blue."))
    await live.push(spoken(3, "Off the record: Madagascar."))
    await live.shows(3)
    await live.push({"strikes": 1, "timestamp": at(60)}, {"strikes": 3, "timestamp": at(61)})
    await live.shows()
    await taken_in(live)
    assert await points(live) == ["Alice says: And it is blue."]
    held = await everything_held(live.redis)
    assert b"Zanzibar" not in held
    assert b"Madagascar" not in held
    assert remembered(live) == ["Alice: And it is blue."]
    assert remembered(live, "point") == ["Alice: Alice says: And it is blue."]
    assert [row.summary_text for row in live.archive.rows.values()] == ["Said:\n- Alice says: And it is blue."]
    await live.push(spoken(1, secret), spoken(1, "Zanzibar, again."), {"corrects": 1, "text": "Zanzibar!"})
    await taken_in(live)
    assert b"Zanzibar" not in await everything_held(live.redis)
    assert remembered(live) == ["Alice: And it is blue."]


async def test_a_message_struck_while_its_summary_is_in_the_making_is_in_none(live: Live, analyst: Quoting) -> None:
    await begin(live)
    analyst.gate.clear()
    await live.push(spoken(1, "Zanzibar it is."), spoken(2, "And it is blue."))
    await live.shows(1, 2)
    live.clock.advance(WINDOW + 1)
    await wait_until(lambda: analyst.asked, "a summary is asked for")
    await live.push({"strikes": 1})
    await live.shows(2)
    analyst.gate.set()
    await live.shows()
    await delivered(live)
    assert await points(live) == ["Alice says: And it is blue."]
    assert remembered(live) == ["Alice: And it is blue."]
    assert b"Zanzibar" not in await everything_held(live.redis)
    state = await live.state()
    assert (state["rolling_summary"]["message_count"], state["messages_since_summary"]) == (1, 0)


async def test_a_renamed_speaker_is_called_so_from_the_start_and_from_now_on(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await summarized(live, spoken(1, FIFTY, "Speaker 2"), spoken(2, "I ask Speaker 2.", "Bo"))
    await live.push(spoken(3, "Yes, I will.", "Speaker 2"))
    await live.shows(3)
    await live.push({"renames": "Speaker 2", "speaker": "Ida"}, spoken(4, "And more.", "Speaker 2"))
    state = await live.shows(3, 4)
    assert [one["speaker"] for one in state["raw_recent_buffer"]] == ["Ida", "Ida"]
    await taken_in(live)
    assert (await points(live))[0] == f"Ida says: {FIFTY}"
    assert (await live.state())["rolling_summary"]["points"][0]["by"] == ["Ida"]
    await wait_until(lambda: len(remembered(live)) == 4, "all is remembered")
    assert not [one for one in remembered(live) if one.startswith("Speaker 2")]
    assert "Bo: I ask Speaker 2." in remembered(live)  # his words
    assert remembered(live, "point")[1] == f"Ida: Ida says: {FIFTY}"
    await live.push(spoken(3, "Yes, I will.", "Speaker 2"))  # sent again
    await taken_in(live)
    assert (await live.state())["received_messages"] == 4


async def test_names_survive_the_process_and_a_loop_of_names_ends(live: Live, analyst: Quoting) -> None:
    session = await begin(live)
    await live.push(
        {"renames": "A", "speaker": "B"}, {"renames": "B", "speaker": "C"}, {"renames": "C", "speaker": "A"}
    )
    await taken_in(live)
    await live.stop(session)
    await begin(live)
    await live.push(spoken(1, "One.", "A"), spoken(2, "Two.", "B"), spoken(3, "Three.", "C"))
    state = await live.shows(1, 2, 3)
    assert [one["speaker"] for one in state["raw_recent_buffer"]] == ["A", "A", "A"]


async def test_a_process_that_dies_leaves_a_correction_to_the_next(live: Live, analyst: Quoting) -> None:
    session = await begin(live)
    await summarized(live, spoken(1, FIFTEEN))
    live.die(session)
    await live.push(spoken(1, FIFTY), {"strikes": "id:7"})
    await live.start(takeover=True, buffer_window=WINDOW)
    await taken_in(live)
    assert await points(live) == [f"Alice says: {FIFTY}"]
    assert remembered(live) == [f"Alice: {FIFTY}"]
    assert (await live.state())["dead_letters"] == 1


async def test_a_message_that_was_to_be_summarized_again_is_by_the_next_process(live: Live, analyst: Quoting) -> None:
    analyst.paraphrases["Kelp sings at night."] = "Algae make music."
    session = await begin(live)
    await summarized(live, spoken(1, "Kelp sings at night."))
    analyst.gate.clear()
    await live.push({"corrects": 1, "text": "We meet on Friday instead."})
    await wait_until(lambda: len(analyst.asked) == 2, "the message is summarized again")
    live.die(session)
    analyst.gate.set()
    await live.start(takeover=True, buffer_window=WINDOW)

    async def again() -> bool:
        return await points(live) == ["Alice says: We meet on Friday instead."]

    await wait_until(again, "its new point is published")


async def test_ten_thousand_corrections_of_one_message_leave_the_last(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await summarized(live, spoken(1, FIFTEEN))
    await live.push(*({"corrects": 1, "text": f"The pump costs {n} euros.", "timestamp": at(n)} for n in range(10_000)))

    async def last() -> bool:
        return await points(live) == ["Alice says: The pump costs 9999 euros."]

    await wait_until(last, "the last correction is published")
    await taken_in(live)
    assert remembered(live) == ["Alice: The pump costs 9999 euros."]
    assert len(live.archive.rows) < 200


async def test_the_assistants_contribution_is_corrected_too(live: Live, analyst: Quoting) -> None:
    await begin(live)
    advice = spoken(900, "From a Biology perspective", "Consilience", type="consilience")
    await live.push(advice, {**advice, "text": "From a Physics perspective"})

    async def corrected() -> bool:
        state = await live.state()
        texts = {one["text"] for one in (*state["consilience_responses"], *state["raw_recent_buffer"])}
        return texts == {"From a Physics perspective"}

    await wait_until(corrected, "it is corrected")


async def test_a_message_that_is_struck_in_the_commit_that_it_came_in_is_not_remembered(
    live: Live, analyst: Quoting
) -> None:
    await live.push(spoken(1, "Zanzibar it is."), spoken(2, "And it is blue."), {"strikes": 1})
    await begin(live)
    await live.shows(2)
    await wait_until(lambda: "Alice: And it is blue." in remembered(live), "what is left is remembered")
    assert remembered(live) == ["Alice: And it is blue."]


async def test_a_point_that_is_corrected_again_and_again_is_remembered_once(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await summarized(live, spoken(1, FIFTEEN))
    for second, cost in enumerate(("fifty", "sixty"), start=60):
        await live.push({"corrects": 1, "text": f"The pump costs {cost} thousand euros.", "timestamp": at(second)})
        await taken_in(live)
    assert remembered(live, "point") == ["Alice: Alice says: The pump costs sixty thousand euros."]


async def test_a_point_that_is_renamed_and_corrected_at_once_is_remembered_once(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await summarized(live, spoken(1, FIFTEEN))
    await live.push(
        {"renames": "Alice", "speaker": "Ida", "timestamp": at(60)},
        {"corrects": 1, "text": FIFTY, "timestamp": at(61)},
    )
    await taken_in(live)
    assert remembered(live, "point") == [f"Ida: Ida says: {FIFTY}"]


class Moody(InMemoryStore):
    """A memory that raises ``fault`` instead of remembering, if there is one; ``tried`` counts that."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Exception | None = None
        self.tried = 0

    async def remember(self, tenant_id: str, memories: Sequence[Memory]) -> None:
        if self.fault is not None:
            self.tried += 1
            raise self.fault
        await super().remember(tenant_id, memories)


async def test_what_was_corrected_before_the_memory_refused_it_is_put_back_as_corrected(
    live: Live, analyst: Quoting
) -> None:
    live.memory = memory = Moody()
    memory.fault = DatabaseUnavailable("away")
    await begin(live)
    await live.push(spoken(1, FIFTEEN))
    await live.shows(1)
    live.clock.advance(WINDOW + 1)
    await live.shows()
    await wait_until(lambda: memory.tried > 2, "the memory is away")
    waiting = await live.redis.lrange(KEYS.memory_outbox, 0, -1)
    await live.push(
        {"corrects": 1, "text": FIFTY, "timestamp": at(60)},
        {"renames": "Alice", "speaker": "Ida", "timestamp": at(61)},
    )
    await live.until("the points are corrected", text=f"Said:\n- Ida says: {FIFTY}")
    assert await live.redis.lrange(KEYS.memory_outbox, 0, 0) == waiting  # whatever waits is not gone through
    memory.fault = DataRejected("not this one")
    letters = DeadLetters(live.redis, "monday", "memory")
    await delivered(live)  # which is what becomes of it, refused for good
    memory.fault = None
    for letter in await letters.all():
        await letters.requeue(letter)
    await live.say(2)
    await delivered(live)
    assert f"Ida: {FIFTY}" in remembered(live)
    assert remembered(live, "point") == [f"Ida: Ida says: {FIFTY}"]


TOO_OLD = (
    "is about message {}, which is too old: only the newest 20,000 messages of a session can be corrected or struck"
)


async def test_what_has_left_the_index_is_neither_corrected_nor_new_and_what_was_struck_stays_so(
    live: Live, analyst: Quoting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committer, "INDEXED", 4)
    await begin(live)
    await live.push(
        spoken(1, "struck"), spoken(2, FIFTEEN), spoken(None, "unnumbered"), spoken(4, "by Bo", speaker="Bo")
    )
    await live.shows(1, 2, None, 4)
    await live.push({"strikes": 1, "timestamp": at(60)})
    await live.shows(2, None, 4)
    await live.say(5, 6, 7, 8)
    await live.shows(2, None, 4, 5, 6, 7, 8)
    late = [
        *({"corrects": about, "text": FIFTY, "timestamp": at(70)} for about in (2, "id:3", 3)),
        {"strikes": 4, "timestamp": at(70)},
        spoken(2, FIFTY),
        spoken(1, "struck, they said"),
        spoken(1, "after a restart", timestamp=at(80)),
        {"corrects": 6, "text": "Six.", "timestamp": at(70)},
    ]
    await live.push(*late)
    await live.shows(2, None, 4, 5, 6, 7, 8, 1)
    texts = [one["text"] for one in (await live.state())["raw_recent_buffer"]]
    assert (texts[0], texts[4], texts[-1]) == (FIFTEEN, "Six.", "after a restart")
    dead = await DeadLetters(live.redis, "monday").all()
    assert [letter.reason for letter in dead] == [TOO_OLD.format(about) for about in ("2", "id:3", "3", "4", "2")]
    client = SessionClient(live.redis, "monday")
    assert [await client.has_spoken(name) for name in ("Bo", "Alice", "Ida")] == [True, True, False]
    assert await client.held_message(read_reference("1", "message")) == "there"
    assert await client.held_message(read_reference("id:1", "message")) == "struck"
    with pytest.raises(MessageError, match="too old"):
        await client.held_message(read_reference("2", "message"))
    index = await live.redis.hgetall(KEYS.message_index)
    assert len([name for name in index if name.startswith(b"i:")]) == 5


async def test_speakers_who_are_renamed_at_once_are_told_apart(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await summarized(live, spoken(1, "Ann asked.", speaker="Bo"), spoken(2, "Bo replied.", speaker="Ann"))
    renames = [("Bo", "C"), ("Ann", "Bo"), ("C", "Ann"), ("Nobody", "Bo")]
    await live.push(*({"renames": old, "speaker": new, "timestamp": at(60)} for old, new in renames))
    await taken_in(live)
    assert await points(live) == ["Ann says: Bo asked.", "Bo says: Ann replied."]
    assert remembered(live) == ["Ann: Ann asked.", "Bo: Bo replied."]


async def test_names_that_change_places_do_so_once_however_often_that_is_told(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True)
    renames = [SpeakerRename("Bo", "C"), SpeakerRename("Ann", "Bo"), SpeakerRename("C", "Ann")]
    corrected = Correction(9, "m-3", None, "Ann", None, consilience=False, timestamp="", time=0.0)
    subject.revise([corrected], clock.now())
    subject.revise(renames, clock.now())
    memory = TenantMemory(InMemoryStore(), TENANT)
    for name, speaker, text in (("m-1", "Ann", "Ann"), ("m-2", "Bo", "Bo"), ("m-3", "X", "Corrected")):
        await memory.remember([Memory(f"monday:message:{name}", text, speaker=speaker, session_id="monday")])
    for part in subject.take_changes().memory_outbox:
        for _ in range(2):
            await revise_memories(memory, memory.remember, part)
    found = [one.memory for one in await memory.search(MemoryQuery(""))]
    assert {one.text: one.speaker for one in found} == {"Ann": "Bo", "Bo": "Ann", "Corrected": "Bo"}


async def test_a_name_that_nobody_has_in_the_end_has_no_preferences() -> None:
    """Those of messages which are no longer remembered, too; the others have followed their messages."""
    memory = TenantMemory(InMemoryStore(), TENANT)
    stated = {"kind": "preference", "session_id": "monday"}
    await memory.remember([Memory(name, f"{name} prefers tea", user_id=name, **stated) for name in ("Ann", "Bo")])
    renamed = (("Ann", "Bo"), ("Bo", "Ann"))
    await revise_memories(memory, memory.remember, MemoryBatch("monday", renamed=renamed))
    assert [one.memory.id for one in await memory.search(MemoryQuery(""))] == ["Ann"]


async def test_a_name_given_while_a_summary_is_in_the_making_is_in_its_points(live: Live, analyst: Quoting) -> None:
    await begin(live)
    analyst.gate.clear()
    await live.push(spoken(1, FIFTEEN))
    await live.shows(1)
    live.clock.advance(WINDOW + 1)
    await wait_until(lambda: len(analyst.asked) == 1, "a summary is asked for")
    for old, new in (("Alice", "Speaker 1"), ("Speaker 1", "Ida")):
        await live.push({"renames": old, "speaker": new, "timestamp": at(60)})
        await live.until(f"who spoke is {new}", received_messages=1)
    await taken_in(live)
    analyst.gate.set()
    await live.shows()
    await delivered(live)
    assert remembered(live, "point") == [f"Ida: Ida says: {FIFTEEN}"]


def test_hundreds_of_revisions_at_once_are_applied_in_a_moment(clock: ManualClock) -> None:
    subject = conversation(clock, feed_memory=True, summary_budget=20_000)
    for number in range(1, 201):
        hear(subject, clock, number)
    while (work := subject.next_summary_task()) is not None:
        drafts = (DraftPoint(f"Sample {one.id} was measured.", quoting(one.id)) for one in work.request.messages)
        subject.finish(work, SummaryResult(tuple(drafts), "stub"), clock.now())
    began = time.process_time()
    subject.revise([SpeakerRename(f"S{number}", f"T{number}") for number in range(500)], clock.now())
    subject.revise([Strike(number, f"origin{number}") for number in range(1, 151)], clock.now())
    assert time.process_time() - began < 2
    assert len(subject.summary.ledger.points) == 50


async def test_many_corrections_are_applied_some_at_a_time_in_their_order(
    live: Live, analyst: Quoting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST_CORRECTED", 2)
    await begin(live)
    await live.say(*range(1, 6))
    before = (await live.shows(*range(1, 6)))["revision"]
    again = [{"corrects": number, "text": f"{number} again.", "timestamp": at(60)} for number in range(1, 6)]
    await live.push(*again, {"strikes": 5, "timestamp": at(61)}, spoken(6, "new"), spoken(1, "1 at last."))
    state = await live.shows(1, 2, 3, 4, 6)
    await taken_in(live)
    state = await live.state()
    texts = ["1 at last.", "2 again.", "3 again.", "4 again.", "new"]
    assert [one["text"] for one in state["raw_recent_buffer"]] == texts
    assert state["revision"] >= before + 3


async def test_a_refused_correction_of_what_is_struck_keeps_no_words(live: Live, analyst: Quoting) -> None:
    await begin(live)
    await live.push(spoken(1), spoken(2), spoken(None))
    await live.shows(1, 2, None)
    refused = {"speaker": "Consilience", "text": "Zanzibar.", "timestamp": at(60)}
    await live.push(*({"corrects": about, **refused} for about in (1, "id:1", 2, 3)))
    await live.until("they are refused", dead_letters=4)
    await live.push({"strikes": 1, "timestamp": at(61)}, {"strikes": "id:3", "timestamp": at(62)})
    await live.shows(2)
    letters = await DeadLetters(live.redis, "monday").all()
    assert [b"Zanzibar" in letter.raw for letter in letters] == [False, False, True, False]
    assert all("the assistant's" in letter.reason for letter in letters)


async def test_a_correction_that_is_refused_in_the_commit_of_the_strike_keeps_no_words(
    live: Live, analyst: Quoting
) -> None:
    await begin(live)
    refused = {"speaker": "Consilience", "text": "Zanzibar.", "timestamp": at(60)}
    corrections = [{"corrects": about, **refused} for about in (1, 2, 3)]
    strikes = [{"strikes": about, "timestamp": at(61)} for about in (1, "id:3")]
    await live.push(spoken(1), spoken(2), spoken(None), *corrections, *strikes)
    await live.shows(2)
    letters = await DeadLetters(live.redis, "monday").all()
    assert [b"Zanzibar" in letter.raw for letter in letters] == [False, True, False]
