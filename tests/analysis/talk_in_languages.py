"""Short talk in many languages: what a summary may say of it, and what a model says that refuses to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Talk(NamedTuple):
    """``points`` retell messages, each with the numbers (from 1) of those it cites; ``refusals`` retell none.

    ``refusals_of_topic`` name what the messages are about.
    """

    language: str
    messages: list[str]
    points: list[tuple[str, list[int]]]
    refusals: list[str]
    refusals_of_topic: list[str]


TALKS = [
    Talk(
        talk["language"],
        talk["messages"],
        [(point["text"], point["cites"]) for point in talk["points"]],
        talk["refusals"],
        talk["refusals_of_topic"],
    )
    for talk in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
]
