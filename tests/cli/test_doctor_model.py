"""What the doctor says about a model: what came of each task, and what to set."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import orjson
import pytest
from redis import Redis
from starlette.responses import HTMLResponse, JSONResponse
from typer.testing import CliRunner

from context_builder.cli import app
from context_builder.cli.doctor import CheckResult, with_model_tasks
from context_builder.cli.model_tasks import EVERY_TASK, TASKS, TaskAnswer, try_tasks
from context_builder.settings.settings import Settings, load_settings
from tests.analysis.openai.odd_servers import completion, error, form_of
from tests.services.model_server import FakeModel, ModelServer
from tests.services.redis_server import RedisServer


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
    assert (told.task, "OPENAI_API_KEY" in told.found) == (EVERY_TASK, True)


def test_a_web_page_in_place_of_an_answer_is_no_fault_of_the_models_name(model: FakeModel) -> None:
    model.oddly = lambda *_: HTMLResponse("<title>Chat</title>")
    (answer,) = tried().values()
    assert "it is a web page; check OPENAI_BASE_URL" in answer.found
    assert "set another model" not in answer.advice


def test_a_model_that_hangs_is_given_up_and_told_once(model: FakeModel) -> None:
    model.latency = dict.fromkeys(TASKS, 2.0)
    (told,) = tried(0.2).values()
    assert told.found.endswith(": no answer within 0.2 s")


@pytest.mark.engines
def test_a_model_that_refuses_everything_is_one_failure(
    model: FakeModel, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)
    monkeypatch.setenv("ARCHIVE", "off")
    monkeypatch.setenv("MEMORY", "off")
    with Redis.from_url(redis_server.url) as redis:
        redis.flushall()
    model.oddly = lambda *_: JSONResponse({}, 401)
    findings = orjson.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    failed = [one for one in findings if not one["ok"]]
    assert [one["check"] for one in failed] == ["model"]
    assert [one["check"] for one in failed] == ["model"]
    assert "OPENAI_API_KEY" in failed[0]["found"]


def test_the_tasks_of_the_model_that_answers_are_told_beside_the_one_that_does_not() -> None:
    model, silent = (
        CheckResult("model", ok=False, found="no answer"),
        CheckResult(EVERY_TASK, ok=False, found="refused"),
    )
    clock, keywords = CheckResult("clock", ok=True, found="right"), CheckResult("keywords", ok=True, found="3 keywords")
    assert with_model_tasks([model, clock], [silent, keywords]) == [silent, clock, keywords]


def test_a_model_that_fails_at_some_tasks_is_told_of_each() -> None:
    findings, tasks = [CheckResult("model", ok=False, found="no")], [CheckResult("keywords", ok=False, found="cut off")]
    assert with_model_tasks(findings, tasks) == [*findings, *tasks]
