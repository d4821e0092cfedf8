"""A point is one sentence of the rolling summary, and knows which words of whom it rests on."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from context_builder.analysis.analyst import HEADINGS, KnownPoint, PointKind, Quote
from context_builder.spoken_dates import SpokenDate, spoken_dates, with_dates


@dataclass(frozen=True, slots=True)
class PointQuote:
    """Words that ``speaker`` said in the message ``id``; ``number`` is its published number, if it has one."""

    id: int
    number: int | None
    text: str
    speaker: str

    def wire(self) -> dict[str, Any]:
        return {"message": self.number, "id": self.id, "quote": self.text, "speaker": self.speaker}

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> PointQuote:
        return cls(fields["id"], fields["message"], fields["quote"], fields["speaker"])


@dataclass(frozen=True, slots=True)
class Point:
    """One whole sentence, which a model wrote and the check of its quotes accepted, or which somebody said.

    ``by`` are the speakers whose view, question, promise or decision it is. ``time`` is the moment of the first quoted
    message in epoch seconds, ``first_number`` the lowest listener number quoted. A ``spoken`` sentence stands as it was
    said, so it is read after the name of its speaker, the first of ``by``. ``unconfirmed`` says that a doubt could not
    be cleared up. A point that a compaction or a correction wrote ``merges`` earlier ones of its kind: their ids and
    times, the newest last; ``rewrites`` counts how often its words were written anew. ``said_on`` is the day, in ISO
    8601, by which words such as "yesterday" mean a date; None where it rests on what was said on several.
    """

    id: int
    text: str
    kind: PointKind
    by: tuple[str, ...]
    evidence: tuple[PointQuote, ...]
    time: float
    first_number: int | None = None
    spoken: bool = False
    unconfirmed: bool = False
    merges: tuple[tuple[int, float], ...] = ()
    rewrites: int = 0
    said_on: str | None = None

    def was(self, ids: Sequence[int]) -> bool:
        """Return whether the point was rewritten from one of ``ids`` while these were asked about."""
        return any(merged in ids for merged, _ in self.merges)

    @property
    def known_as(self) -> tuple[tuple[int, float], ...]:
        """Return the ids and times under which the memory may know the point: its own, and those of points that it was
        made of.
        """
        return (*self.merges, (self.id, self.time))

    @property
    def ids(self) -> tuple[int, ...]:
        """Return the ids of the quoted messages, each once."""
        return tuple(dict.fromkeys(quote.id for quote in self.evidence))

    @property
    def messages(self) -> tuple[int, ...]:
        """Return the published numbers of the quoted messages, each once."""
        return tuple(dict.fromkeys(quote.number for quote in self.evidence if quote.number is not None))

    def render(self, *, dated: bool = False) -> str:
        """Return the point as a line of ``rolling_summary.text``, without the mark before it."""
        name = f"{self.by[0]}: " if self.spoken and self.by else ""
        return f"{name}{self.dated_text if dated else self.text}{' (unconfirmed)' if self.unconfirmed else ''}"

    @property
    def dated_text(self) -> str:
        """Return the text with dates beside the words that mean them."""
        return with_dates(self.text, self.dates)

    @property
    def dates(self) -> list[SpokenDate]:
        """Return the words of the text that mean a date, and the dates."""
        return spoken_dates(self.text, date.fromisoformat(self.said_on)) if self.said_on else []

    def known(self) -> KnownPoint:
        """Return the point as an analyst is shown it."""
        quotes = tuple(Quote(quote.id, quote.text, quote.speaker) for quote in self.evidence)
        return KnownPoint(self.id, self.text, self.kind, self.by, quotes)

    def wire(self) -> dict[str, Any]:
        """Return the point as it is published in ``rolling_summary.points``, with all that :meth:`from_wire` needs."""
        return {
            "id": self.id,
            "text": self.dated_text,
            "kind": self.kind.value,
            "by": list(self.by),
            "evidence": [quote.wire() for quote in self.evidence],
            "cites": list(self.messages),
            "time": self.time,
            "unconfirmed": self.unconfirmed,
            "spoken": self.spoken,
            "messages": list(self.messages),
            "ids": list(self.ids),
            "speakers": list(self.by),
            "first_number": self.first_number,
            "merges": [list(merged) for merged in self.merges],
            "rewrites": self.rewrites,
            "said_on": self.said_on,
            **({"undated_text": self.text} if self.dates else {}),
        }

    @classmethod
    def from_wire(cls, fields: Mapping[str, Any]) -> Point:
        return cls(
            id=fields["id"],
            text=fields.get("undated_text", fields["text"]),
            kind=PointKind(fields["kind"]),
            by=tuple(fields["by"]),
            evidence=tuple(map(PointQuote.from_wire, fields["evidence"])),
            time=fields["time"],
            first_number=fields["first_number"],
            spoken=fields["spoken"],
            unconfirmed=fields["unconfirmed"],
            merges=tuple((merged, time) for merged, time in fields["merges"]),
            rewrites=fields["rewrites"],
            said_on=_day(fields["said_on"]),
        )


def _day(written: str | None) -> str | None:
    """Return a day as it is written. Raises :class:`ValueError` for what is none."""
    return None if written is None else date.fromisoformat(written).isoformat()


def rendered(points: Sequence[Point], dated: Container[int] = ()) -> str:
    """Return the text of the rolling summary: the points under their headings, a line each, in their order.

    Those whose ids are ``dated`` have dates beside the words that mean them.
    """
    under: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for point in points:
        under[HEADINGS[point.kind]].append(f"- {point.render(dated=point.id in dated)}")
    return "\n".join(line for heading, lines in under.items() if lines for line in (f"{heading}:", *lines))


LEAST_SHARED: Final = 2
"""Words of its topic that a decision has in common with the one it replaces, at least."""

LEAST_SHARE: Final = 0.4
"""Of the words of the replaced decision, so many at least are those that both have."""

_REPLACES: Final = re.compile(
    r"\b(?:instead|no longer|rather than|any ?more|anymore|overrul\w+|supersed\w+|replac(?:e|es|ed|ing)"
    r"|switch(?:es|ed|ing)? (?:from|to)|chang(?:e|es|ed|ing) (?:from|to)|cancel(?:s|led|ling|ed)?|revers(?:e|es|ed))\b",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W\d_]{4,}|\d+")
_COMMON: Final = frozenset(
    "about after agreed also anymore been before between cancel decided decision from have instead into just keep"
    " longer more must only other rather replace shall should some switch than that their them then there they this"
    " those through"
    " until want were what when which will with would".split()
)


def replaced_by(decision: Point, earlier: Iterable[Point]) -> Point | None:
    """Return the decision among ``earlier`` points that ``decision`` replaces: the one with most of the same words, of
    several the latest. None unless the words say that something is replaced, and enough of them are about the same: to
    miss one is better than a wrong one.
    """
    if decision.kind is not PointKind.DECISION or not _REPLACES.search(decision.text):
        return None
    words = _topic(decision.text)
    best: tuple[int, float, int] | None = None
    found: Point | None = None
    for point in earlier:
        if point.kind is not PointKind.DECISION or point.id == decision.id or point.time > decision.time:
            continue
        held = _topic(point.text)
        shared = len(words & held)
        if shared < LEAST_SHARED or shared < LEAST_SHARE * len(held):
            continue
        if best is None or (shared, point.time, point.id) >= best:
            best, found = (shared, point.time, point.id), point
    return found


def _topic(text: str) -> set[str]:
    """Return the words that tell what a text is about, without their plural ``s``."""
    return {
        word.removesuffix("s") for word in (found.casefold() for found in _WORD.findall(text)) if word not in _COMMON
    }
