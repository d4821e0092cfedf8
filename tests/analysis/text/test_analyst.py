"""The text analyst works beside the event loop and can be stopped in the middle."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from context_builder.analysis.analyst import Analyst, AnalystMessage, SummaryRequest
from context_builder.analysis.text import TextAnalyst
from tests.services.waiting import wait_until

SENTENCE = "The ribosome assay {} failed because the buffer reached {} degrees, so we need to repeat it."


@pytest.fixture
async def analyst() -> AsyncIterator[Analyst]:
    analyst = TextAnalyst()
    yield analyst
    await analyst.close()


def backlog(count: int) -> list[AnalystMessage]:
    return [AnalystMessage(number, "Ann", SENTENCE.format(number, number % 90)) for number in range(count)]


async def test_readings_are_labelled_and_cost_nothing(analyst: Analyst) -> None:
    messages = backlog(12)
    keywords = await analyst.extract_keywords(messages)
    domains = await analyst.infer_domains(messages[-10:])
    summary = await analyst.summarize(SummaryRequest(messages))
    assert {keywords.analyst, domains.analyst, summary.analyst} == {analyst.name} == {"text"}
    assert keywords.usage.calls == domains.usage.calls == summary.usage.calls == 0
    assert len(keywords.keywords) == 12
    assert domains.domains[0] == "Biology / Life Sciences"
    assert 0 < len(domains.keywords) <= 10
    assert summary.points


@pytest.mark.slow
async def test_the_loop_stays_free_during_a_long_summary(analyst: Analyst) -> None:
    work = asyncio.create_task(analyst.summarize(SummaryRequest(backlog(5000))))
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 10  # of the loop, which would have had one or two if the work had held it up
    assert len((await work).points) == 25


async def test_a_long_summary_can_be_cancelled() -> None:
    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, *work: Any, **more: Any) -> Future[Any]:
            self.submitted += 1
            return super().submit(*work, **more)

    with Counting(1) as executor:
        analyst = TextAnalyst(executor)
        work = asyncio.create_task(analyst.summarize(SummaryRequest(backlog(20_000))))
        await wait_until(lambda: executor.submitted > 3, "it is in the midst of its portions", poll=0.001)
        work.cancel()
        start = time.perf_counter()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert (await analyst.extract_keywords(backlog(1))).keywords
        assert time.perf_counter() - start < 1, "the thread is free again at once"


async def test_a_given_executor_is_used_and_left_running() -> None:
    with ThreadPoolExecutor(1, "given") as executor:
        analyst = TextAnalyst(executor)
        await analyst.infer_domains(backlog(1))
        await analyst.close()
        assert executor.submit(lambda: threading.current_thread().name).result().startswith("given")


async def test_its_own_thread_ends_with_it() -> None:
    before = set(threading.enumerate())
    analyst = TextAnalyst()
    await analyst.infer_domains(backlog(1))
    (its_own,) = set(threading.enumerate()) - before
    await analyst.close()
    assert its_own.name.startswith("text-analysis")
    assert not its_own.is_alive()


async def test_an_analyst_for_many_reads_a_little_at_once_and_the_same(analyst: Analyst) -> None:
    assert analyst.read_at_once is None
    with ThreadPoolExecutor(1) as executor:
        at_once = TextAnalyst(executor, is_shared=True).read_at_once
    messages = backlog(3)
    assert at_once is not None
    assert at_once.keywords(messages) == await analyst.extract_keywords(messages)
    assert at_once.domains(messages) == await analyst.infer_domains(messages)


async def test_who_shares_an_analyst_takes_turns() -> None:
    order: list[str] = []

    class Noting(ThreadPoolExecutor):
        def submit(self, *work: Any, **more: Any) -> Future[Any]:
            order.extend(said[0].speaker for said in work[2:])
            return super().submit(*work, **more)

    def much(speaker: str) -> list[AnalystMessage]:
        return [replace(said, speaker=speaker) for said in backlog(600)]

    with Noting(1) as executor:
        analyst = TextAnalyst(executor, is_shared=True)
        await asyncio.gather(*(analyst.summarize(SummaryRequest(much(who))) for who in ("Ann", "Ben")))
    assert len(order) > 6
    assert all(one != other for one, other in pairwise(order))
