"""A snapshot is read here for the view: typed, safe to draw, with nothing missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from context_builder.cli.view.palette import plain
from context_builder.clock import epoch
from context_builder.json_values import list_of, number_of, object_of, objects_of
from context_builder.quoting import names_speakers
from context_builder.session.messages.message import is_assistants

if TYPE_CHECKING:
    from context_builder.session.client import JsonObject, Snapshot


@dataclass(frozen=True, slots=True)
class PublishedMessage:
    """A message of the buffer."""

    speaker: str
    text: str
    time: str
    assistant: bool
    keywords: tuple[str, ...]
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """A point of the rolling summary; ``speakers`` are those whom its text does not name."""

    text: str
    kind: str
    speakers: tuple[str, ...]


class Published:
    """Reads a snapshot. Whatever another program wrote there, drawing it does not fail."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.session_id = plain(snapshot.session_id)
        self.waiting = snapshot.waiting
        self.known = snapshot.state is not None
        self.owned = snapshot.owner is not None
        self.ended = snapshot.ended
        self.ticking = snapshot.conversation is not None
        self._state: Mapping[str, Any] = snapshot.state or {}
        self._conversation: Mapping[str, Any] = snapshot.conversation or {}
        self._owner: Mapping[str, Any] = snapshot.owner or {}
        self._summary: Mapping[str, Any] = object_of(self._state.get("rolling_summary"))

    @property
    def owner(self) -> str:
        """Return the host and process that run the session."""
        return f"{plain(self._owner.get('host', '?'), 40)}:{plain(self._owner.get('pid', '?'), 10)}"

    @property
    def messages(self) -> list[JsonObject]:
        """Return the buffer as published, oldest first."""
        return objects_of(self._state.get("raw_recent_buffer"))

    @property
    def domains(self) -> list[tuple[str, float]]:
        """Return active domains with their confidences in 0..1, most confident first."""
        confidence = object_of(self._state.get("domain_confidence"))
        active = [
            (plain(name, 60), _number(confidence.get(name))) for name in list_of(self._state.get("current_domains"))
        ]
        return sorted(active, key=lambda domain: -domain[1])

    @property
    def keywords(self) -> tuple[str, ...]:
        return _strings(self._state.get("current_keywords"))

    @property
    def points(self) -> list[PublishedPoint]:
        """Return the summary's points, oldest first; its text as one point where it has none."""
        points = [_point(point) for point in objects_of(self._summary.get("points"))]
        if not points and (text := self._summary.get("text")):
            points = [PublishedPoint(plain(line), "claim", ()) for line in str(text).splitlines() if line.strip()]
        return points

    @property
    def summarized(self) -> int:
        """Return how many messages the summary holds."""
        return int(_number(self._summary.get("message_count")))

    @property
    def summaries(self) -> int:
        return int(_number(self._summary.get("summary_seq")))

    @property
    def received(self) -> int:
        """Return how many distinct messages were taken in since the session began."""
        return self.count("received_messages") or self.summarized + self.count("pending_messages") + len(self.messages)

    @property
    def silence(self) -> bool:
        return bool(self._conversation.get("silence"))

    @property
    def dead_letters(self) -> int:
        """Return how many deliveries could not become messages, or were refused by archive or memory for good."""
        refused = object_of(self._state.get("undeliverable"))
        return self.count("dead_letters") + sum(int(_number(count)) for count in refused.values())

    def count(self, field: str) -> int:
        return int(_number(self._state.get(field)))

    def analysts(self) -> dict[str, str]:
        """Return the analysts of the latest keywords, domains and summary."""
        return {what: plain(label, 24) for what, label in object_of(self._state.get("analyst")).items() if label}

    def failing(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return the names of the tasks that fail, each with the latest reason, in the order of ``names``."""
        tasks = object_of(self._state.get("failing"))
        told = {name: object_of(tasks.get(task)) for task, name in names.items()}
        return {name: plain(task.get("reason") or "", 200) for name, task in told.items() if task}

    def spent(self) -> tuple[float, int]:
        """Return the US dollars and tokens (prompts and replies) of the session's model calls."""
        cost = object_of(self._state.get("cost"))
        tasks = [object_of(task) for task in object_of(cost.get("tasks")).values()]
        tokens = sum(_number(task.get("prompt_tokens")) + _number(task.get("completion_tokens")) for task in tasks)
        return _number(cost.get("dollars")), int(tokens)

    def silent_for(self, now: float) -> float | None:
        """Return the seconds since somebody spoke; ``None`` when nobody has."""
        last = _number(self._state.get("last_message_time") or self._conversation.get("last_message_time"))
        return max(0.0, now - last) if last else None

    def published_ago(self, now: float) -> float | None:
        """Return the seconds since the state was published; ``None`` when it does not say."""
        at = _number(self._state.get("updated_at"))
        return max(0.0, now - at) if at else None

    def age(self, now: float) -> float | None:
        """Return the seconds since the first message that is still known; ``None`` when there is none."""
        start = epoch(self._summary.get("time_range_start"))
        if start is None and self.messages:
            start = epoch(self.messages[0].get("timestamp"))
        return max(0.0, now - start) if start is not None else None


def published_message(entry: Mapping[str, Any]) -> PublishedMessage:
    """Return a buffer entry as the view shows it."""
    return PublishedMessage(
        speaker=plain(entry.get("speaker") or "Unknown", 40),
        text=plain(entry.get("text", "")),
        time=_time_of_day(entry),
        assistant=is_assistants(entry),
        keywords=_strings(entry.get("keywords")),
        domains=_strings(entry.get("domains")),
    )


def _time_of_day(entry: Mapping[str, Any]) -> str:
    arrived = _number(entry.get("buffer_entry_time"))
    said = epoch(entry.get("timestamp"), near=arrived)
    try:
        return datetime.fromtimestamp(arrived if said is None else said).strftime("%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "--:--:--"


def _number(value: object) -> float:
    return number_of(value) or 0.0


def _point(point: JsonObject) -> PublishedPoint:
    text, speakers = plain(point.get("text", "")), _strings(point.get("speakers"))
    return PublishedPoint(
        text, plain(point.get("kind", "claim"), 20), () if names_speakers(text, speakers) else speakers
    )


def _strings(value: object) -> tuple[str, ...]:
    items: Iterable[object] = list_of(value)
    return tuple(text for item in items if (text := plain(item, 60)))
