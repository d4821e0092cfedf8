"""A model that fails under a live session: messages stay visible, text analysis stands in, no error becomes memory."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.breaker import CircuitBreaker
from context_builder.session.jobs import MOST_USELESS
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.talk_in_languages import TALKS
from tests.services.model_server import UNANSWERED, WRONG_ANSWERS, FakeModel, Fault, ModelServer
from tests.services.running import parts_of, published, push, running, state
from tests.services.waiting import wait_until
from tests.session.saying import spoken

pytestmark = [pytest.mark.engines, pytest.mark.slow]

TALK = "The helicase unwinds the double helix before the polymerase copies strand {}"
PAUSE = 0.4
"""Seconds that the breaker leaves the model alone, and between tries of a summary."""

FAULTS = [*UNANSWERED, Fault.HANG, *WRONG_ANSWERS, Fault.UNAUTHORIZED, Fault.NO_QUOTA]


def live(number: int) -> dict[str, Any]:
    """A message that is said now; a talk of another time is summarized by its own clock."""
    return spoken(number, TALK.format(number), timestamp=None)


@asynccontextmanager
async def listening(redis: Redis, make_analyst: MakeAnalyst, **rules: Any) -> AsyncIterator[None]:
    """A session that asks the fake model, and has a first summary of it."""
    model = make_analyst(timeout=1.0, attempts=2)
    plain = TextAnalyst()
    analyst = FallbackAnalyst(model, plain, CircuitBreaker(pause=PAUSE))
    quick = {"buffer_window": 0.6, "summary_retry": PAUSE, "domain_messages": 2, "domain_skip": False, **rules}
    async with running(redis, parts=parts_of(analyst, last_resort=plain), **quick):
        await push(redis, *(live(n) for n in (1, 2)))
        await wait_until(published(redis, lambda s: s["rolling_summary"]["message_count"] == 2), "a first summary")
        yield


async def say(redis: Redis, number: int) -> None:
    """Push one message; returns when it is visible."""
    await push(redis, live(number))
    await wait_until(published(redis, lambda s: s["received_messages"] >= number), f"{number} is visible")


async def endure(redis: Redis, failed: Callable[[], bool]) -> None:
    """Talk through an outage; everything that must hold during it."""
    before = (await state(redis))["rolling_summary"]
    for number in range(3, 13):
        await say(redis, number)
    understood = await wait_until(
        published(redis, lambda s: all(entry["keywords"] for entry in s["raw_recent_buffer"])), "all have keywords"
    )
    assert {entry["analyst"] for entry in understood["raw_recent_buffer"]} == {"text"}
    await wait_until(published(redis, lambda s: s["analyst"]["domains"] == "text"), "domains come from the text")
    await wait_until(failed, "a summary was tried in vain")
    after = await state(redis)
    assert after["rolling_summary"] == before
    assert after["analyst"]["summary"] == "openai"
    assert [entry["message_number"] for entry in after["raw_recent_buffer"]] == [*range(3, 13)]


async def recover(redis: Redis) -> None:
    """The model is back: its quality must be, too."""
    caught_up = await wait_until(
        published(redis, lambda s: s["rolling_summary"]["message_count"] == 12), "the summary catches up"
    )
    assert caught_up["rolling_summary"]["covers_messages"] == [1, 12]
    assert caught_up["rolling_summary"]["degraded_messages"] == 0
    assert "strand 12" in caught_up["rolling_summary"]["text"]
    for number in (13, 14):
        await say(redis, number)
    await wait_until(
        published(redis, lambda s: s["analyst"]["keywords"] == s["analyst"]["domains"] == "openai"),
        "keywords and domains come from the model again",
    )


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failing_model_costs_quality_and_nothing_else(
    redis: Redis, make_analyst: MakeAnalyst, model: FakeModel, fault: Fault
) -> None:
    async with listening(redis, make_analyst):
        asked = model.tasks["summary"]
        model.fault = fault
        await endure(redis, lambda: model.tasks["summary"] > asked)
        model.fault = None
        await recover(redis)


async def test_a_model_that_refuses_connections_costs_quality_and_nothing_else(
    redis: Redis, make_analyst: MakeAnalyst, model_server: ModelServer
) -> None:
    async with listening(redis, make_analyst):
        model_server.stop()
        until = time.monotonic() + 1.0
        try:
            await endure(redis, lambda: time.monotonic() > until)
        finally:
            model_server.start()
        await recover(redis)


REFUSALS = {"gateway": "502 Bad Gateway", "none": "NONE", **{talk.language: talk.refusals[0] for talk in TALKS[1::2]}}


@pytest.mark.parametrize("text", REFUSALS.values(), ids=REFUSALS)
async def test_a_point_that_is_no_summary_never_becomes_memory(
    redis: Redis, make_analyst: MakeAnalyst, model: FakeModel, text: str
) -> None:
    point = {"text": text, "cites": [1], "kind": "claim", "replaces": 1}
    async with listening(redis, make_analyst, domain_messages=1000):
        await wait_until(lambda: not model.in_flight, "nothing is asked")
        before = (await state(redis))["rolling_summary"]
        model.replies.extend([{"points": [point], "chatter": False}] * 2)
        await push(redis, {"text": "Fine?", "speaker": "Bob", "message_number": 3})  # too short for keywords
        after = await wait_until(published(redis, lambda s: s["rolling_summary"]["message_count"] == 3), "a real one")
    assert after["rolling_summary"]["summary_seq"] == before["summary_seq"] + 1
    assert text not in after["rolling_summary"]["text"]
    assert after["rolling_summary"]["rejected_points"] >= 2
    assert [point["text"] for point in before["points"]] == [
        point["text"] for point in after["rolling_summary"]["points"][: len(before["points"])]
    ]


async def test_what_the_model_always_refuses_is_summarized_by_text_analysis_until_it_can(
    redis: Redis, make_analyst: MakeAnalyst, model: FakeModel
) -> None:
    refusal = {"text": TALKS[2].refusals[0], "cites": [1], "kind": "claim", "replaces": 1}

    def refused(body: dict[str, Any]) -> dict[str, Any]:
        [choice] = body["choices"]
        if "points" not in choice["message"]["content"]:
            return body
        content = json.dumps({"points": [refusal], "chatter": False})
        return {**body, "choices": [{**choice, "message": {"content": content}}]}

    async with listening(redis, make_analyst):
        before = (await state(redis))["rolling_summary"]
        model.distorted = refused
        await push(redis, *(live(n) for n in (3, 4)))
        stood_in = (
            await wait_until(published(redis, lambda s: s["rolling_summary"]["message_count"] == 4), "text stands in")
        )["rolling_summary"]
        assert stood_in["degraded_messages"] == 2
        assert stood_in["rejected_points"] == 2 * MOST_USELESS  # of two tries each
        assert stood_in["points"][: len(before["points"])] == before["points"]
        assert len(stood_in["points"]) > len(before["points"])
        model.reset()
        await push(redis, live(5))
        again = await wait_until(
            published(redis, lambda s: s["rolling_summary"]["degraded_messages"] == 0), "the model does it again"
        )
    assert again["rolling_summary"]["message_count"] == 5
    assert again["analyst"]["summary"] == "openai"
    assert refusal["text"] not in again["rolling_summary"]["text"]


async def test_when_too_much_waits_text_analysis_takes_it_until_the_model_can_do_it_again(
    redis: Redis, make_analyst: MakeAnalyst, model: FakeModel
) -> None:
    async with listening(redis, make_analyst, pending_max=20, buffer_max=10):
        model.fault = Fault.ERROR_500
        await push(redis, *(live(n) for n in range(3, 53)))
        folded = await wait_until(
            published(redis, lambda s: s["rolling_summary"]["degraded_messages"] > 0), "text analysis folds"
        )
        assert folded["analyst"]["summary"] == "text"
        assert folded["rolling_summary"]["points"]
        waiting = folded["pending_messages"] + len(folded["raw_recent_buffer"])
        assert waiting + folded["rolling_summary"]["message_count"] == 52
        model.fault = None
        await push(redis, live(53))
        again = await wait_until(
            published(
                redis,
                lambda s: (
                    s["rolling_summary"]["degraded_messages"] == 0 and s["rolling_summary"]["message_count"] == 53
                ),
            ),
            "the model does it again",
        )
    assert again["analyst"]["summary"] == "openai"
    assert again["rolling_summary"]["summary_seq"] > folded["rolling_summary"]["summary_seq"]
    assert again["rolling_summary"]["covers_messages"] == [1, 53]
    times = [point["time"] for point in again["rolling_summary"]["points"]]
    assert times == sorted(times)
