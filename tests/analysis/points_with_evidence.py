"""Talk of several kinds and languages, with true and false points about it, each with its quotes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from context_builder.analysis.analyst import AnalystMessage, DraftPoint, PointKind, Quote

TRUE = "true"


class Written(NamedTuple):
    """``verdict`` is ``true``, or the rejection or the doubt that a false point must meet."""

    language: str
    messages: list[AnalystMessage]
    point: DraftPoint
    verdict: str


WRITTEN = [
    Written(
        talk["language"],
        [AnalystMessage(number, speaker, text) for number, (speaker, text) in enumerate(talk["messages"], 1)],
        DraftPoint(
            point["text"],
            tuple(Quote(message, quote) for message, quote in point["quotes"]),
            PointKind(point["kind"]),
            tuple(point.get("by", ())),
        ),
        point["is"],
    )
    for talk in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    for point in talk["points"]
]
