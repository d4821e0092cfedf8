"""How the memory's failures change what is asked of it."""

from __future__ import annotations

import asyncio

import pytest

from context_builder.assembly import AssemblyConfig, HealthState
from context_builder.assembly.health import Health
from context_builder.clock import SystemClock
from context_builder.errors import DatabaseRejected, DatabaseUnavailable
from context_builder.memory.memory import Memory
from context_builder.testing import InMemoryStore
from tests.assembly.turns import Brain, memories

TURN = {"user_message": "what is it", "session_id": "s", "tenant_id": "t"}


def test_a_failure_degrades_for_fifteen_seconds():
    health = Health()
    assert health.failed(0.0) == 15.0
    assert health.state(14.9) is HealthState.DEGRADED
    assert health.state(15.0) is HealthState.NORMAL


def test_a_success_ends_it_at_once():
    health = Health()
    health.failed(0.0)
    health.succeeded(1.0)
    assert health.state(1.0) is HealthState.NORMAL


def test_the_fifth_failure_takes_it_down_for_sixty_seconds_and_then_it_is_degraded():
    health = Health()
    assert [health.failed(float(now)) for now in range(5)] == [15.0, None, None, None, 60.0]
    assert health.state(63.9) is HealthState.DOWN
    assert health.state(64.0) is HealthState.DEGRADED
    assert health.state(78.9) is HealthState.DEGRADED
    assert health.state(79.0) is HealthState.NORMAL
    assert [health.failed(now) for now in (80.0, 81.0, 82.0, 83.0, 84.0)] == [15.0, None, None, None, 60.0]


def test_calls_that_fail_together_are_one_failure():
    health = Health()
    assert [health.failed(1.0 + n / 100, began=0.9) for n in range(100)] == [15.0, *[None] * 99]
    assert health.state(2.0) is HealthState.DEGRADED
    assert [health.failed(now + 0.5, began=now) for now in (2.0, 3.0, 4.0, 5.0)] == [None, None, None, 60.0]


async def test_a_burst_of_turns_takes_no_memory_away(builder):
    store = InMemoryStore()
    store.gate.clear()
    burst = builder(store=store, clock=SystemClock(), config=AssemblyConfig(deadline=0.02))
    await asyncio.gather(*(burst.build_for_turn(TURN) for _ in range(20)))
    store.gate.set()
    assert (await burst.build_for_turn(TURN)).debug["somabrain_state"] == "degraded"


def test_what_was_under_way_when_it_went_down_changes_nothing():
    health = Health()
    for now in range(5):
        health.failed(float(now))
    health.succeeded(5.0)
    assert health.failed(6.0) is None
    assert health.state(63.0) is HealthState.DOWN


async def test_a_turn_asks_for_eight_then_three_then_nothing(builder, clock):
    brain, told = Brain(memories(20)), []
    build = builder(somabrain=brain, on_degraded=told.append).build_for_turn
    brain.failure = ConnectionError("gone")
    states = [(await build(TURN)).debug["somabrain_state"] for _ in range(6)]
    assert states == ["normal", *["degraded"] * 4, "down"]
    assert [payload["top_k"] for payload in brain.asked] == [8, 3, 3, 3, 3]
    assert told == [15.0, 60.0]
    brain.failure = None
    clock.advance(60.0)
    context = await build(TURN)
    assert (context.debug["somabrain_state"], len(context.snippets)) == ("degraded", 3)
    assert len((await build(TURN)).snippets) == 8


async def test_a_dead_memory_does_not_silence_a_healthy_one(builder):
    brain, store = Brain(), InMemoryStore()
    await store.remember("t", [Memory("m", "what it is")])
    brain.failure = ConnectionError("gone")
    build = builder(somabrain=brain, store=store).build_for_turn
    contexts = [await build(TURN) for _ in range(7)]
    assert [context.debug["snippet_ids"] for context in contexts] == [["m"]] * 7
    assert len(brain.asked) == 5
    assert [search.limit for search in store.searches] == [8] * 7
    assert contexts[-1].debug["memory"] == "somabrain: not asked: down"
    assert contexts[-1].debug["memory_states"] == {"somabrain": "down", "memory": "normal"}


async def test_a_context_without_memory_says_why(builder):
    brain = Brain()
    brain.failure = ConnectionError("gone")
    context = await builder(somabrain=brain).build_for_turn(TURN)
    assert context.snippets == []
    assert context.debug["memory"] == "somabrain: ConnectionError"


async def test_a_given_provider_decides(builder):
    told = []
    brain = Brain(memories(20))
    make = builder(somabrain=brain, health_provider=lambda: HealthState.DEGRADED, on_degraded=told.append)
    assert len((await make.build_for_turn(TURN)).snippets) == 3
    down = builder(somabrain=brain, health_provider=lambda: "down")
    assert (await down.build_for_turn(TURN)).debug["memory"] == "not asked: down"


async def test_faults_of_provider_and_listener_do_not_reach_the_turn(builder):
    def broken(*_: object) -> HealthState:
        raise RuntimeError("monitor is gone")

    brain = Brain()
    brain.failure = ConnectionError("gone")
    context = await builder(somabrain=brain, health_provider=broken, on_degraded=broken).build_for_turn(TURN)
    assert context.debug["somabrain_state"] == "normal"


async def test_a_refused_request_does_not_speak_against_the_memory(builder):
    store = InMemoryStore()
    build = builder(store=store).build_for_turn
    store.failure = DatabaseRejected("no such tenant")
    await build(TURN)
    assert (await build(TURN)).debug["somabrain_state"] == "normal"
    store.failure = DatabaseUnavailable("circuit open")
    await build(TURN)
    assert (await build(TURN)).debug["somabrain_state"] == "degraded"


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_hanging_memory_costs_the_deadline_and_no_more(builder, stubborn):
    over = asyncio.Event()

    class Hanging(Brain):
        async def context_evaluate(self, payload):
            try:
                await over.wait()
            except asyncio.CancelledError:
                if stubborn:
                    await over.wait()
                raise

    made = builder(somabrain=Hanging(), config=AssemblyConfig(deadline=0.05))
    context = await made.build_for_turn(TURN)
    assert context.debug["memory"] == "somabrain: no answer within 50 ms"
    assert (await made.build_for_turn(TURN)).debug["somabrain_state"] == "degraded"
    over.set()
