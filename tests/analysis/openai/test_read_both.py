"""Keywords and domains in one call: what is sent once, what comes back, what becomes of failures."""

from __future__ import annotations

import pytest

from context_builder.analysis.analyst import ReadBoth
from context_builder.analysis.fallback import FallbackAnalyst
from context_builder.analysis.openai import OpenAIAnalyst, TaskConfig
from context_builder.analysis.openai.analyst import DOMAIN_TEXT
from context_builder.breaker import CircuitBreaker
from context_builder.costs import Budget
from context_builder.domains import DOMAINS
from context_builder.errors import ReplyInvalid
from context_builder.testing import StubAnalyst
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.openai.conversation import HOSTILE, TEXTS, said
from tests.services.model_answers import said_in
from tests.services.model_server import FakeModel, Fault

TALK = said(*TEXTS)


def both(analyst: OpenAIAnalyst | FallbackAnalyst) -> ReadBoth:
    assert analyst.read_both is not None
    return analyst.read_both


async def test_one_call_answers_both_and_no_message_is_sent_twice(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    keywords, domains = await both(analyst)(TALK[3:], TALK)
    (request,) = model.requests
    assert said_in(request) == list(TEXTS)
    assert said_in(request, numbered=True) == list(TEXTS[3:])
    assert len(keywords.keywords) == 2
    assert "samples" in keywords.keywords[0]
    assert set() < set(domains.domains) <= set(DOMAINS)
    assert domains.keywords


async def test_messages_older_than_the_stretch_of_talk_come_first(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    await both(analyst)(TALK[:2], TALK[3:])
    assert said_in(model.requests[0]) == [TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[4]]


async def test_what_it_cost_counts_once(analyst: OpenAIAnalyst) -> None:
    keywords, domains = await both(analyst)(TALK, TALK)
    assert (keywords.usage.calls, domains.usage.calls) == (0, 1)
    assert domains.usage.dollars > 0


async def test_messages_too_short_for_keywords_still_tell_the_domains(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    keywords, _ = await both(analyst)(TALK[1:3], TALK[:3])
    assert said_in(model.requests[0]) == list(TEXTS[:3])
    assert said_in(model.requests[0], numbered=True) == [TEXTS[1]]
    assert keywords.keywords[1] == ()
    keywords, _ = await both(analyst)(TALK[2:3], TALK[:3])
    assert keywords.keywords == ((),)
    assert len(model.requests) == 2


async def test_only_messages_without_keywords_to_find_are_clipped(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    talk = said("context " * 400, "keywords " * 400)
    await both(analyst)(talk[1:], talk)
    context, asked = said_in(model.requests[0])
    assert len(context) < DOMAIN_TEXT + 10
    assert len(asked) == len("keywords " * 400)


async def test_hostile_text_stays_inside_its_block(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    talk = said(HOSTILE, "a\u2028b\ud800 and ten more")
    await both(analyst)(talk, talk)
    assert said_in(model.requests[0]) == [HOSTILE, "a\u2028b? and ten more"]


async def test_a_reply_that_misses_a_message_is_asked_for_again(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    domains = [{"domain": DOMAINS[0], "confidence": 0.9}]
    model.replies.append({"keywords": [["1", "DNA"]], "domains": domains, "topic": []})
    keywords, _ = await both(analyst)(TALK[:2], TALK)
    assert len(keywords.keywords) == len(model.requests) == 2


async def test_where_the_tasks_have_different_models_nothing_is_combined(make_analyst: MakeAnalyst) -> None:
    analyst = make_analyst(tasks=TaskConfig(domain_model="gpt-4o"))
    assert analyst.read_both is None
    assert FallbackAnalyst(analyst, StubAnalyst()).read_both is None


async def test_when_it_fails_both_fall_back(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.fault = Fault.EMPTY
    with pytest.raises(ReplyInvalid) as raised:
        await both(analyst)(TALK, TALK)
    assert raised.value.usage is not None
    assert raised.value.usage.calls == 3
    keywords, domains = await both(FallbackAnalyst(analyst, StubAnalyst("text"), CircuitBreaker(failures=9)))(
        TALK, TALK
    )
    assert (keywords.analyst, domains.analyst) == ("text", "text")
    assert domains.usage.calls == 3


async def test_over_the_share_of_domains_keywords_are_still_the_models(make_analyst: MakeAnalyst) -> None:
    budget = Budget(1.0)
    with budget.hold("summary", 0.7):
        keywords, domains = await both(FallbackAnalyst(make_analyst(budget=budget), StubAnalyst("text")))(TALK, TALK)
    assert (keywords.analyst, domains.analyst) == ("openai", "text")
