"""What a context tells of itself is true, field by field."""

from __future__ import annotations

import re

from prometheus_client import CollectorRegistry

from context_builder.assembly import BuiltContext, ContextBuilderMetrics, HealthState
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain, memories

TURN = {
    "tenant_id": "acme",
    "session_id": "monday",
    "user_id": "kai",
    "system_prompt": "You are helpful.",
    "user_message": "What is it then?",
    "history": [{"role": "user", "content": f"number {place} said this"} for place in range(9)],
}


class Refusing:
    """Fails at whatever tells the number 8."""

    def redact(self, text: str) -> str:
        if "number 8" in text:
            raise ValueError("cannot")
        return text


async def test_every_field_is_what_its_document_says(builder):
    made = builder(somabrain=Brain(memories(3, "a memory of")), store=InMemoryStore(), redactor=Refusing())
    context = await made.build_for_turn(TURN, max_prompt_tokens=75)
    seconds = context.debug.pop("retrieval_seconds")
    assert 0 < seconds < 1
    kept = len(context.history)
    texts = [snippet["text"] for snippet in context.snippets]
    said = [message["content"] for message in context.history]
    assert (texts, 0 < kept < 9) == ([f"a memory of {place}" for place in range(3)], True)
    assert context.debug == {
        "session_id": "monday",
        "tenant_id": "acme",
        "user_id": "kai",
        "somabrain_state": "normal",
        "memory_states": {"somabrain": "normal", "memory": "normal"},
        "memory": "ok",
        "snippet_ids": ["m0", "m1", "m2"],
        "snippet_count": 3,
        "snippet_tokens": sum(len(text.split()) for text in texts),
        "history_count": kept,
        "history_trimmed": 9 - kept,
        "total_tokens": sum(len(text.split()) for text in [*texts, *said]),
        "withheld": 1,
        "max_prompt_tokens": 75,
    }
    assert context.debug["total_tokens"] < context.token_counts["total"] <= 75


async def test_every_field_has_its_document(builder):
    context = await builder(somabrain=Brain(memories(1))).build_for_turn(TURN)
    documented = set(re.findall(r"^    ``(\w+)``:", BuiltContext.__doc__ or "", re.MULTILINE))
    assert documented == {*context.debug, "cached"}


async def test_one_is_told_for_how_long_less_is_asked_and_only_when_that_changes(builder, clock):
    told: list[float] = []
    brain = Brain()
    build = builder(somabrain=brain, on_degraded=told.append).build_for_turn
    brain.failure = DatabaseRejected("not this one")
    await build(TURN)
    assert told == []
    brain.failure = DatabaseUnavailable("away")
    for _ in range(6):
        clock.advance(1)
        await build(TURN)
    assert told == [15.0, 60.0]
    assert (await build(TURN)).debug["somabrain_state"] == HealthState.DOWN


async def test_no_metric_is_there_that_turns_do_not_move(builder):
    registry, brain = CollectorRegistry(), Brain(memories(3))
    made = builder(somabrain=brain, metrics=ContextBuilderMetrics(registry))
    await made.build_for_turn(TURN | {"history": TURN["history"] * 9}, max_prompt_tokens=100)
    brain.failure = DatabaseUnavailable("away")
    await made.build_for_turn(TURN)
    await made.drain()
    unmoved = {
        family.name
        for family in registry.collect()
        if not any(one.value for one in family.samples if not one.name.endswith("_created"))
    }
    assert unmoved == set()
