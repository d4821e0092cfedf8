"""A message that the model refuses costs its neighbours nothing, and is not sent again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import Response

from context_builder.analysis.analyst import (
    AnalystMessage,
    Compact,
    CompactedPoint,
    CompactionRequest,
    CompactionResult,
    KnownPoint,
    PointKind,
    SummaryRequest,
)
from context_builder.analysis.halving import HalvingAnalyst
from context_builder.analysis.openai import OpenAIAnalyst
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.costs import Usage
from context_builder.errors import AnalystUnavailable, ContentRefused, RequestRefused
from context_builder.session.config import SessionConfig
from context_builder.session.jobs import Jobs, TaskOutcome
from context_builder.testing import ManualClock
from tests.analysis.openai.conversation import said
from tests.analysis.openai.odd_servers import completion, error
from tests.services.model_server import FakeModel, Fault
from tests.session.saying import conversation, message

FILTERED = "The patient held a knife when the alarm of ward seven went off."
PLAIN = [f"Freezer number {number} was repaired by the supplier on Monday." for number in range(31)]


def talk(*refused_at: int, count: int = 32) -> list[AnalystMessage]:
    texts = [*PLAIN[: count - len(refused_at)]]
    for place in refused_at:
        texts.insert(place, FILTERED.replace("seven", f"seven{place}"))
    return said(*texts)


def known(*texts: str) -> list[KnownPoint]:
    return [KnownPoint(900 + place, text, PointKind.CLAIM, ("Ida",)) for place, text in enumerate(texts)]


@pytest.fixture
def halving(analyst: OpenAIAnalyst, model: FakeModel) -> HalvingAnalyst:
    """Goes around a filter that finds knives, whatever else is in the request."""
    filter_words(model, "knife")
    return HalvingAnalyst(analyst, [TextAnalyst()])


def filter_words(model: FakeModel, *words: str, refusal: Response | None = None) -> None:
    def filtered(asked: dict[str, Any], _: str) -> Response | None:
        found = any(word in asked["messages"][-1]["content"] for word in words)
        return (refusal or error(400, "The response was filtered", "content_filter")) if found else None

    model.oddly = filtered


def cited(points: Sequence[Any]) -> set[int]:
    return {entry_id for point in points for entry_id in point.cites}


REFUSALS = [
    error(400, "The response was filtered", "content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
    completion({"content": ""}, "content_filter"),
    error(400, "no"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=["by HTTP", "in the completion", "without a reason"])
async def test_only_the_refused_message_is_summarized_by_the_stand_in(
    halving: HalvingAnalyst, model: FakeModel, refusal: Response
) -> None:
    filter_words(model, "knife", refusal=refusal)
    messages = talk(20)
    result = await halving.summarize(SummaryRequest(messages))
    assert (result.refused, result.degraded, result.analyst) == (1, False, "openai")
    assert messages[20].id in cited(result.points)
    assert len(model.requests) <= 2 * 5 + 4


async def test_a_refused_message_alone_is_summarized_all_the_same(halving: HalvingAnalyst, model: FakeModel) -> None:
    result = await halving.summarize(SummaryRequest(said(FILTERED)))
    assert (result.refused, result.analyst) == (1, "text")
    assert len(model.requests) == 1


async def test_a_refused_message_is_not_sent_for_the_same_task_again(halving: HalvingAnalyst, model: FakeModel) -> None:
    messages = talk(2, count=8)
    await halving.infer_domains(messages)
    model.requests.clear()
    assert (await halving.infer_domains(messages)).domains
    assert "knife" not in json.dumps(model.requests)


@pytest.mark.parametrize("refused", [(0, 31), (3, 9, 17, 30), tuple(range(0, 32, 2))], ids=len)
async def test_several_refused_messages_cost_a_bounded_number_of_calls(
    halving: HalvingAnalyst, model: FakeModel, refused: tuple[int, ...]
) -> None:
    messages = talk(*refused)
    result = await halving.summarize(SummaryRequest(messages))
    assert {messages[place].id for place in refused} <= cited(result.points) or result.refused >= len(refused)
    assert len(model.requests) <= 4 * 5 + 1


async def test_the_point_of_a_refused_message_is_not_shown_as_known(halving: HalvingAnalyst, model: FakeModel) -> None:
    first = await halving.summarize(SummaryRequest(said(FILTERED)))
    model.requests.clear()
    points = known("Bo ordered samples.", *(point.text for point in first.points))
    result = await halving.summarize(SummaryRequest(talk(count=8), points))
    assert (len(model.requests), result.refused) == (1, 0)
    assert "Bo ordered samples." in model.requests[0]["messages"][-1]["content"]


async def test_known_points_that_are_refused_are_found_and_left_out(halving: HalvingAnalyst, model: FakeModel) -> None:
    points = known("Bo ordered samples.", "Ida saw a knife.", "Ida called the supplier.")
    request = SummaryRequest(talk(count=8), points)
    result = await halving.summarize(request)
    assert (result.refused, result.analyst) == (0, "openai")
    last = model.requests[-1]["messages"][-1]["content"]
    assert "ordered samples" in last
    assert "called the supplier" in last
    model.requests.clear()
    await halving.summarize(replace(request, messages=talk(count=9)))
    assert len(model.requests) == 1


async def test_neighbours_of_a_refused_message_keep_the_models_keywords(
    halving: HalvingAnalyst, model: FakeModel
) -> None:
    result = await halving.extract_keywords(talk(3, count=8))
    assert result.analyst == "openai"
    assert len(result.keywords) == 8
    assert all(result.keywords)


async def test_domains_are_those_of_what_is_not_refused(halving: HalvingAnalyst) -> None:
    result = await halving.infer_domains(talk(3, count=8))
    assert result.analyst == "openai"
    assert (await halving.infer_domains(said(FILTERED))).analyst == "text"


async def test_keywords_and_domains_in_one_call_are_asked_for_apart(halving: HalvingAnalyst) -> None:
    assert halving.read_both
    messages = talk(3, count=8)
    for _ in range(2):
        keywords, domains = await halving.read_both(messages[2:4], messages)
        assert (keywords.analyst, domains.analyst, len(keywords.keywords)) == ("openai", "openai", 2)


async def test_preferences_are_read_from_the_others(halving: HalvingAnalyst) -> None:
    assert halving.read_preferences
    result = await halving.read_preferences([*said("I am fond of green tea."), *talk(0, count=4)])
    assert [preference.what for preference in result.preferences] == ["green tea"]


async def test_a_server_that_refuses_everything_without_a_reason_is_waited_for(
    halving: HalvingAnalyst, model: FakeModel
) -> None:
    model.oddly = lambda *_: error(400, "no")
    with pytest.raises(RequestRefused):
        await halving.summarize(SummaryRequest(talk(count=8)))
    model.oddly = lambda *_: None
    assert (await halving.summarize(SummaryRequest(talk(count=8)))).refused == 0


async def test_a_model_that_fails_meanwhile_is_waited_for(halving: HalvingAnalyst, model: FakeModel) -> None:
    model.fault = Fault.ERROR_500
    with pytest.raises(AnalystUnavailable):
        await halving.summarize(SummaryRequest(talk(20)))


async def test_a_window_that_is_too_short_is_filled_by_half(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.oddly = lambda asked, _: (
        error(400, "maximum context length is 700 tokens") if len(asked["messages"][-1]["content"]) > 1500 else None
    )
    result = await HalvingAnalyst(analyst, [TextAnalyst()]).summarize(SummaryRequest(talk()))
    assert (result.refused, result.analyst) == (0, "openai")


async def test_a_session_counts_the_refused_message_and_never_sends_it_again(
    halving: HalvingAnalyst, model: FakeModel
) -> None:
    clock = ManualClock()
    held = conversation(clock)
    text = TextAnalyst()

    def over(done: TaskOutcome) -> None:
        assert done.result
        held.finish(done.task, done.result, clock.now())

    jobs = Jobs(halving, text, SessionConfig(), over)
    for texts in ([PLAIN[0], FILTERED, PLAIN[1]], PLAIN[2:4]):
        held.receive([message(None, each) for each in texts], clock.now())
        task = held.next_summary_task()
        assert task
        async with asyncio.TaskGroup() as tasks:
            jobs.start(task, tasks)
    assert held.all_summarized
    assert held.summary.degraded_messages == 1
    assert held.next_summary_task() is None
    assert "knife" not in model.requests[-1]["messages"][-1]["content"]


class Rewriter(TextAnalyst):
    """Rewrites all points as one sentence, and refuses what names a knife, in the points or beside them."""

    def __init__(self) -> None:
        self.asked: list[CompactionRequest] = []

    @property
    def compact(self) -> Compact:
        return self._compact

    async def _compact(self, request: CompactionRequest) -> CompactionResult:
        self.asked.append(request)
        if any("knife" in point.text for point in (*request.points, *request.beside)):
            refusal = ContentRefused("the model refuses this")
            refusal.usage = Usage(calls=1)
            raise refusal
        merged = CompactedPoint("Shorter.", PointKind.CLAIM, tuple(point.id for point in request.points))
        return CompactionResult((merged,), "model", usage=Usage(calls=1))


async def rewritten(model: Rewriter, request: CompactionRequest) -> CompactionResult:
    compact = HalvingAnalyst(model, [TextAnalyst()]).compact
    assert compact is not None
    return await compact(request)


async def test_a_refused_point_stays_as_it_is_and_the_others_are_rewritten() -> None:
    points, model = known(*PLAIN[:5], FILTERED, *PLAIN[5:8]), Rewriter()
    result = await rewritten(model, CompactionRequest(points, 90))
    assert not result.dropped
    merged = sorted(point for sentence in result.points for point in sentence.merges)
    assert merged == [point.id for point in points if point is not points[5]]
    assert result.usage.calls == len(model.asked)
    assert all(request.tokens <= 90 for request in model.asked)


async def test_a_refused_point_beside_those_to_rewrite_is_left_out() -> None:
    points, model = known(*PLAIN[:3]), Rewriter()
    result = await rewritten(model, CompactionRequest(points, 40, known(FILTERED)))
    assert [sentence.merges for sentence in result.points] == [tuple(point.id for point in points)]
    assert [len(request.beside) for request in model.asked] == [1, 0]


async def test_a_point_that_was_refused_is_not_sent_again() -> None:
    model = Rewriter()
    compact = HalvingAnalyst(model, [TextAnalyst()]).compact
    assert compact is not None
    request = CompactionRequest(known(*PLAIN[:3], FILTERED), 50)
    await compact(request)
    model.asked.clear()
    assert {merged for one in (await compact(request)).points for merged in one.merges} == {900, 901, 902}
    assert [len(each.points) for each in model.asked] == [3]
