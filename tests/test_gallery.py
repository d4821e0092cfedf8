"""The gallery shows what comes out of whole conversations and a model's recorded replies; a change of it is a diff."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from context_builder.analysis.text import TextAnalyst
from context_builder.quoting import quoted_line
from context_builder.session.summary.token_budget import TokenBudget
from context_builder.tokens.counter import TokenCounter
from scripts.gallery import CASSETTES, MARK, PAGE, TITLES, messages_of, recorded_analyst, rendered, summaries

conversations = pytest.mark.parametrize("name", TITLES)


def replied(name: str) -> set[str]:
    """Every sentence that the recorded model wrote."""
    lines = (CASSETTES / f"{name}.replies.jsonl").read_text("utf-8").splitlines()
    replies: list[Any] = [json.loads(line)["reply"] for line in lines]
    points = [point for reply in replies if isinstance(reply, dict) for point in reply.get("points", ())]
    return {quoted_line(point["text"]) for point in points}


def sections() -> dict[str, str]:
    """What the page shows, by the title of the conversation."""
    page = PAGE.read_text("utf-8").partition(MARK)[2]
    return dict(section.split("\n\n", 1) for section in re.split(r"\n(?=### )", page)[1:])


@conversations
async def test_the_page_shows_whole_sentences_that_the_model_wrote_within_the_budget(name: str) -> None:
    analyst, _ = recorded_analyst(CASSETTES / f"{name}.replies.jsonl", record=False)
    count, wrote = TokenCounter("gpt-4o").count, replied(name)
    minutes, shown = [], []
    async for minute, subject in summaries(messages_of(CASSETTES / f"{name}.jsonl"), analyst):
        minutes.append(minute)
        shown.append(rendered(minute, subject))
        assert {point.text for point in subject.summary.ledger.shown} <= wrote
        assert 0 < count(subject.summary.ledger.render()) <= TokenBudget(1000, 2000).after(60.0 * minute)
        assert all(point.evidence for point in subject.summary.ledger.points)
    assert minutes == [5, 10, 20, 30, 60]
    assert subject.summary.message_count == subject.received
    told = "./scripts/gallery shows the difference, --write takes it over"
    assert sections()[f"### {TITLES[name]}"].rstrip("\n") == "\n".join(shown).rstrip("\n"), told


def test_the_page_shows_each_conversation() -> None:
    assert list(sections()) == [f"### {title}" for title in TITLES.values()]


@conversations
async def test_without_a_model_every_sentence_was_said(name: str) -> None:
    said = messages_of(CASSETTES / f"{name}.jsonl")
    words = {word for _, message in said for word in f"{message.speaker}: {message.text}".lower().split()}
    async for _, subject in summaries(said, TextAnalyst()):
        for point in subject.summary.ledger.shown:
            own = point.text.lower().replace(" – ", " ").split()
            assert {word.strip(".,;:!?\"'") for word in own} <= {word.strip(".,;:!?\"'") for word in words}, point.text
