"""Why a model call failed is published with the session: nothing of keys, passwords and people's words stands in it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_builder.analysis.openai.refusals import ServerError, explained
from context_builder.analysis.openai.reply import parse_reply
from context_builder.analysis.openai.schemas import SummaryReply
from context_builder.analysis.options import Endpoint
from context_builder.errors import ReplyInvalid
from context_builder.session.failures import reason_of

KEY = "sk-Zq7mXw2pLr9v"
ENDPOINT = Endpoint(KEY, "https://me:pass-phrase@gateway.example:8443/v1")
SAID = "Ida marries Bo in Oslo"
SENT = f"Summarize what was said.\nAlice: {SAID}."
SECRETS = (KEY, KEY.casefold(), KEY[3:], "pass-phrase", "marries", "Oslo", "oslo")

STATUSES = (400, 401, 402, 403, 404, 408, 413, 422, 429, 451, 500, 503, 307)

echoes = st.sampled_from(
    [SAID, SAID.casefold(), "oslo", "marries", KEY, KEY.casefold(), KEY[3:], ENDPOINT.base_url, SENT]
)
names = st.sampled_from(["error", "message", "code", "type", "status", "reason", "detail", "param"])
answers = st.recursive(echoes, lambda inner: st.dictionaries(names, inner, max_size=3) | st.lists(inner, max_size=2))


@given(answers, st.sampled_from(STATUSES))
def test_whatever_a_server_repeats_is_not_in_the_reason(answer: Any, status: int) -> None:
    headers = {"location": f"https://me:pass-phrase@{KEY}.example/"} if status == 307 else {}
    response = SimpleNamespace(content=orjson.dumps(answer), status_code=status, headers=headers)
    for error in (ServerError.of_response(response, f"{ENDPOINT.base_url}/chat"), ServerError.of_body(answer)):
        told = reason_of(explained(error, ENDPOINT, "gpt-4o", SENT))
        assert [secret for secret in SECRETS if secret in told] == []


@pytest.mark.parametrize("code", ["unsupported_parameter", "invalid_request_error", "context-limit"])
def test_codes_that_servers_use_are_told(code: str) -> None:
    told = str(explained(ServerError.of_body({"code": code, "status": 400}), ENDPOINT, "gpt-4o", SENT))
    assert (code in told) == (code != "context-limit")


@pytest.mark.parametrize(
    "reply",
    [
        {SAID: 1},
        {"points": [{SAID: SAID}]},
        {"chatter": SAID, "points": SAID},
        [SAID],
    ],
)
def test_what_a_model_wrote_is_not_in_the_reason(reply: Any) -> None:
    with pytest.raises(ReplyInvalid) as raised:
        parse_reply(SummaryReply, orjson.dumps(reply).decode())
    assert SAID not in reason_of(raised.value)


def test_of_an_error_that_is_not_ours_only_its_name_and_place_are_told() -> None:
    assert reason_of(ValueError(f"{SAID} {KEY}")) == "ValueError"
