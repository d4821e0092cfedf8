"""How many honest points the check of a model's points rejects, and how many refusals it lets through."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

from context_builder.analysis.analyst import MAX_CITATIONS, AnalystMessage
from context_builder.analysis.grounding import Grounding
from scripts.benches.shared.labelled import Row
from scripts.benches.shared.report import Line
from scripts.benches.texts.facts_kept import content_of
from tests.analysis.talk_in_languages import TALKS

DRAWS = 50
"""Random choices of messages that each refusal cites."""


def grounded_lines(meetings: Mapping[str, Sequence[Row]], references: Sequence[Row]) -> list[Line]:
    """Of reference sentences and written samples, and of refusals among both."""
    sentences = [
        _accepts(span, sentence, _best(span, sentence))
        for reference in references
        for span, sentence in _sentences(meetings.get(reference["meeting"], ()), reference)
    ]
    points, refusals = list(_points()), list(_refusals())
    refused = [
        _accepts(rows, refusal, drawn)
        for rows in meetings.values()
        for refusal, drawn in _drawn(rows, random.Random(1))
    ]
    languages = f"of {len(TALKS)} languages"
    return [
        Line(
            f"points accepted: sentences of references, citing the {MAX_CITATIONS} messages closest to them "
            f"({len(sentences)})",
            _share(sentences),
        ),
        Line(f"points accepted: written ones {languages} ({len(points)})", _share(points), "100 %", all(points)),
        Line(
            f"refusals accepted, citing 1 to {MAX_CITATIONS} long messages of a meeting ({len(refused)})",
            _share(refused),
        ),
        Line(
            f"refusals accepted: {languages}, citing any messages ({len(refusals)})",
            _share(refusals),
            "0 %",
            not any(refusals),
        ),
    ]


def _accepts(rows: Sequence[Row], text: str, cited: Sequence[int]) -> bool:
    messages = [AnalystMessage(place, row["speaker"], row["text"]) for place, row in enumerate(rows)]
    return Grounding(messages).is_grounded(text, cited)


def _sentences(rows: Sequence[Row], reference: Row) -> Iterator[tuple[Sequence[Row], str]]:
    """Sentences of the answers to specific questions, with the turns that they are about."""
    for question in reference["specific"]:
        span = [row for row in rows if any(start <= row["turn"] <= end for start, end in question["spans"])]
        for sentence in re.split(r"(?<=[.?!])\s+", question["answer"]):
            if span and len(sentence.split()) > 3:
                yield span, sentence


def _best(rows: Sequence[Row], sentence: str) -> list[int]:
    """The messages that together tell most of the words of ``sentence``."""
    wanted, left, chosen = content_of(sentence), dict(enumerate(content_of(row["text"]) for row in rows)), []
    while left and len(chosen) < MAX_CITATIONS:
        best = max(left, key=lambda place: len(left[place] & wanted))
        wanted -= left.pop(best)
        chosen.append(best)
    return chosen


def _points() -> Iterator[bool]:
    for talk in TALKS:
        grounding = Grounding([AnalystMessage(place, "", text) for place, text in enumerate(talk.messages)])
        yield from (grounding.is_grounded(text, [number - 1 for number in cites]) for text, cites in talk.points)


def _refusals() -> Iterator[bool]:
    for talk in TALKS:
        grounding = Grounding([AnalystMessage(place, "", text) for place, text in enumerate(talk.messages)])
        places = range(len(talk.messages))
        choices = list(chain.from_iterable(combinations(places, count) for count in range(1, len(places) + 1)))
        yield from (grounding.is_grounded(text, cited) for text in talk.refusals for cited in choices)


def _drawn(rows: Sequence[Row], chance: random.Random) -> Iterator[tuple[str, list[int]]]:
    long = [place for place, row in enumerate(rows) if len(row["text"]) > 60]
    for refusal in TALKS[0].refusals:
        for _ in range(DRAWS):
            yield refusal, chance.sample(long, chance.randint(1, MAX_CITATIONS))


def _share(hits: Sequence[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.1f} %" if hits else "–"
