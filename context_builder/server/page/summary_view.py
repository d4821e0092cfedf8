"""The summary view orders points as a summary has them: under headings, of each the newest first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from context_builder.analysis.analyst import HEADINGS, PointKind
from context_builder.json_values import list_of, objects_of, texts_of
from context_builder.quoting import names_speakers
from context_builder.session.client import JsonObject

SAID: Final = HEADINGS[PointKind.CLAIM]
_HEADING: Final[Mapping[str, str]] = {kind.value: heading for kind, heading in HEADINGS.items()}
_ORDER: Final = {heading: place for place, heading in enumerate(dict.fromkeys(HEADINGS.values()))}
_LONGEST_NAME: Final = 120
_LONGEST_QUOTE: Final = 500


def shown_point(one: Mapping[str, Any]) -> JsonObject:
    """Return a published point as it is shown, with its heading and the words that it rests on; ``speakers`` are named
    before its text."""
    kind = str(one.get("kind") or PointKind.CLAIM.value)[:_LONGEST_NAME]
    speakers = texts_of(one.get("speakers"), _LONGEST_NAME)
    text = str(one.get("text") or "")
    if names_speakers(text, speakers):
        speakers = []
    return {
        "id": point_id if isinstance(point_id := one.get("id"), int) else None,
        "text": text,
        "kind": kind,
        "heading": heading_of(kind),
        "unconfirmed": one.get("unconfirmed") is True,
        "speakers": speakers,
        "ids": [cited for cited in list_of(one.get("ids")) if isinstance(cited, int)],
        "quotes": [
            {
                "id": quote["id"],
                "speaker": str(quote.get("speaker") or "")[:_LONGEST_NAME],
                "text": str(quote.get("quote") or "")[:_LONGEST_QUOTE],
            }
            for quote in objects_of(one.get("evidence"))
            if isinstance(quote.get("id"), int)
        ],
    }


def heading_of(kind: str) -> str:
    """Return the heading that points of a kind stand under; unknown ones were said."""
    return _HEADING.get(kind, SAID)


def in_order(points: Iterable[JsonObject]) -> list[JsonObject]:
    """Return points, which come oldest first, in the order in which they are shown."""
    newest_first = list(points)[::-1]
    newest_first.sort(key=lambda one: _ORDER[one["heading"]])
    return newest_first


def under_headings(points: Sequence[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Return each heading with its points, of points in the order in which they are shown."""
    return [(heading, list(group)) for heading, group in groupby(points, key=lambda one: str(one["heading"]))]
