"""Any object with the documented methods works, if it has nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import pytest

from context_builder.assembly import ContextBuilder
from tests.assembly.turns import memories

TURN = {
    "tenant_id": "tenant-123",
    "session_id": "session-456",
    "system_prompt": "You are a helpful assistant.",
    "user_message": "What is the capital of France?",
    "history": [{"role": "user", "content": f"Hello {number}"} for number in range(60)],
}


class Metrics:
    """The ten methods of the documented class diagram."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told: list[str] = []

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        yield
        self.told.append(name)

    def time_total(self):
        return self._timed("total")

    def time_retrieval(self, state):
        return self._timed(f"retrieval {state}")

    def time_salience(self):
        return self._timed("salience")

    def time_ranking(self):
        return self._timed("ranking")

    def time_redaction(self):
        return self._timed("redaction")

    def time_tokenisation(self):
        return self._timed("tokenisation")

    def time_prompt(self):
        return self._timed("prompt")

    def record_tokens(self, before, after, redacted, prompt):
        self.told.append("tokens")

    def inc_prompt(self):
        self.told.append("prompt built")

    def inc_snippets(self, stage, count):
        self.told.append(f"{count} {stage}")


class Client:
    """The three methods of the documented client; ``recall`` as the class diagram has it."""

    __slots__ = ("failing", "kept")

    def __init__(self) -> None:
        self.kept: list[dict] = []
        self.failing = False

    async def context_evaluate(self, payload):
        if self.failing:
            raise RuntimeError("circuit open for 15s")
        return memories(payload["top_k"])

    async def remember_batch(self, payload):
        self.kept.append(payload)
        return {"ok": True}

    async def recall(self, query, top_k):
        raise AssertionError("nobody needs to ask twice")


class Recalling:
    """What the deep dive asks of a client."""

    async def recall(self, payload):
        return {"candidates": memories(payload["top_k"])["candidates"]}


class Upper:
    """A redactor has one method."""

    __slots__ = ()

    def redact(self, text: str) -> str:
        return text.upper()


class ComponentHealth(Enum):
    """A health of the application's own, with the documented values."""

    NORMAL = "normal"
    DOWN = "down"


async def test_the_ten_documented_metrics_are_enough() -> None:
    metrics, client = Metrics(), Client()
    builder = ContextBuilder(somabrain=client, metrics=metrics, token_counter=lambda text: len(text.split()))
    context = await builder.build_for_turn(TURN, max_prompt_tokens=120)
    await builder.drain()
    assert context.debug["memory"] == "ok"
    phases = ["retrieval normal", "salience", "ranking", "redaction", "tokenisation", "prompt", "total"]
    assert [told for told in metrics.told if told in phases] == phases
    assert {"tokens", "prompt built", "8 final", "1 summary"} <= set(metrics.told)
    client.failing = True
    assert (await builder.build_for_turn(TURN)).snippets == []


@pytest.mark.parametrize("client", [Client(), Recalling(), None])
async def test_a_client_with_the_documented_methods_is_enough(client) -> None:
    builder = ContextBuilder(somabrain=client, metrics=Metrics(), token_counter=len)
    context = await builder.build_for_turn(TURN, max_prompt_tokens=1000)
    await builder.drain()
    assert len(context.snippets) == (8 if client else 0)


async def test_a_redactor_a_health_and_a_callback_of_ones_own_are_enough() -> None:
    worse: list[float] = []
    client = Client()
    builder = ContextBuilder(
        somabrain=client,
        metrics=Metrics(),
        token_counter=lambda text: len(text.split()),
        redactor=Upper(),
        health_provider=lambda: ComponentHealth.NORMAL,
        on_degraded=worse.append,
    )
    context = await builder.build_for_turn(TURN, max_prompt_tokens=4096)
    assert context.snippets[0]["text"] == "MEMORY 0"
    client.failing = True
    assert (await builder.build_for_turn(TURN)).debug["somabrain_state"] == "normal"
    assert worse == [15.0]
