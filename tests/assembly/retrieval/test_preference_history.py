"""What users said they want, found in the history of a store that no session feeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from context_builder.assembly import AssemblyConfig, ContextBuilder, UserPreferencesStrategy
from context_builder.assembly.preference_history import READ_AT_ONCE
from context_builder.memory.memory import Memory, MemoryStore
from context_builder.memory.preferences import Preference
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain
from tests.services.waiting import PATIENCE, wait_until

MONDAY = datetime(2025, 1, 6, 9, tzinfo=UTC)


def said(minute: int, text: str, **more: Any) -> Memory:
    """A message as a program without sessions stores it."""
    given = {"session_id": "monday", "user_id": "ann", "time": MONDAY + timedelta(minutes=minute), "position": minute}
    return Memory(f"m{minute}", text, **(given | more))


@pytest.fixture(params=["stand-in", pytest.param("postgresql", marks=pytest.mark.engines)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MemoryStore]:
    kept: MemoryStore = InMemoryStore()
    if request.param == "postgresql":
        kept = PostgresMemory(request.getfixturevalue("postgres_server").create_database(migrated=True))
    yield kept
    await kept.close()


def builder(store: MemoryStore | None, **parts: Any) -> ContextBuilder:
    """Patient: the first query of a pool connects."""
    rules = AssemblyConfig(deadline=5.0)
    return ContextBuilder(**({"store": store, "token_counter": len, "config": rules} | parts))


async def preferred(made: ContextBuilder, user: str = "ann", conversation: str | None = None) -> list[str]:
    """What the context tells of the user's preferences, the newest first."""
    asking = made.with_system_message("Be kind.").with_strategy(UserPreferencesStrategy()).for_user(user)
    context = await (asking.for_conversation(conversation) if conversation else asking).build()
    return [line.removeprefix("- ") for line in (context.user_preferences or "").splitlines()]


async def test_what_the_user_said_in_any_conversation_is_told(store: MemoryStore) -> None:
    await store.remember(
        "default",
        [
            said(1, "Well, I prefer short answers."),
            said(2, "Please call me Ann.", session_id="tuesday"),
            said(3, "Actually, I prefer detailed answers."),
            said(4, "I prefer tea.", user_id="bob"),
            said(5, "I prefer coffee.", metadata={"role": "assistant"}),
            said(6, "I prefer cocoa.", speaker="Consilience"),
        ],
    )
    assert await preferred(builder(store)) == ["Prefers detailed answers", "Wants to be called Ann"]
    assert await preferred(builder(store), "bob") == ["Prefers tea"]
    assert [one.text for one in await builder(store).preferences("ann")] == await preferred(builder(store))


async def test_of_a_conversation_of_nobodys_messages_those_are_read_that_the_user_said(
    store: MemoryStore,
) -> None:
    await store.remember(
        "default",
        [
            said(1, "I prefer tea.", user_id=None, speaker="ann"),
            said(2, "Please call me Al.", user_id=None, speaker="Ann Lee", metadata={"user_id": "ann"}),
            said(3, "I prefer coffee.", user_id=None, speaker="ann", metadata={"user_id": "another"}),
            said(4, "I prefer milk.", user_id=None, speaker="bob"),
            said(5, "I hate rain.", user_id=None, speaker="ann", session_id="tuesday"),
        ],
    )
    assert await preferred(builder(store), conversation="monday") == ["Wants to be called Al", "Prefers tea"]


async def test_what_is_stored_and_what_was_said_are_settled_by_when_they_were_stated(store: MemoryStore) -> None:
    explicit = Memory("p1", "Prefers lists", kind="preference", user_id="ann", time=MONDAY)
    likes = Memory("p2", "Prefers green tea", kind="preference", user_id="ann", time=MONDAY)
    later = Memory("p3", "Prefers metric units", kind="preference", user_id="ann", time=MONDAY + timedelta(hours=9))
    talk = [said(1, "I prefer prose."), said(2, "I no longer prefer tea."), said(3, "I prefer imperial.")]
    await store.remember("default", [explicit, likes, later, *talk])
    assert await preferred(builder(store)) == ["Prefers metric units", "Prefers prose"]


async def test_what_was_taken_back_is_told_no_more_until_it_is_stated_again(store: MemoryStore) -> None:
    await store.remember("default", [said(1, "I prefer tea."), said(2, "I no longer prefer tea.")])
    assert await preferred(builder(store)) == []
    await store.remember("default", [said(3, "Yes, I do prefer coffee. I prefer tea.")])
    assert await preferred(builder(store)) == ["Prefers tea"]


async def test_a_history_that_takes_long_to_read_is_read_from_the_newest_over_some_turns() -> None:
    store = InMemoryStore()
    long = [said(n, f"{n} always " + "i " * 4_000) for n in range(2, 122)]
    stored = Memory("p", "Prefers lists", kind="preference", user_id="ann", time=MONDAY)
    await store.remember("default", [stored, said(1, "Please call me Ann."), *long, said(122, "I prefer tea.")])
    made = builder(store, config=AssemblyConfig(deadline=0.5))
    assert await preferred(made) == ["Prefers tea", "Prefers lists"]

    async def all_is_read() -> bool:
        return await preferred(made) == ["Prefers tea", "Wants to be called Ann", "Prefers lists"]

    await wait_until(all_is_read, "the oldest is read")


async def test_without_a_user_or_a_message_there_is_nothing(store: MemoryStore) -> None:
    assert await preferred(builder(store)) == []
    context = await builder(store).with_system_message("Be kind.").with_strategy(UserPreferencesStrategy()).build()
    assert context.user_preferences is None


class Model:
    """Reads preferences as a model does: it knows what "fond of" means."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def __call__(self, messages: Sequence[Memory]) -> list[list[Preference]]:
        self.asked.append([message.text for message in messages])
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        fond = (message.text.partition("fond of ")[2] for message in messages)
        return [[Preference("drink", f"Prefers {what}")] if what else [] for what in fond]


@pytest.fixture
async def talk() -> InMemoryStore:
    store = InMemoryStore()
    await store.remember("default", [said(1, "I prefer long answers."), said(2, "I am rather fond of tea")])
    return store


async def test_a_model_is_asked_instead_of_the_patterns_about_each_message_once(talk: InMemoryStore) -> None:
    model = Model()
    made = builder(talk, preference_reader=model)
    assert await preferred(made) == ["Prefers tea"]
    await talk.remember("default", [said(3, "Or fond of coffee")])
    assert await preferred(made) == await preferred(made) == ["Prefers coffee"]
    assert model.asked == [["I prefer long answers.", "I am rather fond of tea"], ["Or fond of coffee"]]


async def test_until_the_model_has_answered_the_patterns_do_and_no_turn_waits(talk: InMemoryStore) -> None:
    model = Model()
    model.gate.clear()
    made = builder(talk, preference_reader=model, config=AssemblyConfig(deadline=0.3))
    assert await preferred(made) == await preferred(made) == ["Prefers long answers"]
    assert len(model.asked) == 1
    model.gate.set()
    await made.drain()
    assert await preferred(made) == ["Prefers tea"]


@pytest.mark.parametrize("fault", ["raises", "too few", "no list", "no preferences"])
async def test_where_the_model_fails_the_patterns_answer_and_it_is_asked_again(talk: InMemoryStore, fault: str) -> None:
    wrong: dict[str, Any] = {"too few": [[]], "no list": 7, "no preferences": [["tea"], [None]]}
    asked = 0

    async def reader(messages: Sequence[Memory]) -> Any:
        nonlocal asked
        asked += 1
        if fault == "raises":
            raise ConnectionError("I prefer long answers")
        return wrong[fault]

    made = builder(talk, preference_reader=reader)
    with capture_logs() as logs:
        assert await preferred(made) == await preferred(made) == ["Prefers long answers"]
    assert asked == 2
    assert {entry["event"] for entry in logs} == {"preferences.failed"}
    assert "long" not in str(logs)


async def test_a_long_history_is_read_a_part_at_a_time_the_newest_first(talk: InMemoryStore) -> None:
    model = Model()
    made = builder(talk, preference_reader=model)
    await talk.remember("default", [said(n, f"Message {n}") for n in range(3, READ_AT_ONCE + 3)])
    await preferred(made)
    assert await preferred(made) == ["Prefers tea"]
    assert [(len(texts), texts[-1]) for texts in model.asked] == [(50, "Message 52"), (2, "I am rather fond of tea")]


async def test_the_model_is_shown_what_is_redacted_alone(talk: InMemoryStore) -> None:
    class Redactor:
        def redact(self, text: str) -> str:
            if "tea" in text:
                raise ValueError(text)
            return text.replace("long", "[secret]")

    model = Model()
    made = builder(talk, preference_reader=model, redactor=Redactor())
    assert await preferred(made) == []
    assert model.asked == [["I prefer [secret] answers."]]


async def test_a_store_that_fails_leaves_a_turn_without_preferences(talk: InMemoryStore) -> None:
    talk.failure = ConnectionError("away")  # type: ignore[assignment]
    made = ContextBuilder(somabrain=Brain(), store=talk, token_counter=len)
    with pytest.raises(Exception, match="UserPreferencesStrategy"):
        await preferred(made)


async def test_readers_under_way_are_waited_for_at_the_end(talk: InMemoryStore) -> None:
    model = Model()
    model.gate.clear()
    made = builder(talk, preference_reader=model, config=AssemblyConfig(deadline=0.1))
    await preferred(made)
    draining = asyncio.create_task(made.drain())
    await wait_until(lambda: model.asked, "the model is asked")
    assert not draining.done()
    model.gate.set()
    await draining


async def test_readers_under_way_can_be_cancelled_by_a_program_that_builds_no_later_turn(talk: InMemoryStore) -> None:
    model = Model()
    model.gate.clear()
    made = builder(talk, preference_reader=model, config=AssemblyConfig(deadline=0.1))
    await preferred(made)
    await wait_until(lambda: model.asked, "the model is asked")
    await asyncio.wait_for(made.cancel_reading(), PATIENCE)
    await asyncio.wait_for(made.drain(), PATIENCE)
    model.gate.set()
    assert await preferred(made) == ["Prefers tea"]
