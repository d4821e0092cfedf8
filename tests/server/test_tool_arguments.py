"""Arguments are understood as models write them."""

from __future__ import annotations

from typing import Any

import pytest

from context_builder.server.agent_server import given_arguments, unknown_argument

SCHEMA = {
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer", "default": 8},
        "pointId": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "projectId": {"type": "string", "default": ""},
        "sessionIds": {"type": "array", "items": {"type": "string"}, "default": []},
    },
    "required": ["query"],
}


@pytest.mark.parametrize("absent", [None, "null", "NULL", "", "  ", "None", "undefined", "nil"])
@pytest.mark.parametrize("name", ["limit", "pointId", "projectId", "sessionIds", "project_id", "session_ids"])
def test_what_stands_for_nothing_is_not_given(name: str, absent: Any) -> None:
    assert given_arguments({"query": "boiler", name: absent}, SCHEMA) == {"query": "boiler"}


def test_a_required_argument_stays_as_it_is_written() -> None:
    assert given_arguments({"query": "null"}, SCHEMA) == {"query": "null"}
    assert given_arguments({"query": None}, SCHEMA) == {}  # which is then required


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["monday", "null", None, "", 7], ["monday", "7"]),
        ('["monday", "friday"]', ["monday", "friday"]),
        ("['monday', 'friday']", ["monday", "friday"]),
        ("monday", ["monday"]),
        ("monday, friday", ["monday", "friday"]),
        ("monday\nfriday", ["monday", "friday"]),
        ("[]", []),
        (["null"], []),
        ("[null]", []),
        (7, ["7"]),
        ("7", ["7"]),
    ],
)
def test_a_list_is_read_however_it_is_written(written: Any, read: list[str]) -> None:
    assert given_arguments({"sessionIds": written}, SCHEMA) == {"sessionIds": read}


@pytest.mark.parametrize(
    ("name", "written", "read"),
    [
        ("limit", " 5 ", "5"),  # as a number, the tool's own model reads it
        ("query", 42, "42"),
        ("project_id", 7, "7"),
        ("limit", "many", "many"),
        ("unknown", {"a": 1}, {"a": 1}),
    ],
)
def test_a_number_may_be_text_and_a_text_a_number(name: str, written: Any, read: Any) -> None:
    [value] = given_arguments({name: written}, SCHEMA).values()
    assert value == read


def test_an_argument_that_is_not_known_is_named_with_the_nearest() -> None:
    assert unknown_argument({"query": "boiler"}, SCHEMA) is None
    assert unknown_argument({"sessionId": "a"}, SCHEMA) == "sessionId is not known; did you mean sessionIds?"
    assert str(unknown_argument({"verbose": True}, SCHEMA)).startswith("verbose is not known; there are: query, ")
    assert str(unknown_argument({"obey: me!": 1}, SCHEMA)).startswith("an argument is not known; ")
