"""A model to ask that misbehaves on command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst, TaskConfig
from context_builder.analysis.prompts import load_prompts
from context_builder.costs import Budget
from tests.services.model_server import FakeModel, ModelServer

MakeAnalyst = Callable[..., OpenAIAnalyst]


@pytest.fixture(scope="module")
def served_model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model_server(served_model: ModelServer) -> ModelServer:
    """The fake model's server, well-behaved at the start of the test."""
    served_model.model.reset()
    return served_model


@pytest.fixture
def model(model_server: ModelServer) -> FakeModel:
    return model_server.model


@pytest.fixture
async def make_analyst(model_server: ModelServer) -> AsyncIterator[MakeAnalyst]:
    """Makes analysts that ask the fake model, hardly waiting between tries."""
    made: list[OpenAIAnalyst] = []

    def make(budget: Budget | None = None, tasks: TaskConfig | None = None, **options: float) -> OpenAIAnalyst:
        calls = CallOptions(**{"timeout": 5.0, "first_wait": 0.001, **options})  # type: ignore[arg-type]
        endpoint = Endpoint("sk-secret", model_server.base_url)
        made.append(OpenAIAnalyst(endpoint, load_prompts(), tasks=tasks, calls=calls, budget=budget))
        return made[-1]

    yield make
    for analyst in made:
        await analyst.close()


@pytest.fixture
def analyst(make_analyst: MakeAnalyst) -> OpenAIAnalyst:
    return make_analyst()
