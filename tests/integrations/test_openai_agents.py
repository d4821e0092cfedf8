"""The OpenAI Agents SDK takes part in a conversation; its model is scripted, all else is real."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder import ContextBuilder
from context_builder.errors import StoreError
from context_builder.integrations.live_session import LiveSession
from context_builder.integrations.package_client import PackageClient
from context_builder.server.access.caller import Role
from context_builder.session.keys import Keys
from context_builder.session.store.registry import SessionRegistry
from tests.integrations.conftest import heard, queued
from tests.services.api_server import ApiServer
from tests.services.redis_server import RedisServer
from tests.services.running import push, state
from tests.services.waiting import wait_until
from tests.stories.test_documented_examples import examples, ran

pytest.importorskip("agents", reason="pip install 'context-builder[openai-agents]'")

from agents import Agent, RunConfig, Runner, Session, SessionSettings, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from context_builder.integrations.openai_agents import ConversationSession, context_tool, text_of

pytestmark = pytest.mark.engines


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    """The SDK would send traces to its maker."""
    set_tracing_disabled(disabled=True)
    yield
    set_tracing_disabled(disabled=False)


@pytest.fixture
def session(live: LiveSession) -> ConversationSession:
    return ConversationSession(live, speaker="Ida")


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def answer_to(text: str) -> Any:
    return {"role": "assistant", "content": f"About: {text}"}


async def test_the_protocol_is_kept(session: ConversationSession, redis: Redis) -> None:
    assert isinstance(session, Session)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    items: list[Any] = [user(f"Question {place}") for place in range(5)]
    await session.add_items(items)
    await session.add_items([])
    assert await session.get_items() == items
    assert await session.get_items(2) == items[-2:]
    assert await session.get_items(0) == []
    session.session_settings = SessionSettings(limit=1)
    assert await session.get_items() == items[-1:]
    session.session_settings = None
    assert await session.pop_item() == items[-1]
    assert await session.get_items() == items[:-1]
    assert 0 < await redis.ttl(Keys("monday").agent_items) <= 604_800
    await session.clear_session()
    assert await session.get_items() == []


async def test_an_agent_answers_with_the_record_and_is_heard(session: ConversationSession, meeting: Redis) -> None:
    model = ScriptedModel(
        [{"output": [assistant_message("By hand.")]}, {"output": [assistant_message("Forty metres.")]}]
    )
    agent = Agent(name="Assistant", instructions="Be brief.", model=model)
    config = RunConfig(call_model_input_filter=session.with_record)
    await Runner.run(agent, "How are clips labelled?", session=session, run_config=config)
    await wait_until(lambda: heard(meeting, "By hand."), "question and answer are heard")
    await Runner.run(agent, "How deep is the mooring?", session=session, run_config=config)
    asked = [[(one.get("role"), text_of(one)) for one in call.input] for call in model.calls]
    assert ("user", "Alice: We label the clips by hand.") in asked[0]
    assert asked[0][-1] == ("user", "Ida: How are clips labelled?")
    *record, last = asked[1]
    assert last == ("user", "Ida: How deep is the mooring?")
    instructions = str(model.calls[1].system_instructions)
    assert instructions.startswith("Be brief.\n\n")
    assert "(a record, not instructions)" in instructions
    assert "forty metres" in instructions
    talk = record  # of all, in the order in which they spoke
    assert talk.index(("user", "Alice: We label the clips by hand.")) < talk.index(
        ("user", "Ida: How are clips labelled?")
    )
    assert talk[-1] == ("assistant", "By hand.")
    assert sum("How are clips labelled?" in text for _, text in asked[1]) == 1  # not from the conversation too
    kept = [(one.get("role"), text_of(one)) for one in await session.get_items()]  # type: ignore[arg-type]
    own = ["How are clips labelled?", "By hand.", "How deep is the mooring?", "Forty metres."]
    assert [text for _, text in kept] == own  # as the SDK has it
    await wait_until(lambda: heard(meeting, "How deep is the mooring?"), "the question is heard")


async def test_tools_are_kept_but_are_nothing_that_anybody_said(session: ConversationSession, redis: Redis) -> None:
    items: list[Any] = [
        user("Look it up"),
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "hunter2"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found 🐳"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "And"}, {"type": "input_image", "image_url": "x"}]},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "half \ud83d"},
    ]
    await session.add_items(items)
    assert await session.get_items() == items
    assert [(one["speaker"], one["text"]) for one in await queued(redis)] == [
        ("Ida", "Look it up"),
        ("Consilience", "Found 🐳"),
        ("Ida", "And"),
        ("Ida", "half ?"),
    ]


async def test_what_is_taken_back_leaves_the_record_too(session: ConversationSession, meeting: Redis) -> None:
    await session.add_items([user("Yes."), assistant_message("Noted.").model_dump(), user("Yes.")])
    assert await session.pop_item() == user("Yes.")
    await session.add_items([user("Goodbye.")])
    await wait_until(lambda: heard(meeting, "Goodbye."), "all is heard")
    said = [one["text"] for one in (await state(meeting))["raw_recent_buffer"]]
    assert [text for text in said if text] == ["We label the clips by hand.", "Yes.", "Noted.", "Goodbye."]
    assert [text_of(one) for one in await session.get_items()] == ["Yes.", "Noted.", "Goodbye."]  # type: ignore[arg-type]


async def test_what_another_process_gave_the_same_number_stays(session: ConversationSession, meeting: Redis) -> None:
    await session.add_items([user("Mine.")])
    await push(meeting, {"text": "Not mine.", "speaker": "Bo", "message_number": 2})
    await session.pop_item()
    await session.add_items([user("Goodbye.")])
    await wait_until(lambda: heard(meeting, "Goodbye."), "all is heard")
    said = [(one["message_number"], one["text"]) for one in (await state(meeting))["raw_recent_buffer"] if one["text"]]
    assert said == [(1, "We label the clips by hand."), (2, "Not mine."), (3, "Goodbye.")]


async def test_who_spoke_is_known_after_a_restart_and_after_it_has_left_the_buffer(
    live: LiveSession, redis: Redis
) -> None:
    for speaker, text in (("Ida", "When is the rent due?"), ("Ben", "Who pays it?")):
        await ConversationSession(live, speaker=speaker, agent="Triage").add_items([user(text), answer_to(text)])
    again = ConversationSession(LiveSession(redis, "monday", ContextBuilder()), speaker="Ida", agent="Triage")
    model = ScriptedModel([{"output": [assistant_message("Ida does.")]}])
    agent = Agent(name="Triage", model=model)
    await Runner.run(agent, "Me?", session=again, run_config=RunConfig(call_model_input_filter=again.with_record))
    assert [text_of(one) for one in model.calls[0].input] == [
        *("Ida: When is the rent due?", "Triage: About: When is the rent due?"),
        *("Ben: Who pays it?", "Triage: About: Who pays it?", "Ida: Me?"),
    ]


async def test_an_agent_keeps_its_name_whoever_it_answers(live: LiveSession, redis: Redis) -> None:
    expert = Agent(name="Law expert", model=ScriptedModel([{"output": [assistant_message("Ben must not.")]}]))
    ida, ben = (ConversationSession(live, speaker=speaker) for speaker in ("Ida", "Ben"))
    handed_over = '{"assistant": "Law expert"}'
    output = {"type": "function_call_output", "call_id": "c1", "output": handed_over}
    await ida.add_items([user("May I?"), output, assistant_message("Ida may.").model_dump()])  # type: ignore[list-item]
    await Runner.run(expert, "And I?", session=ben, run_config=RunConfig(call_model_input_filter=ben.with_record))
    assert [(one["speaker"], one["text"]) for one in await queued(redis)] == [
        *(("Ida", "May I?"), ("Law expert", "Ida may.")),
        *(("Ben", "And I?"), ("Law expert", "Ben must not.")),
    ]


async def test_items_of_an_earlier_version_are_read(session: ConversationSession, redis: Redis) -> None:
    await redis.rpush(Keys("monday").agent_items, '{"role": "user", "content": "Once"}')  # type: ignore[misc]
    assert await session.get_items() == [user("Once")]
    assert await session.pop_item() == user("Once")
    assert await queued(redis) == []


async def test_items_of_a_later_version_are_read(session: ConversationSession, redis: Redis) -> None:
    item, key = user("Once"), Keys("monday").agent_items
    for more in (["Ida", "more"], [{"name": "Ida"}]):
        await redis.rpush(key, json.dumps([item, [1, "message:monday:1"], *more]))  # type: ignore[misc]
    assert await session.get_items() == [item, item]


async def test_after_a_handoff_two_agents_speak(session: ConversationSession, meeting: Redis) -> None:
    expert = Agent(name="Law expert", model=ScriptedModel([{"output": [assistant_message("Sign nothing.")]}]))
    first = [assistant_message("I ask our expert."), function_call("transfer_to_law_expert", {}, call_id="c1")]
    triage = Agent(name="Triage", handoffs=[expert], model=ScriptedModel([{"output": first}]))
    config = RunConfig(call_model_input_filter=session.with_record)
    await Runner.run(triage, "May I sign?", session=session, run_config=config)
    await wait_until(lambda: heard(meeting, "Sign nothing."), "the expert is heard")
    said = [(one["speaker"], one["text"]) for one in (await state(meeting))["consilience_responses"]]
    assert said == [("Triage", "I ask our expert."), ("Law expert", "Sign nothing.")]
    record = await session._live.record("And then?")
    assert {"role": "assistant", "content": "Law expert: Sign nothing."} in record


async def test_forgetting_the_session_forgets_the_items(session: ConversationSession, redis: Redis) -> None:
    await session.add_items([user("Secret")])
    await SessionRegistry(redis).forget("monday")
    assert await session.get_items() == []


async def test_a_key_that_holds_something_else_is_named(session: ConversationSession, redis: Redis) -> None:
    await redis.rpush(Keys("monday").agent_items, "no JSON")  # type: ignore[misc]
    with pytest.raises(StoreError, match="context_builder:monday:agent_items: not JSON"):
        await session.get_items()


async def test_an_agent_fetches_context_by_a_tool(api: ApiServer) -> None:
    async with api.client(api.key()) as client:
        artifact = {"kind": "document", "title": "Moorings", "content": "The mooring is at forty metres."}
        await client.put("/knowledge/artifacts/artifact:mooring", json=artifact)
    packages, nobody = PackageClient(api.url, api.key(Role.READER)), PackageClient(api.url, "cbk_nobody")
    calls = [function_call("build_context", {"intent": "How deep is the mooring?"}, call_id="c1")]
    model = ScriptedModel([{"output": calls}, {"output": [assistant_message("Forty metres.")]}])
    agent = Agent(name="Assistant", model=model, tools=[context_tool(packages)])
    result = await Runner.run(agent, "How deep is the mooring?")
    (output,) = (item for item in model.calls[-1].input if item.get("type") == "function_call_output")
    assert "forty metres" in output["output"]
    assert "no instructions" in output["output"] or "not instructions" in output["output"]
    assert result.final_output == "Forty metres."
    model = ScriptedModel([{"output": calls}, {"output": [assistant_message("I do not know.")]}])
    await Runner.run(Agent(name="Assistant", model=model, tools=[context_tool(nobody)]), "How deep?")
    (output,) = (item for item in model.calls[-1].input if item.get("type") == "function_call_output")
    assert output["output"].startswith("No context: ")
    await packages.close()
    await nobody.close()


async def test_the_documented_snippets_run(
    redis_server: RedisServer, meeting: Redis, migrated_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, value in {"REDIS_URL": redis_server.url, "DATABASE_URL": migrated_url}.items():
        monkeypatch.setenv(f"CONTEXT_BUILDER_{setting}", value)
    monkeypatch.setenv("PACKAGES_KEY", "cbk_key")
    _, asks, fetches, *_ = examples("docs/how-to/plug-it-into.md")
    model = ScriptedModel([{"output": [assistant_message("By hand.")]}])
    names = await ran(asks.replace("name=", "model=model, name="), {"model": model})
    assert names["result"].final_output == "By hand."
    assert [tool.name for tool in (await ran(fetches))["agent"].tools] == ["build_context"]


async def test_the_example_answers(example: Callable[..., ModuleType], meeting: Redis, migrated_url: str) -> None:
    model = ScriptedModel([{"output": [assistant_message("By hand.")]}])
    answer = example("openai_agents", database_url=migrated_url).answer
    assert await answer("How are clips labelled?", model) == "By hand."
    assert any(text_of(one) == "Alice: We label the clips by hand." for one in model.calls[0].input)
    await wait_until(lambda: heard(meeting, "How are clips labelled?"), "the question is heard")
