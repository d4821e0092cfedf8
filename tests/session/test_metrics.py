"""Every metric of the live side tells something: none is there that nothing sets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from context_builder import metrics
from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst
from context_builder.analysis.prompts import load_prompts
from context_builder.costs import Budget
from context_builder.errors import OverBudget
from tests.analysis.openai.conversation import said
from tests.services.model_server import ModelServer
from tests.services.waiting import wait_until
from tests.session.live import Live
from tests.session.saying import spoken

pytestmark = pytest.mark.engines

ALL = {name: metric for name, metric in vars(metrics).items() if isinstance(metric, MetricWrapperBase)}
GAUGES = {name for name, metric in ALL.items() if isinstance(metric, Gauge)}
BIOLOGY = "Biology and the life sciences: helicase unwinds the replication fork"


def value(name: str) -> float:
    """All of the metric's samples together, without those that tell when it began."""
    samples = (sample for family in ALL[name].collect() for sample in family.samples)
    return sum(sample.value for sample in samples if not sample.name.endswith("_created"))


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[OpenAIAnalyst]:
    analyst = OpenAIAnalyst(Endpoint("sk-secret", server.base_url), load_prompts(), calls=CallOptions(attempts=1))
    yield analyst
    await analyst.close()


def test_metrics_are_counters_gauges_and_histograms_with_a_unit_or_a_total() -> None:
    assert all(isinstance(metric, Counter | Gauge | Histogram) for metric in ALL.values())
    assert len(ALL) > 10


async def test_every_metric_moves_and_gauges_go_back(live: Live, server: ModelServer, model: OpenAIAnalyst) -> None:
    before = {name: value(name) for name in ALL}
    live.analyst = model  # type: ignore[assignment]
    session = await live.start(summary_keep_last=1)
    for number in range(1, 13):
        await live.push(spoken(number, f"{BIOLOGY} {number}"))
        await live.until("it is read", received_messages=number, messages_since_domain_inference=number % 5)
    assert metrics_moved(before) >= {"SESSIONS", "SESSION_TOKENS", "SESSION_COST_DOLLARS"}
    await live.push(spoken(12, f"{BIOLOGY} 12"))
    await live.redis.lpush("context_builder:monday:input", b"no message")
    await live.until("one is known, one is dead", dead_letters=1)
    server.model.distorted = with_unfounded_point
    live.clock.advance(121)
    await live.until("it is summarized", message_count=11, rejected_points=1)
    await live.redis.client_kill_filter(_type="normal", skipme=True)
    await live.push({**spoken(20), "timestamp": "2099-01-01T00:00:00"})
    await live.until("it came all the same", highest_message_number=20)
    poor = OpenAIAnalyst(Endpoint("none", server.base_url), load_prompts(), budget=Budget(1e-9))
    with pytest.raises(OverBudget):
        await poor.extract_keywords(said(BIOLOGY))
    await wait_until(lambda: not session.relays.undelivered and not session.relays.unremembered, "all is delivered")
    of_fleets = {"LOOP_LAG_SECONDS", "OVERLOADED"}  # which tests/fleet/test_workload.py moves
    left = {"QUEUE_LENGTH"}  # nothing waits: see the next test
    await wait_until(lambda: {*ALL} - metrics_moved(before) - of_fleets == left, "every metric moves")
    await live.stop(session)
    assert {name: value(name) for name in GAUGES} == {name: before[name] for name in GAUGES}


def metrics_moved(before: dict[str, float]) -> set[str]:
    return {name for name in ALL if value(name) != before[name]}


def with_unfounded_point(body: dict[str, Any]) -> dict[str, Any]:
    """The model's answer; a summary with a point that cites a message which nobody gave."""
    message = body["choices"][0]["message"]
    reply = orjson.loads(message["content"])
    if "points" in reply:
        reply["points"].append({"kind": "claim", "text": "Nobody said that", "cites": [999], "replaces": 0})
        message["content"] = orjson.dumps(reply).decode()
    return body


async def test_the_input_length_is_that_of_all_sessions_at_their_last_commits(live: Live) -> None:
    began = value("QUEUE_LENGTH")
    seen: list[float] = []

    async def watch() -> None:
        while True:
            seen.append(value("QUEUE_LENGTH") - began)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    await live.redis.lpush("context_builder:monday:input", *(orjson.dumps(spoken(n)) for n in range(1, 4)))
    await live.redis.lpush("context_builder:tuesday:input", *(orjson.dumps(spoken(n)) for n in range(1, 6)))
    sessions = [await live.start(name) for name in ("monday", "tuesday")]
    await live.until("all are there", received_messages=3)
    await live.until("all are there", session_id="tuesday", received_messages=5)
    watching.cancel()
    assert max(seen) in {5, 8}  # the second began before or after the first had read on
    await wait_until(lambda: value("QUEUE_LENGTH") == began, "nothing waits")
    await live.redis.lpush("context_builder:monday:input", *(orjson.dumps(spoken(n)) for n in range(4, 9)))
    for session in sessions:
        await live.stop(session)
    assert value("QUEUE_LENGTH") == began
