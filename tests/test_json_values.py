"""Values of JSON that another program wrote."""

from __future__ import annotations

import math

import pytest

from context_builder.json_values import list_of, number_of, object_of, objects_of, texts_of

ODD = [None, True, 0, 1.5, "text", [], [1, {"a": 1}], {}, {"a": 1}]


@pytest.mark.parametrize("value", ODD)
def test_a_value_of_another_type_counts_as_missing(value: object) -> None:
    assert object_of(value) == (value if isinstance(value, dict) else {})
    assert list_of(value) == (value if isinstance(value, list) else [])
    assert objects_of(value) == ([{"a": 1}] if value == [1, {"a": 1}] else [])


def test_texts_have_a_longest_length() -> None:
    assert texts_of(["word", 7, None]) == ["word", "7", "None"]
    assert texts_of(["word", "a"], 2) == ["wo", "a"]
    assert texts_of("word") == []


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), (0.5, 0.5), (True, None), ("1", None), (math.nan, None), (math.inf, None)]
)
def test_numbers_are_finite(value: object, number: float | None) -> None:
    assert number_of(value) == number
