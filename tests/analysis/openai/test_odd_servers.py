"""Every server that speaks most of OpenAI's API is understood, and asked no more often than it takes to learn how."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response

from context_builder.analysis.analyst import SummaryRequest
from context_builder.analysis.halving import HalvingAnalyst
from context_builder.analysis.openai import Endpoint, OpenAIAnalyst
from context_builder.analysis.openai.refusals import ServerError, explained
from context_builder.analysis.prompts import load_prompts
from context_builder.analysis.text.analyst import TextAnalyst
from context_builder.errors import AnalystError, AnalystUnavailable, ContentRefused, ReplyInvalid, RequestRefused
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.openai.conversation import TEXTS, said
from tests.analysis.openai.odd_servers import ODDITIES, Oddity, completion, error, form_of, limit_of, thinks
from tests.services.model_server import FakeModel, ModelServer

MESSAGES = said(*TEXTS)


@pytest.mark.parametrize("oddity", ODDITIES.values(), ids=ODDITIES)
async def test_an_odd_server_is_understood(
    analyst: OpenAIAnalyst, model: FakeModel, oddity: Callable[[], Oddity]
) -> None:
    model.oddly = oddity()
    assert (await analyst.extract_keywords(MESSAGES[:1])).keywords[0] not in ((), ("draft",))
    assert (await analyst.infer_domains(MESSAGES)).domains
    assert (await analyst.summarize(SummaryRequest(MESSAGES))).points


@pytest.mark.parametrize("oddity", ODDITIES.values(), ids=ODDITIES)
async def test_what_a_server_takes_is_learnt_once(
    analyst: OpenAIAnalyst, model: FakeModel, oddity: Callable[[], Oddity]
) -> None:
    model.oddly = oddity()
    await analyst.extract_keywords(MESSAGES[:1])
    await analyst.extract_keywords(MESSAGES[1:2])
    model.requests.clear()
    await analyst.extract_keywords(MESSAGES[1:2])
    assert len(model.requests) == 1


async def test_a_refusal_without_a_reason_is_not_blamed_on_the_api_once_it_was_answered(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    await analyst.infer_domains(MESSAGES)
    model.oddly = lambda *_: error(400, "no")
    with pytest.raises(RequestRefused):
        await analyst.infer_domains(MESSAGES)
    model.oddly = lambda *_: None
    await analyst.infer_domains(MESSAGES)
    assert [form_of(request) for request in model.requests] == ["json_schema"] * 3


async def test_what_did_not_help_is_not_remembered(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.oddly = lambda *_: error(400, "no")
    with pytest.raises(RequestRefused):
        await analyst.infer_domains(MESSAGES)
    assert [form_of(request) for request in model.requests] == ["json_schema", "json_object", ""]
    model.oddly = lambda *_: None
    await analyst.infer_domains(MESSAGES)
    assert form_of(model.requests[-1]) == "json_schema"


@pytest.mark.parametrize(
    "refusal",
    [
        error(400, "The response was filtered", "content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        error(400, "Input data may contain inappropriate content.", "data_inspection_failed"),
        error(403, "The model requires moderation. Your input was flagged", 403, metadata={"reasons": ["violence"]}),
        error(400, "litellm.ContentPolicyViolationError: see our policy", "400"),
        JSONResponse({"error": {"message": "filtered", "code": "content_filter"}}),
        completion({"content": ""}, "content_filter"),
        completion({"content": None}, "SAFETY"),
        completion({"content": "Sorry, the model cannot answer this question."}, "guardrail_intervened"),
        JSONResponse({"choices": [{"message": None, "finish_reason": None, "native_finish_reason": "SAFETY"}]}),
        JSONResponse({"choices": [{"message": {"content": ""}, "native_finish_reason": "PROHIBITED_CONTENT"}]}),
        JSONResponse({"choices": [{"index": 0, "finish_details": {"type": "content_filter"}}]}),
        JSONResponse({"choices": [{"message": {"content": ""}, "finish_details": {"type": "content_filter"}}]}),
        error(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        error(413, "Request too large", "rate_limit_exceeded"),
        error(400, "the request exceeds the available context size", 400, type="exceed_context_size_error"),
    ],
)  # fmt: skip
async def test_a_refusal_of_what_is_said_is_told_from_others(
    analyst: OpenAIAnalyst, model: FakeModel, refusal: Response
) -> None:
    model.oddly = lambda *_: refusal
    with pytest.raises(ContentRefused):
        await analyst.infer_domains(MESSAGES)
    assert len(model.requests) == 1


@pytest.mark.parametrize("in_body", [False, True])
@pytest.mark.parametrize(
    ("status", "said", "hint"),
    [
        (429, {"code": 429, "message": "Rate limit"}, "over its rate limit"),
        (503, {"status": "UNAVAILABLE", "message": "overloaded"}, "failed \\(503\\)"),
        (401, {"code": 401, "message": "no auth"}, "check OPENAI_API_KEY"),
        (402, {"code": 402, "message": "Insufficient credits"}, "plan and billing"),
    ],
)
async def test_an_error_in_an_answer_is_the_error_that_it_names(
    make_analyst: MakeAnalyst, model: FakeModel, status: int, said: dict[str, object], hint: str, *, in_body: bool
) -> None:
    model.oddly = lambda *_: JSONResponse({"error": said}, 200 if in_body else status)
    with pytest.raises(AnalystUnavailable, match=hint):
        await make_analyst(attempts=1).infer_domains(MESSAGES)


async def test_a_refused_key_is_told_in_the_servers_words(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    model.oddly = lambda *_: JSONResponse({"error": {"message": "This key was revoked"}}, 401)
    with pytest.raises(
        AnalystUnavailable, match=r"refuses the key \(401\): “This key was revoked”; check OPENAI_API_KEY"
    ):
        await make_analyst(attempts=1).infer_domains(MESSAGES)


@pytest.mark.parametrize("status", [200, 403, 503])
async def test_a_page_is_told_in_few_words_of_our_own(make_analyst: MakeAnalyst, model: FakeModel, status: int) -> None:
    model.oddly = lambda *_: HTMLResponse("<html><title>Blocked by secret rule</title></html>", status)
    with pytest.raises(AnalystError) as raised:
        await make_analyst(attempts=1).infer_domains(MESSAGES)
    assert "secret" not in str(raised.value)
    assert len(str(raised.value)) < 150


def _in_seconds(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "message", "least", "most"),
    [
        ({"retry-after-ms": "1500"}, "", 1.5, 1.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5, 1.5),
        ({"retry-after": "1m2.5s"}, "", 62.5, 62.5),
        ({"retry-after": "700ms"}, "", 0.7, 0.7),
        ({"retry-after": "DATE"}, "", 6.5, 9.0),
        ({}, "Please try again in 4.2s.", 4.2, 4.2),
        ({}, "Please retry after 7 seconds", 7, 7),
        ({}, "Quota exceeded, check your plan and billing. Retry in 38.5s.", 38.5, 38.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, "", 360, 360),
        ({"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6m0s"}, "", None, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "EPOCH"}, "", 6.5, 9.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, "", None, None),
        ({}, "nothing of use", None, None),
    ],
)
async def test_the_wait_that_a_server_asks_for_is_read_in_any_form(
    make_analyst: MakeAnalyst,
    model: FakeModel,
    headers: dict[str, str],
    message: str,
    least: float | None,
    most: float | None,
) -> None:
    times = {"DATE": _in_seconds(8), "EPOCH": str(int((time.time() + 8) * 1000))}
    headers = {name: times.get(value, value) for name, value in headers.items()}
    model.oddly = lambda *_: JSONResponse({"error": {"message": message}}, 429, headers)
    with pytest.raises(AnalystUnavailable) as raised:
        await make_analyst(attempts=1).infer_domains(MESSAGES)
    wait = raised.value.retry_after
    assert wait == least if wait is None or least is None or most is None else least <= wait <= most


async def test_a_reset_that_is_told_in_the_body_is_a_wait(make_analyst: MakeAnalyst, model: FakeModel) -> None:
    told = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int((time.time() + 40) * 1000))}
    model.oddly = lambda *_: JSONResponse({"error": {"code": 429, "metadata": {"headers": told}}}, 429)
    with pytest.raises(AnalystUnavailable) as raised:
        await make_analyst().infer_domains(MESSAGES)
    assert len(model.requests) == 1
    assert raised.value.retry_after == pytest.approx(40, abs=2)


async def test_an_account_that_affords_fewer_tokens_is_asked_for_fewer_until_it_affords_more(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    told = "This request requires more credits, or fewer max_tokens. You requested up to 400, but can only afford 120."
    model.oddly = lambda asked, _: error(402, told, 402) if limit_of(asked) > 120 else None
    assert (await analyst.infer_domains(MESSAGES)).domains
    model.oddly = lambda *_: None
    await analyst.infer_domains(MESSAGES)
    assert [limit_of(request) for request in model.requests] == [400, 120, 400]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (error(500, "model requires more system memory (5.3 GiB) than is available (3.5 GiB)"), "too little memory"),
        (Response("{}", 200, {"content-encoding": "gzip"}, "application/json"), "cannot be unpacked"),
    ],
)
async def test_what_fails_is_told(make_analyst: MakeAnalyst, model: FakeModel, answer: Response, told: str) -> None:
    model.oddly = lambda *_: answer
    with pytest.raises(AnalystUnavailable, match=told):
        await make_analyst(attempts=1).infer_domains(MESSAGES)


async def test_a_page_that_forbids_one_message_holds_up_no_other(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.oddly = lambda asked, _: HTMLResponse("<h1>403 Forbidden</h1>", 403) if "helicase" in str(asked) else None
    result = await HalvingAnalyst(analyst, [TextAnalyst()]).summarize(SummaryRequest(MESSAGES))
    assert (result.analyst, result.refused) == (analyst.name, 1)


@pytest.mark.parametrize("figure", [7, 7.0])
async def test_tokens_are_counted_that_are_told_as_whole_numbers_of_any_form(
    analyst: OpenAIAnalyst, model: FakeModel, figure: float
) -> None:
    model.distorted = lambda body: {**body, "usage": {"prompt_tokens": figure, "completion_tokens": figure}}
    usage = (await analyst.infer_domains(MESSAGES)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (7, 7)


async def test_a_wait_in_milliseconds_is_kept(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.verbatim.append(Response("{}", 429, {"Retry-After-Ms": "400"}, "application/json"))
    begun = time.monotonic()
    await analyst.infer_domains(MESSAGES)
    assert time.monotonic() - begun >= 0.4


async def test_the_same_cut_off_is_never_asked_for_three_times(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.oddly = lambda asked, text: completion({"content": text[:15]}, "length")
    for _ in range(3):
        with pytest.raises(ReplyInvalid, match="cut off at its token limit"):
            await analyst.infer_domains(MESSAGES)
    limits = [limit_of(request) for request in model.requests]
    assert limits == [400, 800, 1600, 3200, 3200]


async def test_thoughts_get_more_room_only_up_to_a_bound(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.oddly = thinks(10**6, takes_effort=False)
    for _ in range(4):
        with pytest.raises(ReplyInvalid, match="in its thoughts"):
            await analyst.infer_domains(MESSAGES)
    assert limit_of(model.requests[-1]) == 400 + 32_768


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "model_length", "model_context_window_exceeded"])
async def test_what_is_whole_of_a_reply_that_was_cut_off_is_read(
    analyst: OpenAIAnalyst, model: FakeModel, reason: str
) -> None:
    model.oddly = lambda *_: completion({"content": '{"keywords": ["DNA", "helicase", "poly'}, reason)
    assert (await analyst.extract_keywords(MESSAGES[:1])).keywords == (("DNA", "helicase"),)
    await analyst.extract_keywords(MESSAGES[:1])
    assert [limit_of(request) for request in model.requests] == [100, 200]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("The freezer failed on Monday night.", 100),
        ("Die Kühlung fiel gestern früh aus.", 100),
        ("Морозильник сломался ночью.", 200),
        ("冷凍庫が月曜日の夜に故障しました。", 300),
        ("सोमवार की रात फ्रीजर खराब हो गया।", 300),
    ],
)
async def test_a_reply_has_as_much_room_as_its_language_takes(
    analyst: OpenAIAnalyst, model: FakeModel, text: str, limit: int
) -> None:
    await analyst.extract_keywords(said(text))
    assert limit_of(model.requests[-1]) == limit


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            JSONResponse({"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
            "check OPENAI_BASE_URL",
        ),
        (error(400, "API key not valid.", 400, details=[{"reason": "API_KEY_INVALID"}]), "check OPENAI_API_KEY"),
        (Response("404 page not found", 404), "check OPENAI_BASE_URL"),
        (JSONResponse({"detail": "Method Not Allowed"}, 405), "check OPENAI_BASE_URL"),
        (
            JSONResponse({"success": False, "errors": [{"code": 7003, "message": "Could not route to /x"}]}, 404),
            "check OPENAI_BASE_URL",
        ),
        (
            error(400, "The requested model 'x' is not supported by any provider.", "model_not_supported"),
            "model's name",
        ),
        (
            JSONResponse({"code": "Client specified an invalid argument", "error": "Incorrect API key provided."}, 400),
            "check OPENAI_API_KEY",
        ),
        (error(400, "No models loaded. Please load a model.", param="model"), "model's name"),
        (JSONResponse({"message": "Invalid model: x", "type": "invalid_model", "code": "1500"}, 400), "model's name"),
        (JSONResponse({"detail": "Invocation of model ID x with on-demand throughput isn’t"}, 400), "model's name"),
        (error(404, "no deployment", "DeploymentNotFound"), "model's name"),
        (error(429, "check your plan and billing details", type="exceeded_current_quota_error"), "plan and billing"),
        (JSONResponse({"error": {"code": "1113", "message": "余额不足或无可用资源包"}}, 429), "plan and billing"),
        (error(400, "Your credit balance is too low to access the API."), "plan and billing"),
        (error(400, "Budget has been exceeded!", type="budget_exceeded"), "plan and billing"),
    ],
)
async def test_a_wrong_address_model_or_account_is_told_however_the_server_says_it(
    analyst: OpenAIAnalyst, model: FakeModel, answer: Response, told: str
) -> None:
    model.oddly = lambda *_: answer
    with pytest.raises(AnalystUnavailable, match=told):
        await analyst.infer_domains(MESSAGES)
    assert len(model.requests) == 1


async def test_a_window_too_small_for_the_limit_bounds_that_reply_alone(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    model.oddly = ODDITIES["vLLM, a small window"]()
    await analyst.summarize(SummaryRequest(MESSAGES))
    assert [limit_of(request) for request in model.requests[:2]] == [3000, 300]
    model.oddly = lambda *_: None
    await analyst.summarize(SummaryRequest(MESSAGES))
    assert 3000 in [limit_of(request) for request in model.requests[2:]]


async def test_a_window_that_leaves_no_room_is_about_the_messages(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    said = (
        "maximum context length is 2048 tokens. However, you requested 5000 tokens (2000 in the messages, 3000 in the"
    )
    model.oddly = lambda *_: error(400, said, 400)
    with pytest.raises(ContentRefused):
        await analyst.infer_domains(MESSAGES)


async def test_a_token_of_entra_id_goes_as_a_bearer_alone(model_server: ModelServer, model: FakeModel) -> None:
    analyst = OpenAIAnalyst(Endpoint("eyJh.eyJi.c", f"{model_server.base_url}?api-version=1"), load_prompts())
    seen: list[tuple[str | None, str | None]] = []
    model.heard = lambda request: seen.append((request.headers.get("authorization"), request.headers.get("api-key")))
    assert (await analyst.infer_domains(MESSAGES)).domains
    await analyst.close()
    assert seen == [("Bearer eyJh.eyJi.c", None)]


async def test_a_query_of_the_base_url_goes_with_each_request(model_server: ModelServer, model: FakeModel) -> None:
    url = f"{model_server.base_url}?api-version=2024-10-21"
    analyst = OpenAIAnalyst(Endpoint("sk-secret", url), load_prompts())
    seen: list[tuple[str, str | None]] = []
    model.heard = lambda request: seen.append((str(request.url), request.headers.get("api-key")))
    assert (await analyst.infer_domains(MESSAGES)).domains
    await analyst.close()
    assert seen == [(f"{model_server.base_url}/chat/completions?api-version=2024-10-21", "sk-secret")]


@pytest.mark.parametrize("shape", ["{", '{"a":', '{"keywords": ["', '"{', "</think>{"])
async def test_a_reply_of_nothing_but_beginnings_is_read_soon(
    make_analyst: MakeAnalyst, model: FakeModel, shape: str
) -> None:
    for finish in ("stop", "length"):
        model.oddly = lambda *_, finish=finish: completion({"content": shape * (4_000_000 // len(shape))}, finish)
        began = time.process_time()
        with suppress(ReplyInvalid):
            await make_analyst(attempts=1, timeout=30.0).infer_domains(MESSAGES)
        assert time.process_time() - began < 5


async def test_a_server_that_knows_only_the_newer_limit_is_asked_with_it_again(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    cut = ODDITIES["TGI, a limit by its newer name is not seen"]()

    def answered(asked: dict[str, Any], text: str) -> Response | None:
        if "max_tokens" in asked:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        return cut(asked, text) if len(model.requests) == 1 else None

    model.oddly = answered
    assert (await analyst.infer_domains(MESSAGES)).domains
    assert [("max_tokens" in asked) for asked in model.requests] == [False, True, False]


@pytest.mark.parametrize(
    "answer",
    [
        error(200, "Unexpected endpoint or method. (POST /chat/completions)"),
        JSONResponse({"detail": "Not Found"}, 404),
        Response("404 page not found", 404),
        Response("Not Found", 404),
    ],
    ids=["LM Studio", "vLLM", "Ollama", "others"],
)
def test_an_address_without_v1_is_named(answer: Response) -> None:
    told = SimpleNamespace(content=answer.body, status_code=answer.status_code, headers={})
    said = (
        ServerError.of_body(json.loads(answer.body)) if answer.status_code == 200 else ServerError.of_response(told, "")
    )
    wrong = explained(said, Endpoint("key", "http://127.0.0.1:1234"), "gpt-4o", "")
    assert "has nothing at this address (404: " in str(wrong)
    assert "check OPENAI_BASE_URL: most servers want /v1 at its end" in str(wrong)
    assert "/v1 at" not in str(explained(said, Endpoint("key", "http://127.0.0.1:1234/v1"), "gpt-4o", ""))
    unknown = ServerError.of_body({"error": {"message": "The model `x` does not exist.", "code": 404}})
    assert "does not know x" in str(explained(unknown, Endpoint("key", "http://127.0.0.1:1234"), "x", ""))


@pytest.mark.parametrize(
    ("status", "message"),
    [(503, "Could not route to a healthy upstream"), (429, "No route matched with free capacity")],
)
def test_an_answer_that_names_its_status_and_a_route_has_that_status(status: int, message: str) -> None:
    told = ServerError.of_body({"error": {"code": status, "message": message}})
    failed = explained(told, Endpoint("key", "http://127.0.0.1:1234/v1"), "gpt-4o", "")
    assert (told.status, type(failed)) == (status, AnalystUnavailable)
