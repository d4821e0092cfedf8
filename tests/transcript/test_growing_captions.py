"""Captions that are saved each time they grow are heard once, in their last state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.transcript.reading import heard

STATES: list[tuple[str, str, str]] = [
    ("c1", "ida", "The pump"),
    ("c2", "bo", "Which"),
    ("c1", "ida", "The pomp in the cellar"),
    ("c1", "ida", "The pump in the cellar came. I think."),
    ("c2", "bo", "Which one?"),
    ("c3", "ida", "The small one."),
]
LAST = ["ida | The pump in the cellar came. I think.", "bo | Which one?", "ida | The small one."]


def _states(name: str, states: list[tuple[str, str, str]] = STATES) -> list[dict[str, Any]]:
    return [{name: key, "speaker": who, "text": text} for key, who, text in states]


def _lines(entries: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in entries)


@pytest.mark.parametrize("name", ["id", "captionId", "utterance_id", "messageId"])
def test_states_of_a_caption_with_an_id_are_one(tmp_path: Path, name: str) -> None:
    assert heard(tmp_path, "a.jsonl", _lines(_states(name))) == LAST
    assert heard(tmp_path, "a.json", {"captions": _states(name)}) == LAST


def test_states_without_ids_are_one_also_where_a_sentence_ends_within_them(tmp_path: Path) -> None:
    texts = ["The pump", "The pump in the", "The pump in the cellar came.", "The pump in the cellar came. I think."]
    states = [("", "ida", text) for text in texts] + [("", "bo", "Which"), ("", "bo", "Which one?")]
    entries = [{"speaker": who, "text": text} for _, who, text in states]
    expected = ["ida | The pump in the cellar came. I think.", "bo | Which one?"]
    assert heard(tmp_path, "a.jsonl", _lines(entries)) == expected
    assert heard(tmp_path, "a.json", entries) == expected


@pytest.mark.parametrize(
    "said",
    [
        [("7", "ida", "The pump came."), ("9", "bo", "Which one?"), ("7", "ida", "The pump came today.")],  # who speaks
        [
            ("0", "ida", "Yes."),
            ("1", "ida", "Which one?"),
            ("0", "ida", "No."),
            ("1", "ida", "Which one?"),
        ],  # counted anew
        [("1", "ida", "Yes."), ("2", "ida", "Yes. I do."), ("3", "ida", "Yes.")],
        [("", "ida", "Yes"), ("", "ida", "Yes I do"), ("", "bo", "Good"), ("", "ida", "Come in"), ("", "bo", "Thanks")],
    ],
)
def test_what_people_say_again_stays(tmp_path: Path, said: list[tuple[str, str, str]]) -> None:
    assert heard(tmp_path, "a.jsonl", _lines(_states("id", said))) == [f"{who} | {text}" for _, who, text in said]
