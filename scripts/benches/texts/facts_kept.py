"""What a summary still tells after ten rounds: the ledger, and the habit of summarizing one's own summary again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from context_builder.analysis.analyst import Analyst, AnalystMessage, SummaryRequest
from context_builder.analysis.text import TextAnalyst
from context_builder.analysis.text.summary import SummarySize
from context_builder.analysis.text.words import words
from context_builder.clock import Instant
from context_builder.session.conversation.conversation import LEDGER_TAIL_TOKENS
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import from_fields
from context_builder.session.summary.ledger import Ledger
from context_builder.session.summary.point import Point
from context_builder.tokens.counter import TokenCounter
from scripts.benches.shared.labelled import Row

ROUNDS = 10
BUDGET = 1000
"""Tokens of a summary, by the exact count of ``o200k_base``."""

ARRIVED = Instant(1_700_000_000.0, 0.0)
SIZES = (SummarySize(), SummarySize(1.5, 45), SummarySize(1.0, 100))
"""Of the baseline: the default loses nearly all, because a summary of a summary has few points; so it may have more."""


@dataclass
class Kept:
    """Facts there are, and those found again in the ledger's text and in the best baseline's."""

    facts: int = 0
    ledger: int = 0
    baselines: list[int] = field(default_factory=lambda: [0] * len(SIZES))
    cites: list[bool] = field(default_factory=list)
    grounded: list[bool] = field(default_factory=list)


def content_of(text: str) -> set[str]:
    """Content words and numbers, in lower case."""
    return {word.lower for word in words(text) if word.is_content} | set(re.findall(r"\d+", text))


def facts_of(messages: Sequence[Row], reference: Row) -> set[str]:
    """What is told in the turns that the reference's specific questions are about."""
    spans = [span for question in reference["specific"] for span in question["spans"]]
    return {
        word
        for message in messages
        if any(start <= message["turn"] <= end for start, end in spans)
        for word in content_of(message["text"])
    }


def rounds(messages: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for number in range(ROUNDS):
        yield messages[number * len(messages) // ROUNDS : (number + 1) * len(messages) // ROUNDS]


async def by_ledger(messages: Sequence[Row], analyst: Analyst, count: Callable[[str], int]) -> Ledger:
    ledger = Ledger(BUDGET, count)
    for part in rounds(messages):
        taken = [
            from_fields({name: row[name] for name in ("message_number", "speaker", "text")}, ARRIVED) for row in part
        ]
        entries = {
            row["message_number"]: BufferedMessage(row["message_number"], m, ARRIVED)
            for row, m in zip(part, taken, strict=True)
        }
        said = [entry.for_analyst() for entry in entries.values()]
        reading = await analyst.summarize(SummaryRequest(said, ledger.tail(LEDGER_TAIL_TOKENS)))
        ledger.add(reading.points, entries)
        if count(ledger.render()) > BUDGET:
            raise AssertionError("the budget is exceeded")
    return ledger


async def by_itself(messages: Sequence[Row], analyst: Analyst, count: Callable[[str], int]) -> str:
    """The summary of the summary so far and the new messages, cut at the budget, round after round."""
    summary: list[tuple[str, str]] = []
    for part in rounds(messages):
        lines = [*summary, *((row["speaker"], row["text"]) for row in part)]
        said = [AnalystMessage(number, speaker, text) for number, (speaker, text) in enumerate(lines)]
        points = (await analyst.summarize(SummaryRequest(said))).points
        summary = [(said[point.cites[0]].speaker, point.text) for point in points]
        while count(_text(summary)) > BUDGET:
            summary.pop()
    return _text(summary)


def _text(lines: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{speaker}: {text}" for speaker, text in lines)


def check_sources(points: Sequence[Point], messages: Sequence[Row], kept: Kept) -> None:
    texts = {row["message_number"]: row["text"] for row in messages}
    for point in points:
        kept.cites.append(1 <= len(point.ids) <= 5 and all(cited in texts for cited in point.ids))
        source = {word for cited in point.ids for word in content_of(texts.get(cited, ""))}
        kept.grounded.append(content_of(point.text) <= source)


async def facts_kept(meetings: Mapping[str, Sequence[Row]], references: Sequence[Row], analyst: Analyst) -> Kept:
    """Over all meetings that have a reference."""
    kept = Kept()
    count = TokenCounter("gpt-4o").count
    others = [TextAnalyst(size=size) for size in SIZES]
    for reference in references:
        messages = meetings.get(reference["meeting"], ())
        facts = facts_of(messages, reference)
        ledger = await by_ledger(messages, analyst, count)
        kept.facts += len(facts)
        kept.ledger += len(facts & content_of(ledger.render()))
        check_sources(ledger.points, messages, kept)
        for number, other in enumerate(others):
            kept.baselines[number] += len(facts & content_of(await by_itself(messages, other, count)))
    for other in others:
        await other.close()
    return kept
