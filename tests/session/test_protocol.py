"""A model of the storage protocol: commit, lease, takeover, fall-back and forgetting as one state machine.

Real sessions run the real scripts on a real Redis, one command at a time, so that a freeze may come between any two and
any answer may be lost; Redis may return to a copy of itself, or be replaced by an empty one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from typing import TypeVar

import pytest
import stamina
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from redis import Redis

from context_builder.session.store.registry import MARKS, SessionRegistry
from context_builder.storage.redis import client_for
from tests.services.redis_server import RedisServer
from tests.session.stepping import LOAD, Copy, Fate, Owner, TimelessLoop, copy_of, put_back
from tests.session.witness import KEYS, YES, Truth, Witness, text_of

pytestmark = pytest.mark.engines

OWNERS = 3
"""So many processes run the session or want to at most."""

COMMANDS = 300
"""More than an owner needs for anything."""

which = st.integers(0, 5)
kinds = st.lists(st.sampled_from(["numbered", "unnumbered", "yes", "broken"]), min_size=1, max_size=5)
T = TypeVar("T")


def one_of(things: Sequence[T], which: int) -> T:
    return things[which % len(things)]


class Protocol(RuleBasedStateMachine):
    """``url`` leads to the Redis; ``hosted`` owners share what is periodic with the other sessions of their process."""

    url = ""
    hosted = False

    def __init__(self) -> None:
        super().__init__()
        self.loop = TimelessLoop()
        self.redis = Redis.from_url(self.url)
        self.redis.flushall()
        for script in resources.files("context_builder.session.store").iterdir():
            if script.name.endswith(".lua"):
                self.redis.script_load(script.read_text(encoding="utf-8"))
        self.witness = Witness(self.redis)
        self.owners: list[Owner] = []
        self.copies: list[tuple[Copy, Truth]] = []
        self.said: list[bytes] = []
        self.begun = 0
        self.forgets = 0

    # What people and listeners do

    @initialize(kinds=kinds)
    def begin(self, kinds: list[str]) -> None:
        self.start(takeover=False, at_once=True)
        self.say(kinds)

    @rule(kinds=kinds)
    def say(self, kinds: list[str]) -> None:
        for kind in kinds:
            number = len(self.said) + 1
            text = YES if kind == "yes" else f"{kind} TP{number}"
            fields = {"text": text, "message_number": number if kind == "numbered" else None}
            self.said.append(text.encode() if kind == "broken" else json.dumps(fields).encode())
            self.push(self.said[-1])

    @precondition(lambda self: self.recognizable())
    @rule(which=which)
    def send_again(self, which: int) -> None:
        self.push(one_of(self.recognizable(), which))

    def push(self, raw: bytes) -> None:
        self.redis.lpush(KEYS.input, raw)
        self.witness.pushed(text_of(raw))
        for owner in self.owners:
            self.do(owner.pushed)

    def recognizable(self) -> list[bytes]:
        """Deliveries that a listener may send again: with a number, and forgotten in no Redis that there was."""
        gone = self.witness.forgotten
        return [raw for raw in self.said if text_of(raw).startswith("numbered") and text_of(raw) not in gone]

    # What processes do

    @precondition(lambda self: len(self.owners) < OWNERS)
    @rule(takeover=st.booleans(), at_once=st.booleans())
    def start(self, takeover: bool, at_once: bool) -> None:
        self.begun += 1
        owner = Owner(self.url, self.begun, hosted=self.hosted)
        self.owners.append(owner)
        self.do(lambda: owner.start(takeover=takeover))
        if at_once:
            self.run(owner)

    @precondition(lambda self: self.owners)
    @rule(which=which)
    def go_on(self, which: int) -> None:
        """Finish what is under way, read and commit all there is, and commit once more, as at a tick."""
        self.run_and_tick(one_of(self.owners, which))

    @precondition(lambda self: self.idle())
    @rule(which=which)
    def tick(self, which: int) -> None:
        """Begin a commit, or a refresh."""
        self.do(one_of(self.idle(), which).tick)

    @precondition(lambda self: self.idle())
    @rule(which=which, at_once=st.booleans())
    def summarize(self, which: int, at_once: bool) -> None:
        owner = one_of(self.idle(), which)
        self.do(owner.summarize)
        if at_once:
            self.run(owner)

    @precondition(lambda self: self.idle())
    @rule(which=which, at_once=st.booleans())
    def stop(self, which: int, at_once: bool) -> None:
        owner = one_of(self.idle(), which)
        self.do(owner.stop)
        if at_once:
            self.run(owner)

    @precondition(lambda self: self.owners)
    @rule(which=which)
    def die(self, which: int) -> None:
        self.count_dead_letters(one_of(self.owners, which))

    @precondition(lambda self: self.waiting())
    @rule(which=which, fate=st.sampled_from(Fate))
    def one_command(self, which: int, fate: Fate) -> None:
        owner, command = one_of(self.waiting(), which)
        self.let_through(owner, command, fate)

    @precondition(lambda self: any(owner.gate.late for owner in self.owners))
    @rule(which=which)
    def a_late_command_arrives(self, which: int) -> None:
        owner = one_of([owner for owner in self.owners if owner.gate.late], which)
        self.loop.run_until_complete(owner.carry_out_late())
        self.witness.look(owner.number)

    def idle(self) -> list[Owner]:
        return [owner for owner in self.owners if owner.ready and not owner.busy]

    def waiting(self) -> list[tuple[Owner, int]]:
        """Commands that wait to be let through, but for those that would wait in Redis."""
        blocks = not self.redis.exists(KEYS.input)
        return [
            (owner, i)
            for owner in self.owners
            for i, command in enumerate(owner.gate.waiting)
            if not (blocks and command.name == "BLMOVE")
        ]

    # What befalls Redis, and what people do there

    @precondition(lambda self: len(self.copies) < 3)
    @rule()
    def copy(self) -> None:
        self.copies.append((copy_of(self.redis), self.witness.truth))

    @precondition(lambda self: self.copies)
    @rule(which=which)
    def fall_back(self, which: int) -> None:
        copy, truth = one_of(self.copies, which)
        put_back(self.redis, copy)
        self.witness.became(truth)

    @rule(what=st.sampled_from(["lease runs out", "forgotten", "replaced by an empty Redis"]))
    def disaster(self, what: str) -> None:
        if what == "lease runs out":
            self.redis.delete(KEYS.owner)
        elif what == "replaced by an empty Redis":
            self.redis.flushall()
            self.witness.became(Truth())
        elif self.forgets < MARKS:
            self.forgets += 1
            self.loop.run_until_complete(self.forget())
            self.witness.forgot()

    async def forget(self) -> None:
        async with client_for(self.url) as client:
            await SessionRegistry(client).forget("monday")

    # How it is driven

    def do(self, begin: Callable[[], None]) -> None:
        """Have an owner begin something; it comes to its first command."""

        async def begun() -> None:
            begin()
            await asyncio.sleep(0)

        self.loop.run_until_complete(begun())

    def let_through(self, owner: Owner, command: int = 0, fate: Fate = Fate.ANSWERED) -> None:
        name = self.loop.run_until_complete(owner.let_through(command, fate))
        if name == LOAD and not owner.ready:
            self.witness.loaded(owner.number)
        self.witness.look(owner.number)
        if owner.left and not owner.busy:
            if owner.left is not Owner.STOPPED:
                self.witness.left(owner.number, owner.left)
            self.count_dead_letters(owner)

    def run(self, owner: Owner) -> None:
        """Let an owner do what there is to do."""
        for _ in range(COMMANDS):
            if owner not in self.owners:
                return
            commands = [command for other, command in self.waiting() if other is owner]
            if commands:
                self.let_through(owner, commands[-1])
            elif owner.has_read and not owner.busy:
                self.do(owner.turn)
            else:
                return
        raise AssertionError(f"owner {owner.number} comes to no end")

    def run_and_tick(self, owner: Owner) -> None:
        self.run(owner)
        if owner in self.idle():
            self.do(owner.tick)
            self.run(owner)

    def count_dead_letters(self, owner: Owner) -> None:
        self.owners.remove(owner)
        self.loop.run_until_complete(owner.die())

    def teardown(self) -> None:
        """Everybody wakes and finishes; then the next owner takes in what is left."""
        try:
            for owner in [*self.owners]:
                self.run_and_tick(owner)
            for owner in [*self.owners]:
                self.count_dead_letters(owner)
            self.start(takeover=True, at_once=True)
            (last,) = self.owners
            while not last.session.conversation.all_summarized:
                self.do(last.summarize)
                self.run(last)
            self.run_and_tick(last)
            self.witness.settled()
        finally:
            for owner in [*self.owners]:
                self.count_dead_letters(owner)
            self.redis.close()
            self.loop.close()


@pytest.fixture(params=[False, True], ids=["alone", "hosted"])
def model(redis_server: RedisServer, request: pytest.FixtureRequest) -> Iterator[type[Protocol]]:
    Protocol.url = redis_server.url
    Protocol.hosted = request.param
    with stamina.set_testing(True, attempts=1_000_000):
        yield Protocol


def check(model: type[Protocol], *, examples: int, steps: int) -> None:
    """The same examples each time, unless ``PROTOCOL_EXAMPLES`` asks for so many others."""
    more = os.environ.get("PROTOCOL_EXAMPLES")
    profile = settings(
        max_examples=int(more or examples),
        derandomize=not more,
        stateful_step_count=steps,
        deadline=None,
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(model, settings=profile)


def test_whatever_happens_nothing_is_lost_or_doubled_and_nothing_comes_back(model: type[Protocol]) -> None:
    check(model, examples=20, steps=30)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(7200)
def test_however_long_it_happens_nothing_is_lost_or_doubled_and_nothing_comes_back(model: type[Protocol]) -> None:
    check(model, examples=200, steps=50)
