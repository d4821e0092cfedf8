"""The three tasks over HTTP, against a model that answers by rule."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pytest

from context_builder.analysis.analyst import AnalystMessage, KnownPoint, PointKind, SummaryRequest
from context_builder.analysis.openai import OpenAIAnalyst
from context_builder.concurrency import share
from context_builder.domains import DOMAINS
from context_builder.errors import AnalystUnavailable
from context_builder.tokens.counter import count_tokens
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.openai.conversation import HOSTILE, TEXTS, said
from tests.forged import FORGED, MALLORY
from tests.services.model_answers import said_in, task_of
from tests.services.model_server import FakeModel, Fault, ModelServer
from tests.services.waiting import wait_until


async def test_keywords_of_many_messages_take_one_call(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    reading = await analyst.extract_keywords(said(*TEXTS))
    assert reading.analyst == "openai"
    assert "replication" in reading.keywords[0]
    assert reading.keywords[2] == ()
    assert len(reading.keywords) == len(TEXTS)
    (request,) = model.requests
    assert said_in(request) == [text for text in TEXTS if len(text) >= 10]
    assert (request["model"], request["temperature"], request["max_completion_tokens"]) == ("gpt-4o-mini", 0.2, 400)


async def test_short_messages_alone_are_not_sent(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    reading = await analyst.extract_keywords(said("ok", "hm", "9 letters"))
    assert (reading.keywords, reading.usage.calls, model.requests) == (((), (), ()), 0, [])


async def test_domains_are_of_the_eighteen(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    reading = await analyst.infer_domains(said("A talk about biology, life and a bit of chemistry."))
    assert reading.domains[0] == DOMAINS[0]
    assert reading.keywords
    assert model.requests[0]["max_completion_tokens"] == 400


async def test_a_summary_cites_the_messages_it_comes_from(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    known = [KnownPoint(70, "Bob asked for primers.", PointKind.CLAIM)]
    reading = await analyst.summarize(SummaryRequest(said(*TEXTS), known))
    assert reading.points[0].text == TEXTS[0]
    assert reading.points[0].cites == (100,)
    assert reading.points[0].kind is PointKind.QUESTION
    (request,) = model.requests
    assert '1 claim: "Bob asked for primers."' in request["messages"][1]["content"]
    assert (request["model"], request["temperature"], request["max_completion_tokens"]) == ("gpt-4o", 0.3, 3000)


async def test_nothing_said_costs_nothing(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    assert (await analyst.summarize(SummaryRequest([]))).points == ()
    assert (await analyst.infer_domains(said("", "  "))).domains == []
    assert model.requests == []


async def test_the_stable_part_of_a_prompt_comes_first_and_is_the_same(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    await analyst.extract_keywords(said(TEXTS[0]))
    await analyst.extract_keywords(said(TEXTS[1]))
    first, second = (request["messages"] for request in model.requests)
    assert first[0] == second[0]
    assert first[0]["role"] == "system"
    assert TEXTS[0] not in first[0]["content"]


async def test_what_people_say_stays_inside_its_block(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    await analyst.summarize(SummaryRequest(said(HOSTILE, "and then <known>", "a\u2028b\ud800")))
    prompt = model.requests[0]["messages"][1]["content"]
    assert prompt.count("</messages>") == prompt.count("<known>") == 1
    assert said_in(model.requests[0]) == [f"Alice: {HOSTILE}", "Bob: and then <known>", "Alice: a\u2028b?"]


async def test_what_was_said_before_is_shown_once_and_not_asked_about(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    hello, question, *asked = said("Hello everybody", *TEXTS[:3], TEXTS[4])
    asked = [replace(asked[0], before=[hello, question]), asked[1], replace(asked[2], before=[question, asked[0]])]
    assert len((await analyst.extract_keywords(asked)).keywords) == 3
    await analyst.extract_keywords(asked[:1])
    batch, lone = (request["messages"][1]["content"].splitlines() for request in model.requests)
    context = [f'context "{hello.text}"', f'context "{question.text}"']
    assert batch[1:-1] == [*context, f'1 "{TEXTS[1]}"', f'2 "{TEXTS[4]}"']
    assert lone == [*context, f'"{TEXTS[1]}"']


async def test_an_enormous_message_is_sent_as_an_excerpt(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    await analyst.extract_keywords(said("begin " + "x" * 200_000 + " end"))
    (text,) = said_in(model.requests[0])
    assert text.startswith("begin")
    assert text.endswith("end")
    assert len(text) < 5_000


async def test_of_an_enormous_message_nothing_is_skipped_by_a_summary(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    enormous = " ".join(f"Sample {n} was lost." for n in range(4_500))
    reading = await analyst.summarize(SummaryRequest(said("We begin.", enormous, "We end.")))
    told = [line for request in model.requests for line in said_in(request)]
    assert "".join(line.removeprefix("Bob: ") for line in told[1:-1]) == enormous
    assert all(count_tokens(request["messages"][1]["content"]) < 12_100 for request in model.requests)
    assert {cited for point in reading.points for cited in point.cites} == {100, 101, 102}
    assert reading.usage.calls == len(model.requests) > 2


async def test_what_the_parts_before_a_failure_cost_is_not_forgotten(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.script.extend([None, Fault.UNAUTHORIZED])
    with pytest.raises(AnalystUnavailable) as raised:
        await analyst.summarize(SummaryRequest(said("word " * 20_000)))
    assert raised.value.usage
    assert raised.value.usage.calls == 1


async def test_usage_is_what_the_server_counted(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    usage = (await analyst.infer_domains(said(*TEXTS))).usage
    assert usage.model == "gpt-4o-mini"
    assert usage.prompt_tokens == sum(len(part["content"]) // 4 for part in model.requests[0]["messages"])
    assert 0 < usage.cached_tokens < usage.prompt_tokens
    assert usage.completion_tokens > 0
    assert usage.calls == 1


async def test_calls_in_flight_are_bounded(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    model.latency = {"keywords": 0.02}
    analyst = make_analyst(concurrency=2)
    await asyncio.gather(*(analyst.extract_keywords(said(TEXTS[0])) for _ in range(8)))
    assert model.most_in_flight == 2


async def test_a_tenant_with_many_calls_delays_no_other(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    model.latency = {"keywords": 0.05}
    analyst, answered = make_analyst(concurrency=2), []

    async def ask(tenant: str) -> None:
        share.set(tenant)
        await analyst.extract_keywords(said(TEXTS[0]))
        answered.append(tenant)

    large = [asyncio.create_task(ask("large")) for _ in range(12)]
    await wait_until(lambda: model.in_flight == 2, "the places are taken")
    before = len(answered)  # on a slow machine some are by now
    await asyncio.gather(asyncio.create_task(ask("small")), *large)
    assert answered.index("small") - before <= 4


async def test_a_cancelled_call_frees_its_place(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    model.latency = {"keywords": 5.0}
    analyst = make_analyst(concurrency=1)
    async with asyncio.timeout(2):
        call = asyncio.create_task(analyst.extract_keywords(said(TEXTS[0])))
        await wait_until(lambda: model.in_flight, "the call is in flight")
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await analyst.infer_domains(said(TEXTS[0]))


async def test_closed_and_asked_again_it_connects_again(analyst: OpenAIAnalyst, model_server: ModelServer) -> None:
    await analyst.infer_domains(said(TEXTS[0]))
    await analyst.close()
    assert (await analyst.infer_domains(said(TEXTS[0]))).domains


def test_the_key_is_in_no_representation(analyst: OpenAIAnalyst) -> None:
    client = analyst._client
    assert "sk-secret" not in json.dumps([repr(client._endpoint), repr(analyst), repr(client)])


async def test_no_message_and_no_name_forges_another_message(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    forged = [AnalystMessage(1, MALLORY, f"Hello{FORGED}"), AnalystMessage(2, "Bob: yes. Ann", f"No{FORGED}")]
    known = [KnownPoint(1, f"Known{FORGED}", PointKind.CLAIM)]
    await analyst.summarize(SummaryRequest(forged, known))
    await analyst.extract_keywords(forged)
    await analyst.infer_domains(forged)
    told = [request["messages"][-1]["content"] for request in model.requests if task_of(request) != "verification"]
    for content in told:
        messages = content.partition("<messages>\n")[2].partition("\n</messages>")[0]
        assert len(messages.splitlines()) == 2
        assert set(re.findall("<[^>]*>", content)) <= {"<known>", "</known>", "<messages>", "</messages>"}
    assert '1 "Mallory (9) (Eve) - Eve- yes: Hello' in told[0]
    assert '2 "Bob- yes. Ann: No' in told[0]
