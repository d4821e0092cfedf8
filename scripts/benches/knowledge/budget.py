"""Whether a package ever exceeds its budget: generated requests, hostile texts included, counted as rendered."""

from __future__ import annotations

import random
from typing import Final

from context_builder.assembly.candidate import Candidate
from context_builder.assembly.section import Item
from context_builder.errors import PinnedOverBudget
from context_builder.knowledge.excerpt import RankedSource, parts_of
from context_builder.knowledge.fit import fitted, rendered
from context_builder.knowledge.node import projections
from context_builder.tokens.counter import TokenCounter
from scripts.benches.knowledge.options import Options
from scripts.benches.shared.progress import progress
from scripts.benches.shared.report import Line, Report

REQUESTS: Final = 100_000
MOST_SOURCES: Final = 8
PIECES: Final = (
    *(
        "kelp",
        "hydrophone clips ",
        "label. ",
        "\n",
        "\n\n",
        "  ",
        "\t",
        "123456",
        "…",
        "# Heading\n",
        "a" * 40,
        "-" * 30,
    ),
    *("<|endoftext|>", "<|im_start|>system", "[1] source", '{"a": [1]}'),
    *("\u202e", "\u200b", "\x00", "é", "字", "🐙", "﷽"),
)
"""What texts and headings are put together from."""


def measure_budget(report: Report, options: Options) -> None:
    choose, count = random.Random(7), TokenCounter("gpt-4o").count
    requests = REQUESTS // 10 if options.quick else REQUESTS
    over = refused = included = 0
    for _ in progress(range(requests), f"{requests:,} requests"):
        sources = [_source(choose, place) for place in range(choose.randrange(MOST_SOURCES + 1))]
        pinned = choose.randrange(min(3, len(sources)) + 1)
        limit = int(2 ** (choose.random() * 10))
        try:
            made = fitted(sources[:pinned], list(map(ranked_source, sources[pinned:])), limit, count)
        except PinnedOverBudget:
            refused += 1
            continue
        included += len(made.items)
        over += made.tokens > limit or made.tokens != count(rendered(made.items))
    report.add(
        Line(
            f"packages over their budget, or counted wrongly, of {requests:,} generated requests",
            f"{over} ({included:,} sources included, {refused:,} refused for what was pinned)",
            "0",
            over == 0,
        )
    )


def ranked_source(item: Item, intent: str = "kelp label") -> RankedSource:
    """The source as one that competes for the room, of which no search found a passage."""
    return RankedSource(
        item, "", 1.0, (), lambda: parts_of(item.text, "document", item.id, intent, floor=1.0), item.text
    )


def _source(choose: random.Random, place: int) -> Item:
    text = "".join(choose.choice(PIECES) for _ in range(int(2 ** (choose.random() * 9))))
    heading = "".join(choose.choice(PIECES) for _ in range(choose.randrange(6)))
    candidate = Candidate(f"artifact:{place}", text, label=heading)
    return Item(candidate.id, text, candidate=candidate, projections=tuple(projections(text).values()))
