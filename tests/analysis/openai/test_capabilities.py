"""Servers that speak only a part of the API are met half-way, and the part is remembered."""

from __future__ import annotations

import pytest

from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.openai.capabilities import Capabilities
from tests.analysis.openai.conversation import TEXTS, said
from tests.services.model_server import FakeModel

MESSAGES = said(*TEXTS)


async def test_a_refused_schema_is_put_into_the_prompt_once_and_for_all(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    model.refuses = {"json_schema"}
    assert (await analyst.extract_keywords(MESSAGES)).keywords[0]
    assert (await analyst.infer_domains(MESSAGES)).domains
    formats = [request["response_format"]["type"] for request in model.requests]
    assert formats == ["json_schema", "json_object", "json_object"]
    assert '"enum"' in model.requests[-1]["messages"][0]["content"]


@pytest.mark.parametrize("part", ["max_completion_tokens", "temperature"])
async def test_a_refused_parameter_is_left_out_from_then_on(
    analyst: OpenAIAnalyst, model: FakeModel, part: str
) -> None:
    model.refuses = {part}
    await analyst.extract_keywords(MESSAGES)
    await analyst.extract_keywords(MESSAGES)
    assert [part in request for request in model.requests] == [True, False, False]
    assert model.requests[-1].get("max_tokens" if part == "max_completion_tokens" else part) in (400, None)


async def test_a_server_that_refuses_everything_is_still_understood(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.refuses = {"json_schema", "temperature", "max_completion_tokens"}
    assert (await analyst.infer_domains(MESSAGES)).domains
    assert len(model.requests) == 4


async def test_a_server_that_ignores_the_schema_has_been_told_it(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.ignores_schema = True
    assert (await analyst.infer_domains(MESSAGES)).domains
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("base_url", "shows"),
    [
        (None, True),
        ("https://api.openai.com/v1", True),
        ("http://127.0.0.1:8080/v1", False),
        ("https://api.openai.com.example/v1", False),
    ],
)
def test_only_openai_itself_is_known_to_show_the_model_the_schema(base_url: str | None, shows: bool) -> None:
    assert Endpoint("", base_url).shows_schema == shows


def test_a_part_no_longer_used_cannot_be_refused() -> None:
    capabilities = Capabilities(temperature=False)
    assert capabilities.refused_part("temperature is not supported") is None
    assert capabilities.refused_part("Unknown field: max_completion_tokens") == "max_completion_tokens"
    assert capabilities.refused_part("the response_format is not supported") == "json_schema"
    assert capabilities.refused_part("something else") is None
