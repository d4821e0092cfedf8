"""Whatever a model server sends, it is read within bounds or ignored, and what it says of itself harms nobody."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.responses import Response

from context_builder.analysis.openai import CallOptions, Endpoint, OpenAIAnalyst
from context_builder.analysis.prompts import load_prompts
from context_builder.errors import AnalystError, AnalystUnavailable, ContentRefused, ReplyInvalid, RequestRefused
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import conversation_state, take_session_state
from context_builder.session.conversation.tasks import AnalysisTask
from context_builder.session.jobs import Jobs, TaskOutcome
from context_builder.testing import ManualClock
from tests.analysis.conftest import MakeAnalyst
from tests.analysis.openai.conversation import TEXTS, said
from tests.services.model_server import FakeModel, ModelServer
from tests.session.saying import conversation, message

MESSAGES = said(*TEXTS)

ABSURD = [-1, 10**23, 2**63, 1e300, math.nan, math.inf, -math.inf, True, "7", "many", [7], {"n": 7}, None]
"""Figures of tokens that no call can have taken, or that are none."""

DEEP = "[" * 100_000
LONG = "x" * 50_000_000


class Asked:
    """A session's conversation, and what its jobs make of the replies."""

    def __init__(self, analyst: OpenAIAnalyst) -> None:
        self.clock = ManualClock()
        self.conversation: Conversation = conversation(self.clock)
        self.conversation.receive([message(n, text) for n, text in enumerate(TEXTS, start=1)], self.clock.now())
        self._jobs = Jobs(analyst, analyst, SessionConfig(jobs=8), self._over)

    def _over(self, done: TaskOutcome) -> None:
        now = self.clock.now()
        if done.result is None:
            self.conversation.fail(done.task, now, done.retry_after, done.usage)
        else:
            self.conversation.finish(done.task, done.result, now)

    async def ask(self) -> dict[str, Any]:
        """Have everything understood; the state that is published then."""
        now = self.clock.now()
        return await self._have_done(
            self.conversation.next_keyword_task(now),
            self.conversation.next_domain_task(now, at_once=True),
            self.conversation.next_summary_task(),
        )

    async def ask_for_points(self) -> dict[str, Any]:
        """Have a summary made; the rolling summary that is published then."""
        summary: dict[str, Any] = (await self._have_done(self.conversation.next_summary_task()))["rolling_summary"]
        return summary

    async def _have_done(self, *works: AnalysisTask | None) -> dict[str, Any]:
        now = self.clock.now()
        async with asyncio.TaskGroup() as tasks:
            for work in filter(None, works):
                self._jobs.start(work, tasks)
        json.loads(conversation_state(self.conversation, now), parse_constant=_refused)
        state: dict[str, Any] = json.loads(
            bytes(take_session_state(self.conversation, 1, now)), parse_constant=_refused
        )
        return state


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("absurd", ABSURD, ids=repr)
async def test_figures_that_cannot_be_are_ignored_and_the_reply_counts(
    analyst: OpenAIAnalyst, model: FakeModel, absurd: object
) -> None:
    figures = {"prompt_tokens": absurd, "completion_tokens": absurd, "prompt_tokens_details": {"cached_tokens": absurd}}
    model.distorted = lambda body: {**body, "usage": figures}
    state = await Asked(analyst).ask()
    assert len(model.requests) == 3
    assert state["current_domains"]
    assert state["rolling_summary"]["points"]
    for task in (state["cost"]["tasks"][name] for name in ("keywords", "domains", "summary")):
        spent = {name: task[name] for name in ("calls", "prompt_tokens", "cached_tokens", "completion_tokens")}
        assert spent == {"calls": 1, "prompt_tokens": 0, "cached_tokens": 0, "completion_tokens": 0}


@pytest.mark.parametrize("usage", [None, [], "free", 7, {"prompt_tokens_details": "none"}], ids=repr)
async def test_usage_in_another_form_is_ignored(analyst: OpenAIAnalyst, model: FakeModel, usage: object) -> None:
    model.distorted = lambda body: {**body, "usage": usage}
    assert (await Asked(analyst).ask())["rolling_summary"]["points"]


async def test_no_more_is_cached_than_was_sent(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    figures = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1_000_000}}
    model.distorted = lambda body: {**body, "usage": figures}
    usage = (await analyst.infer_domains(MESSAGES)).usage
    assert (usage.prompt_tokens, usage.cached_tokens) == (10, 10)
    assert usage.dollars > 0


@pytest.mark.parametrize(
    "choices",
    [{}, "text", [None], [{}], [{"message": None}], [{"message": {"content": ["text"]}}], [[]] * 100_000],
    ids=lambda choices: repr(choices)[:40],
)
async def test_a_completion_without_an_answer_is_invalid(
    analyst: OpenAIAnalyst, model: FakeModel, choices: object
) -> None:
    model.distorted = lambda body: {**body, "choices": choices}
    with pytest.raises(ReplyInvalid):
        await analyst.infer_domains(MESSAGES)


@pytest.mark.parametrize("choices", [None, [], [{"message": None, "finish_reason": "stop"}]], ids=repr)
async def test_an_answer_without_a_choice_is_a_refusal_without_a_reason(
    analyst: OpenAIAnalyst, model: FakeModel, choices: object
) -> None:
    model.distorted = lambda body: {**body, "choices": choices}
    with pytest.raises(RequestRefused):
        await analyst.infer_domains(MESSAGES)
    assert len(model.requests) > 1  # it may be chance


async def test_an_answer_that_names_a_filter_and_has_no_choice_is_a_refusal_of_the_content(
    analyst: OpenAIAnalyst, model: FakeModel
) -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    model.distorted = lambda body: {**{name: body[name] for name in body.keys() - {"choices"}}, **blocked}
    with pytest.raises(ContentRefused):
        await analyst.infer_domains(MESSAGES)


async def test_what_a_filter_found_harmless_is_no_reason(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    verdicts = [{"content_filter_results": {"violence": {"filtered": False, "severity": "safe"}}}]
    model.distorted = lambda body: {**body, "choices": [], "prompt_filter_results": verdicts}
    with pytest.raises(RequestRefused) as refused:
        await analyst.infer_domains(MESSAGES)
    assert not isinstance(refused.value, ContentRefused)


@pytest.mark.parametrize("odd", [7, ["stop"], {}, "other", None], ids=repr)
async def test_an_odd_finish_reason_or_refusal_does_not_spoil_an_answer(
    analyst: OpenAIAnalyst, model: FakeModel, odd: object
) -> None:
    def odd_beside(body: dict[str, Any]) -> dict[str, Any]:
        [choice] = body["choices"]
        return {**body, "choices": [{**choice, "finish_reason": odd}]}

    model.distorted = odd_beside
    assert (await analyst.infer_domains(MESSAGES)).domains


BODIES = {
    "nothing": b"",
    "null": b"null",
    "a number": b"7",
    "a list": b"[]",
    "nested too deeply": DEEP.encode(),
    "nested in what nobody reads": b'{"choices": [], "note": ' + DEEP.encode(),
    "no Unicode": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    "a lone surrogate": b'{"choices": [{"message": {"content": "{\\ud800}"}}]}',
    "endless": b'{"choices": [{"message": {"content": "' + LONG.encode() + b'"}}]}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("status", [200, 400, 500])
async def test_a_body_that_is_no_answer_is_a_failure_told_in_few_words(
    analyst: OpenAIAnalyst, model: FakeModel, body: bytes, status: int
) -> None:
    model.verbatim.extend(Response(body, status, media_type="application/json") for _ in range(3))
    with pytest.raises(AnalystError) as raised:
        await analyst.infer_domains(MESSAGES)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("status", [200, 500])
async def test_of_a_body_no_more_is_read_than_an_answer_can_take(
    make_analyst: MakeAnalyst, model: FakeModel, status: int
) -> None:
    gzip = zlib.compressobj(wbits=31)
    head = gzip.compress(b" ") + gzip.flush(zlib.Z_FULL_FLUSH)
    megabyte = gzip.compress(bytes(1_000_000)) + gzip.flush(zlib.Z_FULL_FLUSH)
    model.verbatim.append(Response(head + 2_000 * megabyte, status, {"Content-Encoding": "gzip"}, "application/json"))
    analyst = make_analyst(attempts=1)
    began = time.process_time()
    with pytest.raises(AnalystError):
        await analyst.infer_domains(MESSAGES)
    assert time.process_time() - began < 1  # two gigabytes take several


@pytest.mark.parametrize(
    "error",
    [None, [], "no", {"code": ["a"]}, {"code": {"a": 1}}, {"code": 10**23}, {"code": "x" * 100_000}, {"message": [1]},
     {"param": {"a": []}}, {"type": 7}],
    ids=lambda error: repr(error)[:40],
)  # fmt: skip
@pytest.mark.parametrize("status", [302, 400, 404, 418, 429, 500, 599])
async def test_an_error_in_another_form_is_an_error_like_others(
    make_analyst: MakeAnalyst, model: FakeModel, error: object, status: int
) -> None:
    response = Response(json.dumps({"error": error}), status, media_type="application/json")
    model.verbatim.extend([response] * 3)
    with pytest.raises(AnalystUnavailable) as raised:
        await make_analyst(attempts=1).infer_domains(MESSAGES)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("wait", "kept"),
    [
        ("-5", 0.0),
        ("1e400", 86_400.0),
        ("nan", None),
        ("-inf", 0.0),
        ("soon", None),
        ("", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 -0000", 86_400.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 86_400.0),
        ("Fri, 99 Dec 2099 99:99:99 GMT", None),
        ("99999999999999999999", 86_400.0),
    ],
)
async def test_an_odd_wait_is_bounded_or_ignored(
    make_analyst: MakeAnalyst, model: FakeModel, wait: str, kept: float | None
) -> None:
    model.verbatim.append(Response("{}", 429, {"Retry-After": wait}, "application/json"))
    with pytest.raises(AnalystUnavailable) as raised:
        await make_analyst(attempts=1).infer_domains(MESSAGES)
    assert raised.value.retry_after == kept


# Contents: the reply of the model itself

_points = [{"text": TEXTS[1], "cites": [2], "kind": "claim", "replaces": 0}]
_good = _points[0]


@pytest.mark.parametrize(
    "odd",
    [None, 7, "text", [], {}, {**_good, "cites": None}, {**_good, "cites": [1.5]}, {**_good, "cites": ["one"]},
     {**_good, "cites": [10**23]}, {**_good, "cites": [-1]}, {**_good, "text": None}],
    ids=repr,
)  # fmt: skip
async def test_a_point_in_another_form_is_rejected_and_the_others_stay(
    analyst: OpenAIAnalyst, model: FakeModel, odd: object
) -> None:
    model.replies.append({"points": [odd, _good], "chatter": False})
    summary = await Asked(analyst).ask_for_points()
    assert [point["text"] for point in summary["points"]] == [TEXTS[1]]
    assert summary["rejected_points"] == 1


@pytest.mark.parametrize("replaces", [None, -1, 10**23, 1.5, "one", True, [1]], ids=repr)
async def test_a_point_that_replaces_nothing_there_is_a_new_one(
    analyst: OpenAIAnalyst, model: FakeModel, replaces: object
) -> None:
    model.replies.append({"points": [{**_good, "replaces": replaces}], "chatter": False})
    assert [point["text"] for point in (await Asked(analyst).ask_for_points())["points"]] == [TEXTS[1]]


async def test_a_messages_number_may_be_a_number(analyst: OpenAIAnalyst, model: FakeModel) -> None:
    model.replies.append({"keywords": [[1, "DNA"], [2, "PCR", None, {"a": 1}]]})
    reading = await analyst.extract_keywords(MESSAGES[:2])
    assert reading.keywords == (("DNA",), ("PCR",))


@pytest.mark.parametrize("confidence", [math.nan, math.inf, 10**400, None, "high", [1]], ids=lambda c: repr(c)[:20])
async def test_a_domain_whose_confidence_is_no_number_is_left_out(
    analyst: OpenAIAnalyst, model: FakeModel, confidence: object
) -> None:
    entries = [{"domain": "Physics / Astronomy", "confidence": confidence}, {"domain": "Biology", "confidence": 0.9}]
    model.replies.append({"domains": [*entries, None, 7], "keywords": ["DNA", None, 7, {}, "x" * 100_000]})
    reading = await analyst.infer_domains(MESSAGES)
    assert reading.confidence == {"Biology / Life Sciences": 0.9}
    assert reading.keywords == ("DNA",)


_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 2**53, 2**63, 10**23, 10**400])
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20)
    | st.sampled_from(["x" * 100_000, "\ud800", "\x00\x1b[2J", "[" * 5000, '{"points": []}', "NaN"])
)
_values = st.recursive(_leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner))


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the parts of ``node`` are, itself included."""
    yield path
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield from _places(value, (*path, key))


def _with(node: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    changed = copy.copy(node)
    changed[path[0]] = _with(node[path[0]], path[1:], value)
    return changed


@pytest.fixture(scope="module")
def ask(served_model: ModelServer) -> Iterator[Callable[[], dict[str, Any]]]:
    """Has a new conversation understood; its state then."""
    calls = CallOptions(attempts=1, first_wait=0.001)
    analyst = OpenAIAnalyst(Endpoint("sk-secret", served_model.base_url), load_prompts(), calls=calls)
    with asyncio.Runner() as runner:
        yield lambda: runner.run(Asked(analyst).ask())
        runner.run(analyst.close())


@settings(
    max_examples=settings.default.max_examples * 3 // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(part="usage", share=0.2, value=-1)
@example(part="usage", share=0.2, value=10**23)
@given(part=st.sampled_from(["answer", "usage", "content"]), share=st.floats(0, 1, exclude_max=True), value=_values)
def test_whatever_stands_in_place_of_any_part_of_a_reply_no_session_ends(
    ask: Callable[[], dict[str, Any]], model: FakeModel, part: str, share: float, value: object
) -> None:
    def elsewhere(node: Any) -> Any:
        places = list(_places(node))
        return _with(node, places[int(share * len(places))], value)

    def distorted(body: dict[str, Any]) -> object:
        if part == "answer":
            return elsewhere(body)
        if part == "usage":
            return {**body, "usage": elsewhere(body["usage"])}
        [choice] = body["choices"]
        content = json.dumps(elsewhere(json.loads(choice["message"]["content"])))
        return {**body, "choices": [{**choice, "message": {"content": content}}]}

    model.distorted = distorted
    state = ask()
    assert all(0 <= confidence <= 1 for confidence in state["domain_confidence"].values())
    assert all(len(word) <= 80 for word in state["current_keywords"])
    assert all(point["ids"] and len(point["text"]) <= 400 for point in state["rolling_summary"]["points"])
    assert all(0 <= spent["prompt_tokens"] < 2**53 for spent in state["cost"]["tasks"].values())
