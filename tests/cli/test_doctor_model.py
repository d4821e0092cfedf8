"""What the doctor says about a model: what came of each task, and what to set."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from starlette.responses import JSONResponse

from context_builder.cli.model_tasks import TASKS, TaskAnswer, try_tasks
from context_builder.settings.settings import Settings, load_settings
from tests.analysis.openai.odd_servers import completion, error, form_of
from tests.services.model_server import FakeModel, ModelServer


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModel]:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("LLM_ATTEMPTS", "1")
        yield server.model


def tried(patience: float = 10.0) -> dict[str, TaskAnswer]:
    answers = asyncio.run(try_tasks(settings(), patience))
    return {answer.task: answer for answer in answers}


def settings() -> Settings:
    return load_settings()


def test_each_task_is_tried_once(model: FakeModel) -> None:
    answers = tried()
    assert list(answers) == list(TASKS)
    assert all(answer.ok and not answer.advice for answer in answers.values())
    assert "points in" in answers["summary"].found
    assert len(model.requests) == len(TASKS)


def test_nothing_is_tried_where_no_model_is_configured() -> None:
    assert asyncio.run(try_tasks(settings(), 1.0)) == []


def test_what_the_server_does_not_take_is_told(model: FakeModel) -> None:
    model.oddly = lambda asked, _: error(400, "no schema, please") if form_of(asked) == "json_schema" else None
    assert "the schema is put into the prompt" in tried()["summary"].advice


def test_what_to_set_is_told_of_a_reply_that_is_cut_off(model: FakeModel) -> None:
    model.oddly = lambda *_: completion({"content": '{"'}, "length")
    answers = tried()
    assert not any(answer.ok for answer in answers.values())
    assert "SUMMARY_REPLY_TOKENS" in answers["summary"].advice
    assert "KEYWORD_MAX_TOKENS" in answers["keywords"].advice


def test_a_refused_key_is_told_once_for_all_tasks(model: FakeModel) -> None:
    model.oddly = lambda *_: JSONResponse({}, 401)
    (told,) = tried().values()
    assert (told.task, "OPENAI_API_KEY" in told.found) == ("tasks", True)


def test_a_model_that_hangs_is_given_up(model: FakeModel) -> None:
    model.latency = dict.fromkeys(TASKS, 2.0)
    assert {answer.found for answer in tried(0.2).values()} == {"no answer within 0.2 s"}
