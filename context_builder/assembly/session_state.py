"""A session's published state as a source: what was said, what was summarized, what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from context_builder.analysis.analyst import HEADINGS, PointKind
from context_builder.assembly.candidate import Candidate, ContextType
from context_builder.assembly.turn import spoken
from context_builder.clock import day_of, moment
from context_builder.json_values import number_of, object_of, objects_of, texts_of
from context_builder.memory.memory import point_id
from context_builder.quoting import quoted_name, repeated
from context_builder.spoken_dates import dated

State = Mapping[str, Any]
"""A session's state as it is published. What is of another type than it should be counts as missing."""

ASSISTANT: Final = "Consilience"
"""The assistant's name as a speaker."""

_UNNAMED: Final = frozenset({None, ASSISTANT, "Unknown"})
"""Names of an assistant that is the only one; of several, each has a name of its own, which the prompt tells."""

LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
"""Stands for a time that is not known."""

RESPONSES: Final = 5
"""Newest contributions of the assistant that are taken although they have left the buffer, if no point tells them."""

_ORIGINS: Final = ("session",)

_LABELLED: Final = frozenset(PointKind) - {PointKind.CLAIM, PointKind.CONSILIENCE}
"""Kinds of points that a prompt names."""


def published_messages(state: State) -> list[Candidate]:
    """Return the state's messages as candidates, newest first, and of what the assistant said before them the newest
    five that no point of the summary tells, and that read none back: what an answer answers has left with it, and the
    summary has both."""
    buffered = objects_of(state.get("raw_recent_buffer"))
    held = {_name(entry) for entry in buffered}
    told = _told_ids(state)
    said = objects_of(state.get("consilience_responses"))
    known, texts = held | told, _texts_of(state)
    new = [entry for entry in said if _name(entry) not in known and not _reads_back(entry, texts)]
    responses = new[-RESPONSES:]
    in_order = buffered[::-1]  # in the session's own order: clocks are set forward and back
    for response in reversed(responses):
        place = next((place for place, entry in enumerate(in_order) if _is_after(response, entry)), len(in_order))
        in_order.insert(place, response)
    return [_message(entry) for entry in in_order]


def named_answers(state: State) -> set[str]:
    """Return the contents, in a history, of what assistants said that have names: each begins with its name."""
    return {
        spoken(one)["content"]
        for one in map(with_dates, published_messages(state))
        if one.role == "assistant" and one.speaker
    }


def corrected_messages(state: State) -> dict[str, list[dict[str, Any]]]:
    """Return the state's messages that were corrected, or whose speakers were renamed, as they are published, by their
    content in a history."""
    corrected: dict[str, list[dict[str, Any]]] = {}
    for entry in objects_of(state.get("raw_recent_buffer")):
        if entry.get("origin"):
            corrected.setdefault(spoken(with_dates(_message(entry)))["content"], []).append(dict(entry))
    return corrected


def _texts_of(state: State) -> set[str]:
    """Return the texts of the summary's points."""
    points = objects_of(object_of(state.get("rolling_summary")).get("points"))
    return {str(point["text"]) for point in points if point.get("text")}


def _reads_back(said: Mapping[str, Any], texts: set[str]) -> bool:
    """Return whether a message or a point is little but the words of a point, in quotation marks."""
    return repeated(str(said.get("text") or "")) in texts


def _told_ids(state: State) -> set[str]:
    """Return the names of the messages that the summary's points are about."""
    points = objects_of(object_of(state.get("rolling_summary")).get("points"))
    return {str(one) for point in points if isinstance(ids := point.get("ids"), list) for one in ids}


def summarized(state: State) -> list[Candidate]:
    """Return the points of the rolling summary, newest first; the whole summary where it has no points.

    A point of the assistant that reads another one back is not told.
    """
    summary = object_of(state.get("rolling_summary"))
    points = [point for point in objects_of(summary.get("points")) if point.get("text")]
    if not points:
        return [_known("summary", summary["text"])] if summary.get("text") else []
    session_id = str(state.get("session_id"))
    texts = _texts_of(state)
    return [
        replace(_known(_point_name(session_id, place, point), _told(point)), metadata={"words": str(point["text"])})
        for place, point in enumerate(points)
        if point.get("kind") != PointKind.CONSILIENCE or not _reads_back(point, texts)
    ][::-1]


def topic(state: State) -> list[Candidate]:
    """Return one line about the current domains and keywords; None without any."""
    domains, keywords = (", ".join(texts_of(state.get(key))) for key in ("current_domains", "current_keywords"))
    about = [f"It is about {domains}"] if domains else []
    if keywords:
        about.append(f"{'keywords' if domains else 'Keywords'}: {keywords}")
    return [_known("topic", "; ".join(about))] if about else []


def _point_name(session_id: str, place: int, point: Mapping[str, Any]) -> str:
    """Return the id under which the memory has the point, so that it is not told twice."""
    number, time = point.get("id", place), number_of(point.get("time"))
    return point_id(session_id, number, time) if isinstance(number, int) and time is not None else f"point-{number}"


def _told(point: Mapping[str, Any]) -> str:
    """Return the point as the summary has it: after its heading, and as it was said after its speaker's name."""
    kind, speakers = point.get("kind"), ", ".join(map(quoted_name, texts_of(point.get("speakers"))))
    heading = f"{HEADINGS[PointKind(kind)]}: " if kind in _LABELLED else ""
    name = f"{speakers}: " if speakers and point.get("spoken", True) else ""
    return f"{heading}{name}{point['text']}"


def _is_after(response: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether the response came after the message: ids count arrivals; states of other programs have none."""
    one, other = response.get("id"), entry.get("id")
    if isinstance(one, int) and isinstance(other, int):
        return one > other
    responded_at, received_at = (moment(message.get("timestamp")) or LONG_AGO for message in (response, entry))
    return responded_at > received_at


def message_name(place: object) -> str:
    """Return the id of a message as a candidate, by its place in its session."""
    return f"message-{place}"


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("message_number") if entry.get("id") is None else entry["id"])


def _message(entry: Mapping[str, Any]) -> Candidate:
    speaker = str(entry.get("speaker") or "") or None
    own = speaker == ASSISTANT or entry.get("type") == "consilience"
    return Candidate(
        id=message_name(_name(entry)),
        text=str(entry.get("text") or ""),
        type=ContextType.RECENT,
        role="assistant" if own else "user",
        speaker=None if own and speaker in _UNNAMED else speaker,
        time=_time(entry.get("timestamp")),
        origins=_ORIGINS,
    )


def with_dates(message: Candidate) -> Candidate:
    """Return a message in which words such as "yesterday" have the date beside them that they mean."""
    text = dated(message.text, day_of(message.time))
    return message if text == message.text else replace(message, text=text)


def _time(timestamp: object) -> datetime | None:
    """Return the moment of a timestamp, with the offset that it was written with."""
    read = moment(timestamp)
    written = datetime.fromisoformat(timestamp) if read is not None and isinstance(timestamp, str) else None
    return read if written is None or written.tzinfo is None else written


def _known(name: str, text: object) -> Candidate:
    return Candidate(name, str(text), ContextType.SUMMARY, origins=_ORIGINS)


def session_turn(state: State, query: str = "", *, whole: bool = False, **named: Any) -> dict[str, Any]:
    """Return the envelope for :meth:`ContextBuilder.build_for_turn`: messages as history, then summary and topic.

    Without a ``query`` the newest thing that people said is the turn's message. A message that is the turn's own is
    not in its history too. What the assistant said to it, or to something that is not there any more, stands after the
    points of the summary, since in the history it would seem to answer something else. The ``whole`` history has all
    of these, for who puts the turn's message elsewhere.
    ``named`` are further keys of the envelope, such as ``tenant_id``.
    """
    messages = published_messages(state)
    answers: list[Candidate] = []
    newest = next((place for place, message in enumerate(messages) if message.role == "user"), None)
    if newest is not None and (not query.strip() or messages[newest].text.strip() == query.strip()):
        query = query if query.strip() else spoken(messages[newest])["content"]
        if not whole:
            messages, answers = messages[newest + 1 :], messages[:newest]
    history = from_first_question(messages)
    known = [*topic(state), *map(_as_known, (*answers, *messages[len(history) :])), *summarized(state)]
    return {
        "session_id": state.get("session_id"),
        "user_message": query,
        "history": [spoken(with_dates(one)) for one in reversed(history)],
        "summary": [_entry(one) for one in reversed(known)],
        **named,
    }


def from_first_question(messages: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return messages, newest first, without the oldest answers, whose question is not there; an assistant that began
    the conversation answers nothing.
    """
    if messages and messages[-1].id == message_name(1):
        return messages
    asked = (place for place in range(len(messages), 0, -1) if messages[place - 1].role != "assistant")
    return messages[: next(asked, 0)]


def _as_known(message: Candidate) -> Candidate:
    text = with_dates(message).text
    return replace(message, text=f"{quoted_name(message.speaker or ASSISTANT)}: {text}", type=ContextType.SUMMARY)


def _entry(known: Candidate) -> dict[str, str]:
    return {"id": known.id, "text": known.text, **known.metadata}
