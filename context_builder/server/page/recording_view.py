"""The recording view shows the state published at one instant, and when people talked. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from context_builder.clock import epoch
from context_builder.json_values import number_of, object_of, objects_of, texts_of
from context_builder.recording.library import Moment
from context_builder.server.page.summary_view import in_order, shown_point, under_headings
from context_builder.session.client import JsonObject

SPEEDS: Final = (1, 2, 5, 10, 30, 60)
"""Seconds of a recording that are played in one."""

_WIDTH: Final = 960
_HEIGHT: Final = 56
_TOP: Final = 10
"""Room for the signs of summaries, above the bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of the strip."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Strip:
    """When people talked, as bars, and where summaries were finished."""

    bars: tuple[Bar, ...]
    summaries: tuple[float, ...]
    width: int = _WIDTH
    height: int = _HEIGHT


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message of the buffer, with the time of day at which it was said."""

    speaker: str
    text: str
    time: str
    keywords: tuple[str, ...]
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeenState:
    """What readers of a state see, points under headings; a recording is a file, so any part of it may be missing."""

    messages: tuple[SeenMessage, ...]
    points: Sequence[tuple[str, Sequence[JsonObject]]]
    domains: tuple[tuple[str, float], ...]
    keywords: tuple[str, ...]

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> SeenState:
        """Return what is to be seen of a published state."""
        summary = state.get("rolling_summary")
        confidence = object_of(state.get("domain_confidence"))
        domains = [(name, number_of(confidence.get(name)) or 0.0) for name in _texts(state.get("current_domains"))]
        return cls(
            tuple(map(_message, objects_of(state.get("raw_recent_buffer")))),
            under_headings(in_order(map(shown_point, objects_of(object_of(summary).get("points"))))),
            tuple(sorted(domains, key=lambda one: -one[1])),
            _texts(state.get("current_keywords")),
        )


def strip(moment: Moment) -> Strip:
    """Return the strip of a recording's time."""
    highest, width = max(moment.talk, default=0) or 1, _WIDTH / max(1, len(moment.talk))
    bars = []
    for place, count in enumerate(moment.talk):
        if count:
            height = math.sqrt(count / highest) * (
                _HEIGHT - _TOP
            )  # beside a backlog that came at once, talk still shows
            bars.append(Bar(round(place * width, 1), round(_HEIGHT - height, 1), round(width - 1, 1), round(height, 1)))
    return Strip(tuple(bars), tuple(round(share * _WIDTH, 1) for share in moment.summaries))


def silence(moment: Moment) -> str:
    """Return how long nobody had said anything by then, in words."""
    last = moment.state.get("last_message_time")
    if not moment.state.get("received_messages") or not isinstance(last, int | float):
        return "nobody had said anything"
    seconds = max(0.0, moment.at - last)
    return f"the last message was {seconds:,.0f} s before" if seconds >= 1 else "somebody was speaking"


def seconds_of(tenths: int | None) -> str | None:
    """Return where an instant is on the slider."""
    return None if tenths is None else f"{tenths / 10:.1f}"


def in_utc(wall: float) -> datetime:
    """Return the moment in UTC."""
    return datetime.fromtimestamp(wall, UTC)


def _message(entry: Mapping[str, Any]) -> SeenMessage:
    arrived = number_of(entry.get("buffer_entry_time")) or 0.0
    said = epoch(entry.get("timestamp"), near=arrived)
    try:
        time = in_utc(arrived if said is None else said).strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        time = ""
    return SeenMessage(
        str(entry.get("speaker") or "Unknown"),
        str(entry.get("text") or ""),
        time,
        _texts(entry.get("keywords")),
        _texts(entry.get("domains")),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(texts_of(value))
