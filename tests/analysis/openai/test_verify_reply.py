"""Verdicts on points are read in every form that models give them; what is unclear is no verdict."""

from __future__ import annotations

import pytest

from context_builder.analysis.openai.reply import parse_reply
from context_builder.analysis.openai.schemas import VerifyReply
from context_builder.errors import ReplyInvalid


@pytest.mark.parametrize(
    ("content", "verdicts"),
    [
        ('{"verdicts":[{"number":2,"supported":false},{"number":1,"supported":true}]}', (True, False)),
        ('{"verdicts":[{"number":"1","supported":"yes"},[]]}', (True, None)),
        ('{"verdicts":[{"number":1,"supported":true},{"number":1,"supported":false}]}', (None, None)),
        ('{"verdicts":[{"number":3,"supported":true}]}', (None, None)),
        ('{"supported":[true,false]}', (True, False)),
        ('{"verdicts":["yes",7]}', (True, None)),
    ],
)
def test_each_point_has_its_verdict_or_none(content: str, verdicts: tuple[bool | None, ...]) -> None:
    assert parse_reply(VerifyReply, content).of(2) == verdicts


@pytest.mark.parametrize("content", ["{}", '{"verdicts":null}', "Yes, all of them."])
def test_a_reply_without_verdicts_is_invalid(content: str) -> None:
    with pytest.raises(ReplyInvalid):
        parse_reply(VerifyReply, content)
