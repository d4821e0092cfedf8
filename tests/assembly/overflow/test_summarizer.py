"""What leaves the prompt is kept in short."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.assembly import AssemblyConfig
from context_builder.assembly.overflow import extract
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain

HISTORY = [{"role": role, "content": f"{role} says {n}"} for n in range(10) for role in ("user", "assistant")]
TURN = {"tenant_id": "t", "session_id": "s", "persona_id": "p", "user_message": "and now", "history": HISTORY}


async def test_a_trimmed_history_is_remembered_as_documented(builder, clock):
    brain = Brain()
    made = builder(somabrain=brain)
    context = await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.drain()
    trimmed = len(HISTORY) - len(context.history)
    text = " | ".join(f"{one['role']}: {one['content']}" for one in HISTORY[:trimmed])
    assert brain.remembered == [
        {
            "tenant_id": "t",
            "memories": [
                {
                    "type": "session_summary",
                    "text": text,
                    "session_id": "s",
                    "persona_id": "p",
                    "tags": ["session_summary", "auto", "context_builder"],
                    "metadata": {
                        "trimmed_from": 20,
                        "trimmed_to": len(context.history),
                        "timestamp": "2023-11-14T22:13:20+00:00",
                    },
                }
            ],
        }
    ]


async def test_a_store_keeps_it_with_the_same_tags(builder):
    store = InMemoryStore()
    made = builder(store=store)
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.drain()
    (memory,) = store.kept["t"].values()
    assert (memory.kind, memory.session_id) == ("session_summary", "s")
    assert memory.tags == ("session_summary", "auto", "context_builder")


async def test_the_turn_does_not_wait_for_it_and_the_same_summary_is_kept_once(builder):
    store = InMemoryStore()
    store.gate.clear()
    made = builder(store=store, config=AssemblyConfig(deadline=0.01))
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    assert store.kept == {}
    store.gate.set()
    await made.drain()
    assert len(store.kept["t"]) == 1


@pytest.mark.parametrize("window", [None, 60])
async def test_later_turns_go_on_where_the_last_summary_ends(builder, window):
    store, chars = InMemoryStore(), 80
    made = builder(store=store, config=AssemblyConfig(summary_chars=chars))
    talk = [{"role": "user", "content": f"{'ok' if n % 3 else 'fine'} {n // 2}"} for n in range(200)]
    for end in range(40, len(talk), 2):
        given = talk[:end] if window is None else talk[max(end - window, 0) : end]
        await made.build_for_turn(TURN | {"history": given}, max_prompt_tokens=150)
        await made.drain()
    texts = [memory.text for memory in store.kept["t"].values()]
    told = " | ".join(texts).split(" | ")
    assert told == [f"user: {message['content']}" for message in talk[: len(told)]]
    assert len(told) > 100
    assert all(chars - 15 < len(text) <= chars for text in texts)


@pytest.mark.parametrize("step", [1, 2, 4])
async def test_nothing_is_lost_of_a_history_that_comes_as_its_newest_messages_alone(builder, step):
    store = InMemoryStore()
    made = builder(store=store)
    talk = [{"role": "user", "content": f"message {n}"} for n in range(120)]
    for end in range(20, len(talk), step):
        await made.build_for_turn(TURN | {"history": talk[end - 20 : end]}, max_prompt_tokens=60)
        await made.drain()
    told = " | ".join(memory.text for memory in store.kept["t"].values()).split(" | ")
    assert told == [f"user: {message['content']}" for message in talk[: len(told)]]
    assert len(told) > 90


async def test_where_much_leaves_each_turn_several_summaries_keep_up_with_it(builder):
    store = InMemoryStore()
    made = builder(store=store, config=AssemblyConfig(summary_chars=60))
    talk = [{"role": "user", "content": f"number {n} of a talk that has many"} for n in range(120)]
    for end in range(20, len(talk), 3):
        await made.build_for_turn(TURN | {"history": talk[end - 20 : end]}, max_prompt_tokens=100)
        await made.drain()
    told = {memory.text.removeprefix("user: ") for memory in store.kept["t"].values()}
    assert {message["content"] for message in talk[:100]} <= told


async def test_a_summary_that_could_not_be_kept_is_tried_again(builder):
    brain = Brain()
    made = builder(somabrain=brain)
    brain.failure = ConnectionError("gone")
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.drain()
    brain.failure = None
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.drain()
    assert len(brain.remembered) == 2


async def test_a_summary_that_found_no_room_is_kept_by_a_later_turn(builder):
    store = InMemoryStore()
    store.gate.clear()
    made = builder(store=store, config=AssemblyConfig(deadline=0.01, background_max=1))
    await made.build_for_turn(TURN | {"session_id": "another"}, max_prompt_tokens=60)
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    store.gate.set()
    await made.drain()
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.drain()
    assert {memory.session_id for memory in store.kept["t"].values()} == {"another", "s"}


async def test_a_memory_that_fails_does_not_keep_another_from_remembering(builder):
    brain, store = Brain(), InMemoryStore()
    made = builder(somabrain=brain, store=store)
    brain.failure = ConnectionError("gone")
    for _ in range(7):
        await made.build_for_turn(TURN, max_prompt_tokens=60)
        await made.drain()
    assert len(store.kept["t"]) == 1
    assert len(brain.remembered) == 5


async def test_a_summarizer_that_hangs_gives_way_to_the_extract(builder):
    async def hang(messages):
        await asyncio.Event().wait()

    brain = Brain()
    made = builder(somabrain=brain, summarizer=hang, config=AssemblyConfig(background_timeout=0.5))
    await made.build_for_turn(TURN, max_prompt_tokens=60)
    await made.drain()
    assert brain.remembered[0]["memories"][0]["text"].startswith("user: user says 0")


async def test_an_analyst_may_sum_up_and_the_extract_stands_in_for_it(builder):
    async def sum_up(messages):
        return f"{len(messages)} messages of small talk"

    async def fail(messages):
        raise ConnectionError

    for summarizer, begins in ((sum_up, "14 messages"), (fail, "user: user says 0")):
        brain = Brain()
        made = builder(somabrain=brain, summarizer=summarizer)
        await made.build_for_turn(TURN, max_prompt_tokens=60)
        await made.drain()
        assert brain.remembered[0]["memories"][0]["text"].startswith(begins)


async def test_nothing_is_kept_when_nothing_was_trimmed_or_the_setting_is_off(builder):
    brain = Brain()
    await builder(somabrain=brain).build_for_turn(TURN, max_prompt_tokens=4000)
    await builder(somabrain=brain, config=AssemblyConfig(store_summaries=False)).build_for_turn(TURN, 60)
    await asyncio.sleep(0)
    assert brain.remembered == []


def test_an_extract_has_at_most_so_many_characters():
    text, taken = extract([{"role": "user", "content": "x" * 5000}] * 3, 1024)
    assert (len(text), taken) == (1024, 1)
    assert extract([{"role": "user", "content": " "}, {"role": "user", "content": None}]) == ("", 2)


def test_an_extract_has_the_texts_of_a_message_in_parts():
    seen = [
        {"type": "text", "text": "look at"},
        {"type": "image_url", "image_url": {}},
        {"type": "text", "text": "this"},
    ]
    assert extract([{"role": "user", "content": seen}, {"role": "user", "content": seen[1:2]}]) == (
        "user: look at this",
        2,
    )
