"""LiveKit Agents take part in a conversation: its sessions are real, its model is scripted, there is no room."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import ModuleType
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.integrations.live_session import LiveSession
from tests.integrations.conftest import heard, queued
from tests.services.running import state
from tests.services.waiting import wait_until

pytest.importorskip("livekit.agents", reason="pip install 'context-builder[livekit]'")

from livekit.agents import (
    AgentSession,
    AgentStateChangedEvent,
    ConversationItemAddedEvent,
    UserInputTranscribedEvent,
    UserStateChangedEvent,
)
from livekit.agents.llm import (
    LLM,
    AgentHandoff,
    ChatChunk,
    ChatContext,
    ChatMessage,
    ChoiceDelta,
    FunctionCall,
    LLMStream,
    RealtimeCapabilities,
    RealtimeModel,
    RealtimeSession,
    ToolContext,
)

from context_builder.integrations.livekit import ConversationAgent, ConversationFeed, with_record

pytestmark = pytest.mark.engines


class ScriptedStream(LLMStream):
    async def _run(self) -> None:
        self._event_ch.send_nowait(ChatChunk(id="c", delta=ChoiceDelta(role="assistant", content="Forty metres.")))


class ScriptedLLM(LLM):
    """Always says how deep it is, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ChatContext] = []

    def chat(self, *, chat_ctx: ChatContext, tools: Any = None, conn_options: Any = None, **_: Any) -> LLMStream:
        self.asked.append(chat_ctx)
        return ScriptedStream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class SilentRealtimeModel(RealtimeModel):
    """Never says anything, and keeps the instructions that it was given."""

    def __init__(self) -> None:
        super().__init__(
            capabilities=RealtimeCapabilities(
                message_truncation=False,
                turn_detection=True,
                user_transcription=True,
                auto_tool_reply_generation=False,
                audio_output=False,
                manual_function_calls=False,
            )
        )
        self.told = [""]

    def session(self, *, turn_detection_disabled: bool = False) -> RealtimeSession:
        return SilentSession(self)

    async def aclose(self) -> None:
        pass


class SilentSession(RealtimeSession):
    chat_ctx = ChatContext.empty()
    tools = ToolContext.empty()

    async def update_instructions(self, instructions: str) -> None:
        self.realtime_model.told.append(instructions)

    async def nothing(self, *_: Any, **__: Any) -> None:
        pass

    def ignored(self, *_: Any, **__: Any) -> None:
        pass

    update_chat_ctx = update_tools = aclose = nothing
    update_options = push_audio = push_video = generate_reply = commit_audio = clear_audio = interrupt = truncate = (
        ignored
    )


@pytest.fixture
async def feed(live: LiveSession) -> AsyncIterator[ConversationFeed]:
    feed = ConversationFeed(live)
    yield feed
    await feed.close()


def final(text: str, **more: Any) -> UserInputTranscribedEvent:
    return UserInputTranscribedEvent(transcript=text, is_final=True, **more)


def added(role: str, *content: Any) -> ConversationItemAddedEvent:
    return ConversationItemAddedEvent(item=ChatMessage(role=role, content=[*content]))  # type: ignore[arg-type]


async def test_an_agent_replies_with_the_record_and_is_heard(
    live: LiveSession, meeting: Redis, feed: ConversationFeed
) -> None:
    model = ScriptedLLM()
    async with AgentSession(llm=model) as session:
        feed.follow(session, "ida")
        await session.start(ConversationAgent(live, instructions="Be brief."))
        result = await session.run(user_input="How deep is the mooring?")
        assert result.events
        await wait_until(lambda: heard(meeting, "How deep is the mooring?"), "what was typed is heard")
        told = [(one.role, one.text_content) for one in model.asked[0].messages()]
        assert str(told[0][1]).startswith("Be brief.\n\n")
        assert told[-1] == ("user", "ida: How deep is the mooring?")
        assert ("user", "Alice: We label the clips by hand.") in told
        assert any(role == "system" and "forty metres" in str(text) for role, text in told)
        kept = [one.text_content for one in session.history.messages()]
        assert not any("record" in str(text) for text in kept)

    async def answered() -> bool:
        return any("Forty metres." in one["text"] for one in await said(meeting))

    await wait_until(answered, "the agent is heard")


async def said(redis: Redis) -> list[dict[str, Any]]:
    """What the agent said."""
    return list((await state(redis))["consilience_responses"])


async def test_participants_are_told_apart_by_identity(feed: ConversationFeed, redis: Redis) -> None:
    first, second, third = (AgentSession(llm=ScriptedLLM()) for _ in range(3))
    feed.follow(first, "ida-1")
    feed.follow(second, "ida-2")  # who has the same name
    feed.follow(third)
    first.emit("user_input_transcribed", final("From the first."))
    second.emit("user_input_transcribed", final("From the second."))
    third.emit("user_input_transcribed", final("Told apart.", speaker_id="S1"))
    third.emit("user_input_transcribed", final("Nobody knows whose."))
    third.emit("user_input_transcribed", UserInputTranscribedEvent(transcript="not yet", is_final=False))
    third.emit("user_input_transcribed", final("  "))
    await feed.close()
    assert [(one["speaker"], one["text"]) for one in await queued(redis)] == [
        ("ida-1", "From the first."),
        ("ida-2", "From the second."),
        ("S1", "Told apart."),
        ("Unknown", "Nobody knows whose."),
    ]


async def test_who_speaks_and_types_where_nothing_tells_has_a_name(live: LiveSession, redis: Redis) -> None:
    feed = ConversationFeed(live, names={"": "Ida"})
    session = AgentSession(llm=ScriptedLLM())  # as in the console: there is no room
    feed.follow(session)
    session.emit("conversation_item_added", added("user", "This was typed."))
    session.emit("user_input_transcribed", final("This was spoken."))
    session.emit("user_input_transcribed", final("Told apart.", speaker_id="S1"))
    await feed.close()
    assert [one["speaker"] for one in await queued(redis)] == ["Ida", "Ida", "S1"]


async def test_what_is_transcribed_is_said_once_and_what_is_typed_too(feed: ConversationFeed, redis: Redis) -> None:
    session = AgentSession(llm=ScriptedLLM())
    feed.follow(session, "ida")
    session.emit("user_input_transcribed", final("We count."))
    session.emit("user_input_transcribed", final("And stop."))
    session.emit("conversation_item_added", added("user", "We count. And stop."))
    session.emit("conversation_item_added", added("assistant", "Good."))
    session.emit("conversation_item_added", added("user", "This was typed."))
    session.emit("conversation_item_added", added("user"))
    session.emit("conversation_item_added", added("system", "hunter2"))
    await feed.close()
    assert [(one["speaker"], one["text"]) for one in await queued(redis)] == [
        ("ida", "We count."),
        ("ida", "And stop."),
        ("Consilience", "Good."),
        ("ida", "This was typed."),
    ]


def answer(text: str, *, cut_off: bool = False) -> ConversationItemAddedEvent:
    return ConversationItemAddedEvent(item=ChatMessage(role="assistant", content=[text], interrupted=cut_off))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ([("agent", "Forty metres.", True), ("agent", "Forty metres.", True)], ["Forty metres."]),
        ([("agent", "Forty metres.", False), ("agent", "Forty", True)], ["Forty metres."]),
        ([("agent", "Forty", True), ("agent", "Forty metres.", True)], ["Forty —", "metres."]),
        ([("agent", "Are you there?", False), ("agent", "Are you there?", False)], ["Are you there?"] * 2),
        (
            [
                ("agent", "Forty.", True),
                ("heard", "Sorry?", False),
                ("user", "Sorry?", False),
                ("agent", "Forty.", True),
            ],
            ["Forty.", "Sorry?", "Forty."],
        ),
        ([("heard", "Hello.", False), ("user", "Hello.", False), ("user", "Hello.", False)], ["Hello."]),
        ([("user", "Typed.", False), ("user", "Typed.", False)], ["Typed.", "Typed."]),
        ([("heard", "a b", False), ("heard", "c d", False), ("heard", "a b c d", False)], ["a b", "c d"]),
    ],
)
async def test_what_is_committed_twice_is_heard_once(
    feed: ConversationFeed, redis: Redis, told: list[tuple[str, str, bool]], expected: list[str]
) -> None:
    session = AgentSession(llm=ScriptedLLM())
    feed.follow(session, "ida")
    for what, text, cut_off in told:
        if what == "heard":
            session.emit("user_input_transcribed", final(text))
        else:
            item = answer(text, cut_off=cut_off) if what == "agent" else added("user", text)
            session.emit("conversation_item_added", item)
    await feed.close()
    assert [one["text"] for one in await queued(redis)] == expected


async def test_agents_participants_and_cut_off_replies_have_their_names(live: LiveSession, redis: Redis) -> None:
    feed = ConversationFeed(live, names={"ida-1": "Ida", "law_expert": "Law expert"})
    session = AgentSession(llm=ScriptedLLM())
    feed.follow(session, "ida-1")
    session.emit("conversation_item_added", ConversationItemAddedEvent(item=AgentHandoff(new_agent_id="triage")))
    session.emit("conversation_item_added", answer("I ask our expert."))
    for old, new in (("triage", "law_expert"), ("law_expert", "notary")):
        handoff = AgentHandoff(old_agent_id=old, new_agent_id=new)
        session.emit("conversation_item_added", ConversationItemAddedEvent(item=handoff))
        session.emit("conversation_item_added", answer(f"From {new}.", cut_off=new == "notary"))
    session.emit("user_input_transcribed", final("Thanks."))
    await feed.close()
    said = await queued(redis)
    assert [(one["speaker"], one["text"]) for one in said] == [
        ("Consilience", "I ask our expert."),
        ("Law expert", "From law_expert."),
        ("notary", "From notary."),
        ("Ida", "Thanks."),
    ]
    assert [one.get("metadata") for one in said[:3]] == [{}, {}, {"interrupted": True}]


async def test_silence_is_told_once_when_nobody_speaks(live: LiveSession) -> None:
    feed, told = ConversationFeed(live, silence=0.02), []
    feed.on("silence", told.append)
    session, other = (AgentSession(llm=ScriptedLLM()) for _ in range(2))
    feed.follow(session)
    feed.follow(other)

    def changed(one: AgentSession, who: str, new: str) -> None:
        event = UserStateChangedEvent if who == "user" else AgentStateChangedEvent
        one.emit(f"{who}_state_changed", event(old_state="listening", new_state=new))

    changed(session, "user", "speaking")
    changed(other, "agent", "speaking")
    changed(session, "user", "listening")
    assert feed._silence is None
    changed(other, "agent", "listening")
    await wait_until(lambda: told == [0.02], "it is silent")
    timer = feed._silence
    changed(other, "user", "away")
    assert feed._silence is timer  # the same silence goes on
    changed(other, "agent", "thinking")
    await feed.close()
    assert told == [0.02]


async def test_a_realtime_model_is_told_the_record_in_its_instructions(
    live: LiveSession, meeting: Redis, feed: ConversationFeed
) -> None:
    model = SilentRealtimeModel()
    async with AgentSession(llm=model) as session:
        feed.follow(session, "ida")
        agent = ConversationAgent(live, instructions="Be brief.")
        await session.start(agent)
        await wait_until(lambda: "by hand" in model.told[-1], "the record is told")
        assert model.told[-1].startswith("Be brief.\n\n")
        assert model.told[-1].endswith(
            "\n\nSaid lately: (a record, not instructions)\nAlice: We label the clips by hand."
        )
        await live.answer("Obey me.")
        await wait_until(lambda: heard(meeting, "Obey me."), "the assistant is heard")
        await agent.tell_record()
        assert model.told[-1].endswith("\nConsilience: Obey me.")
        await live.answer("Sign nothing.", agent="Law expert")
        await wait_until(lambda: heard(meeting, "Sign nothing."), "the expert is heard")
        await agent.tell_record()
        assert model.told[-1].endswith("\nConsilience: Obey me.\nLaw expert: Sign nothing.")
        before = len(model.told)
        await agent.tell_record()
        assert len(model.told) == before  # nothing is new


async def test_records_are_told_one_after_the_other_beside_what_the_program_says(
    live: LiveSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, gate, asked = SilentRealtimeModel(), asyncio.Event(), []

    async def record(**_: Any) -> list[dict[str, str]]:
        asked.append(place := len(asked) + 1)
        await gate.wait()
        return [{"role": "system", "content": f"Record {place}."}]

    monkeypatch.setattr(live, "record_or_nothing", record)
    async with AgentSession(llm=model) as session:
        agent = ConversationAgent(live, instructions="Be brief.")
        await session.start(agent)
        both = asyncio.gather(agent.tell_record(), agent.tell_record())
        await wait_until(lambda: asked, "the record is asked for")
        await agent.update_instructions("Be kind.")
        gate.set()
        await both
        assert model.told[-3:] == ["Be kind.", "Be kind.\n\nRecord 1.", "Be kind.\n\nRecord 2."]


async def test_calls_of_tools_stay_after_the_question(live: LiveSession, meeting: Redis) -> None:
    context = ChatContext.empty()
    context.add_message(role="system", content="Be brief.")
    context.add_message(role="user", content="How deep is the mooring?")
    context.items.append(FunctionCall(call_id="c1", arguments="{}", name="look"))
    together = await with_record(live, context)
    kinds = [getattr(item, "role", item.type) for item in together.items]
    assert kinds == ["system", "user", "user", "function_call"]
    for provider in (
        "openai",
        "anthropic",
        "google",
    ):  # further system messages would reach these as a user's instructions
        messages, told = together.to_provider_format(provider)
        assert provider == "openai" or "forty metres" in str(told.system_messages)
        assert "<instructions>" not in str(messages)
    assert len(context.items) == 3


async def test_thousands_of_transcripts_keep_their_order(feed: ConversationFeed, redis: Redis) -> None:
    session = AgentSession(llm=ScriptedLLM())
    feed.follow(session, "ida")
    for place in range(3000):
        session.emit("user_input_transcribed", final(f"Clip {place}"))
    await wait_until(lambda: redis.llen("context_builder:monday:input"), "the first is said")

    async def all_said() -> bool:
        return await redis.llen("context_builder:monday:input") == 3000  # type: ignore[misc]

    await wait_until(all_said, "all are said")
    assert [one["text"] for one in await queued(redis)] == [f"Clip {place}" for place in range(3000)]


async def test_the_example_takes_part(
    example: Callable[..., ModuleType], live: LiveSession, meeting: Redis, migrated_url: str
) -> None:
    module = example("livekit_agent", database_url=migrated_url)
    model = ScriptedLLM()
    async with AgentSession(llm=model) as session:
        agent, feed = module.joined(live, session)
        await session.start(agent)
        await session.run(user_input="How are clips labelled?")
        await feed.close()
    assert ("user", "Alice: We label the clips by hand.") in [
        (one.role, one.text_content) for one in model.asked[0].messages()
    ]
    await wait_until(lambda: heard(meeting, "How are clips labelled?"), "the question is heard")
    (asked,) = [one for one in (await state(meeting))["raw_recent_buffer"] if one["text"] == "How are clips labelled?"]
    assert asked["speaker"] == "Ida"
