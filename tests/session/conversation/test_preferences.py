"""What people say they want in a session is remembered as theirs, and the later replaces the earlier."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from context_builder import ContextBuilder, UserPreferencesStrategy
from context_builder.assembly.config import AssemblyConfig
from context_builder.memory.memory import MemoryFilter, MemoryQuery, MemoryStore, TenantMemory
from context_builder.memory.preferences import KIND, Preference, stated_preferences
from context_builder.memory.rows import as_key
from context_builder.memory.sql_memory import PostgresMemory
from context_builder.session.conversation import memory_batch as preferring
from context_builder.session.conversation.memory_batch import of_message, preferences_in
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from context_builder.testing import InMemoryStore
from tests.services.waiting import PATIENCE
from tests.session.live import TENANT, Live
from tests.session.saying import ARRIVAL, advice, message, spoken


def told(*messages: Message) -> list[tuple[str | None, str]]:
    entries = [BufferedMessage(number, one, ARRIVAL) for number, one in enumerate(messages, start=1)]
    found = preferences_in([of_message("monday", entry) for entry in entries]).memories.values()
    return [(preference.user_id, preference.text) for preference in found]


def test_a_preference_is_the_speakers_with_its_source_and_the_session() -> None:
    said = of_message("monday", BufferedMessage(1, message(1, "I prefer short answers."), ARRIVAL))
    (found,) = preferences_in([said]).memories.values()
    assert (found.user_id, found.speaker, found.session_id, found.time) == ("Alice", "Alice", "monday", said.time)
    assert found.metadata["source_message"] == said.id


def test_a_message_may_name_its_user() -> None:
    assert told(message(1, "I prefer tea.", metadata={"user_id": "u-1"})) == [("u-1", "Prefers tea")]
    assert told(message(1, "I prefer tea.", metadata={"user_id": 7})) == [("Alice", "Prefers tea")]


@pytest.mark.parametrize("user_id", ["u" * 201, "u" * 200 + "v" * 100_000, "\x00", "u\x00"])
def test_a_user_whose_name_cannot_be_a_key_stays_a_user_of_its_own(user_id: str) -> None:
    (named, _), (other, _) = told(
        message(1, "I prefer tea.", metadata={"user_id": user_id}),
        message(2, "I prefer tea.", metadata={"user_id": user_id + "\x00"}),
    )
    assert named
    assert other
    assert named != other
    assert "Alice" not in (named, other)
    assert named == as_key(named) == as_key(user_id)


def test_a_user_that_a_message_named_is_known_after_a_restart() -> None:
    entry = BufferedMessage(1, message(1, "I prefer tea.", metadata={"user_id": "u-1"}), ARRIVAL)
    assert BufferedMessage.decode(entry.encode(), ARRIVAL).user_id == "u-1"
    assert b"user_id" not in BufferedMessage(1, message(1), ARRIVAL).encode()


def test_of_each_user_and_topic_the_last_holds() -> None:
    said = (
        ("Alice", "I prefer long answers."),
        ("Bob", "I prefer long answers."),
        ("Alice", "I prefer short answers."),
    )
    found = told(*(message(number, text, speaker=speaker) for number, (speaker, text) in enumerate(said)))
    assert found == [("Bob", "Prefers long answers"), ("Alice", "Prefers short answers")]


def test_neither_the_assistant_nor_somebody_unknown_has_preferences() -> None:
    assert told(advice("I prefer short answers."), message(2, "I prefer short answers.", speaker="Unknown")) == []


def test_a_message_whose_preferences_cannot_be_told_keeps_no_other_from_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(text: str) -> list[Preference]:
        return stated_preferences(text) if "tea" in text else [][1]

    monkeypatch.setattr(preferring, "stated_preferences", failing)
    with capture_logs() as logs:
        assert told(message(1, "I prefer coffee."), message(2, "I prefer tea.")) == [("Alice", "Prefers tea")]
    assert [(entry["event"], entry["kind"]) for entry in logs] == [("preferences.failed", "IndexError")]
    assert "coffee" not in str(logs)


async def kept(memory: MemoryStore, *messages: Message) -> list[str]:
    """The preferences that Alice has after these messages, each remembered by itself."""
    tenant = TenantMemory(memory, TENANT)
    for number, one in enumerate(messages, start=1):
        said = of_message("monday", BufferedMessage(number, one, ARRIVAL))
        for _ in range(2):  # a delivery may be repeated
            await tenant.remember(await preferences_in([said]).settled(tenant))
    found = await tenant.search(MemoryQuery("", limit=50, filter=MemoryFilter(user_id="Alice", kinds=(KIND,))))
    return sorted(one.memory.text for one in found)


@pytest.mark.parametrize(
    ("earlier", "later", "left"),
    [
        ("I prefer tea.", "I no longer prefer tea.", "No longer prefers tea"),
        ("I prefer green tea over coffee.", "I don't want tea any more.", "No longer prefers green tea over coffee"),
        ("I prefer vim over emacs.", "I no longer like vim", "No longer prefers vim over emacs"),
        ("I prefer emacs to vim.", "I no longer like vim", "Prefers emacs to vim"),
        ("I prefer coffee.", "I no longer prefer tea.", "Prefers coffee"),
        ("I hate surprises", "I don't mind surprises any longer", "No longer dislikes surprises"),
        ("I hate surprises", "I no longer prefer surprises", "Dislikes surprises"),
        ("Please call me Al.", "Please don't call me Al any more.", "No longer wants to be called Al"),
        ("Please call me Ann.", "Please don't call me Al.", "Wants to be called Ann"),
        ("Please reply in German.", "You don't have to reply in German.", "No longer wants replies in German"),
        ("Please always cite papers.", "No need to always cite papers", "No longer always cite papers"),
        ("I prefer tea.", "She said I no longer prefer tea.", "Prefers tea"),
        ("I prefer tea.", "Do I no longer prefer tea?", "Prefers tea"),
    ],
)
async def test_what_is_taken_back_holds_no_longer(earlier: str, later: str, left: str) -> None:
    assert await kept(InMemoryStore(), message(1, earlier), message(2, later)) == [left]


async def test_what_was_never_stated_leaves_nothing_when_it_is_taken_back() -> None:
    assert await kept(InMemoryStore(), message(1, "I no longer prefer tea.")) == []


async def test_what_is_taken_back_may_be_stated_again() -> None:
    said = ("I prefer tea.", "I no longer prefer tea.", "I prefer tea.")
    assert await kept(InMemoryStore(), *(message(number, text) for number, text in enumerate(said, 1))) == [
        "Prefers tea"
    ]


async def test_nobody_takes_back_what_somebody_else_prefers() -> None:
    said = message(1, "I prefer tea."), message(2, "I no longer prefer tea.", speaker="Bob")
    assert await kept(InMemoryStore(), *said) == ["Prefers tea"]
    together = [of_message("monday", BufferedMessage(number, one, ARRIVAL)) for number, one in enumerate(said, 1)]
    assert [one.text for one in preferences_in(together).memories.values()] == ["Prefers tea"]


@pytest.mark.engines
async def test_what_is_taken_back_in_postgresql_is_in_no_prompt(migrated_url: str) -> None:
    memory = PostgresMemory(migrated_url)
    said = ("I prefer tea.", "I hate surprises.", "I no longer prefer tea.")
    left = await kept(memory, *(message(number, text) for number, text in enumerate(said, 1)))
    assert left == ["Dislikes surprises", "No longer prefers tea"]
    patient = ContextBuilder(store=memory, config=AssemblyConfig(deadline=PATIENCE))
    builder = patient.for_tenant(TENANT).for_user("Alice")
    context = await builder.with_strategy(UserPreferencesStrategy()).build()
    assert context.user_preferences == "- Dislikes surprises"
    assert [one.text for one in await patient.preferences("Alice", TENANT)] == ["Dislikes surprises"]
    await memory.close()


@pytest.mark.engines
async def test_a_session_takes_back_what_was_stated_in_it(live: Live) -> None:
    session = await live.start(feed_memory=True)
    await live.push(spoken(1, "I prefer long answers, and I prefer tea."))
    await live.shows(1)
    live.clock.advance(130)
    await live.until("it is summarized", raw_recent_buffer=[])
    await live.push(spoken(2, "I no longer prefer tea."))
    await live.shows(2)
    session.end()
    await live.gone(session)
    builder = ContextBuilder.new(live.memory).for_tenant(TENANT).with_strategy(UserPreferencesStrategy())
    context = await builder.for_user("Alice").build()
    assert context.user_preferences == "- Prefers long answers"


@pytest.mark.engines
async def test_the_newest_preference_of_a_session_is_in_the_next_prompt(live: Live) -> None:
    session = await live.start(feed_memory=True)
    await live.push(spoken(1, "Please call me Ann. I prefer long answers."))
    await live.shows(1)
    await live.push(spoken(2, "On second thoughts I prefer short answers."))
    await live.shows(1, 2)
    session.end()
    await live.gone(session)
    builder = ContextBuilder.new(live.memory).for_tenant(TENANT).with_strategy(UserPreferencesStrategy())
    context = await builder.with_token_limit(500).for_user("Alice").for_conversation("tuesday").build()
    prompt = context.format_for_model()
    assert "Prefers short answers" in prompt
    assert "long answers" not in prompt
    assert "Ann" in prompt


@pytest.mark.engines
async def test_what_was_stated_in_the_future_is_replaced_by_what_is_stated_later(live: Live) -> None:
    session = await live.start(feed_memory=True)
    await live.push({**spoken(1, "I prefer long answers."), "timestamp": "2099-01-01T00:00:00"})
    await live.shows(1)
    session.end()
    await live.gone(session)
    live.clock.advance(3_600)
    session = await live.start("tuesday", feed_memory=True)
    later = datetime.fromtimestamp(live.clock.now().wall, UTC).isoformat()
    said = {**spoken(1, "On second thoughts I prefer short answers."), "timestamp": later}
    await live.push(said, session_id="tuesday")
    await live.until("it is heard", session_id="tuesday", received_messages=1)
    session.end()
    await live.gone(session)
    builder = ContextBuilder.new(live.memory).for_tenant(TENANT).with_strategy(UserPreferencesStrategy())
    context = await builder.for_user("Alice").build()
    assert context.user_preferences == "- Prefers short answers"
