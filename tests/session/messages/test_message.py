"""What becomes a message, what becomes of its fields, and what is refused with which reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_builder.errors import MessageError
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message, decode, from_fields
from tests.session.saying import ARRIVAL, advised, at, raw, spoken

LIMIT = 262_144


def decoded(fields: object = None, **changes: Any) -> Message:
    """The message in a delivery as a Python program would write it."""
    whole = fields if fields is not None else {**spoken(), **changes}
    return decode(json.dumps(whole).encode(), ARRIVAL, max_bytes=LIMIT)


def reason(delivery: bytes) -> str:
    with pytest.raises(MessageError) as refused:
        decode(delivery, ARRIVAL, max_bytes=LIMIT)
    return str(refused.value)


def published(message: Message) -> dict[str, Any]:
    """The buffer entry as a reader of the state sees it."""
    seen: dict[str, Any] = json.loads(BufferedMessage(1, message, ARRIVAL).encode())
    orjson.dumps({"consilience_responses": [{"metadata": message.metadata}]})
    return seen


def test_a_listeners_message_keeps_every_field() -> None:
    heard = decoded(confidence=0.95, _score=42.0, session_id="monday")
    assert (heard.number, heard.speaker, heard.confidence) == (1, "Alice", 0.95)
    assert (heard.timestamp, heard.timestamp_raw, heard.consilience) == (at(1), None, False)


def test_a_message_may_have_nothing_but_text() -> None:
    heard = decoded({"text": "hello"})
    assert (heard.number, heard.speaker, heard.confidence) == (None, "Unknown", 1.0)
    assert (heard.timestamp, heard.metadata) == (ARRIVAL.iso(), {})


@pytest.mark.parametrize(
    ("came", "number"),
    [(42, 42), (0, 0), (42.0, 42), ("42", 42), (" 42 ", 42), (None, None), (2**53 - 1, 2**53 - 1)],
)
def test_numbers_are_integers_whatever_way_they_came(came: object, number: int | None) -> None:
    heard = decoded(message_number=came)
    assert heard.number == number
    assert type(heard.number) is type(number)


@pytest.mark.parametrize("came", [42.5, True, "4x", "", "٤٢", "-1", [42], {}, float("nan"), float("inf"), "9" * 40])
def test_what_is_no_whole_number_is_refused(came: object) -> None:
    assert reason(json.dumps(spoken(message_number=came)).encode()) == "message_number is not a whole number"


@pytest.mark.parametrize("came", [-1, 2**53, str(2**53), 1e30, 10**30])
def test_a_number_that_readers_cannot_keep_exact_is_refused(came: object) -> None:
    assert reason(json.dumps(spoken(message_number=came)).encode()) == "message_number is outside 0 to 2^53-1"


@pytest.mark.parametrize(
    ("came", "speaker"),
    [("Alice", "Alice"), (None, "Unknown"), ("  ", "Unknown"), (7, "7"), (True, "Unknown"), (["Alice"], "Unknown")],
)
def test_the_speaker_is_always_a_name(came: object, speaker: str) -> None:
    assert decoded(speaker=came).speaker == speaker


@pytest.mark.parametrize(
    ("came", "confidence"),
    [(0.5, 0.5), (1, 1.0), (None, 1.0), ("0.5", 1.0), (True, 1.0), (float("nan"), 1.0), (10**400, 1.0)],
)
def test_the_confidence_is_always_a_finite_number(came: object, confidence: float) -> None:
    assert decoded(confidence=came).confidence == confidence


@pytest.mark.parametrize(
    ("came", "why"),
    [(None, "text is missing"), (" \n", "text is blank"), ("", "text is blank"), (42, "text is not a string")],
)
def test_a_message_without_text_is_refused(came: object, why: str) -> None:
    assert reason(raw(spoken(text=came))) == why  # type: ignore[arg-type]
    assert reason(b'{"speaker": "Alice"}') == "text is missing"


@pytest.mark.parametrize(
    ("delivery", "why"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (b'{"text": "hel', "not JSON"),
        (b'\xef\xbb\xbf{"text": "hello"}', "not JSON"),
        (b'{"text": "\xff\xfe"}', "not UTF-8"),
        (b'["text", "hello"]', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"text": "a \\ud800 b"}', "invalid Unicode"),
        (b'{"text": "hello", "speaker": "\\udfff"}', "invalid Unicode"),
        (b'{"text": "hello", "x": ' + b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_message_is_refused_with_its_reason(delivery: bytes, why: str) -> None:
    assert reason(delivery) == why


def test_the_size_limit_counts_bytes() -> None:
    padding = LIMIT - len(raw({"text": ""}))
    assert decode(raw({"text": "x" * padding}), ARRIVAL, max_bytes=LIMIT).text == "x" * padding
    assert reason(raw({"text": "x" * (padding + 1)})) == f"larger than {LIMIT} bytes"


def test_surrogate_pairs_are_ordinary_text() -> None:
    assert decode(b'{"text": "\\ud83e\\uddec helix"}', ARRIVAL, max_bytes=LIMIT).text == "🧬 helix"


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "9" * 40, "9" * 10_000, "[" * 500 + "]" * 500, '"\\ud800"'])
def test_unknown_fields_are_ignored_whatever_they_hold(value: str) -> None:
    assert decode(f'{{"text": "hello", "x": {value}}}'.encode(), ARRIVAL, max_bytes=LIMIT).text == "hello"


@pytest.mark.parametrize(
    ("value", "kept"),
    [('"P0"', "P0"), ("NaN", None), ("9" * 40, 1e40), ("9" * 10_000, None), ('"\\ud800!"', "?!")],
)
def test_metadata_is_made_publishable(value: str, kept: object) -> None:
    heard = decode(f'{{"text": "hello", "metadata": {{"x": {value}}}}}'.encode(), ARRIVAL, max_bytes=LIMIT)
    assert json.loads(orjson.dumps(heard.metadata)) == {"x": kept}


@pytest.mark.parametrize("depth", [100, 251, 252, 253, 254, 500])
def test_metadata_of_any_depth_can_be_published(depth: int) -> None:
    nested = '{"a": ' * depth + "1" + "}" * depth
    delivery = f'{{"text": "hello", "metadata": {nested}}}'.encode()
    published(decode(delivery, ARRIVAL, max_bytes=LIMIT))


@pytest.mark.parametrize("came", [None, "P0", ["P0"], 7])
def test_metadata_is_always_an_object(came: object) -> None:
    assert decoded(metadata=came).metadata == {}


@pytest.mark.parametrize(
    "came", ["2025-10-02T10:30:45.123456", "2025-10-02T10:30:45+02:00", "2025-10-02T10:30:45Z", "2025-10-02 10:30"]
)
def test_a_readable_timestamp_is_passed_on_as_it_came(came: str) -> None:
    heard = decoded(timestamp=came)
    assert (heard.timestamp, heard.timestamp_raw) == (came, None)
    assert heard.time == datetime.fromisoformat(came).timestamp()


@pytest.mark.parametrize("came", [None, "", "yesterday", 1_700_000_000, ["2025-10-02"], "2025-13-45T00:00:00"])
def test_an_unreadable_timestamp_becomes_the_arrival_time_and_is_kept_beside_it(came: object) -> None:
    heard = decoded(timestamp=came)
    assert (heard.timestamp, heard.time, heard.timestamp_raw) == (ARRIVAL.iso(), ARRIVAL.wall, came)


@pytest.mark.parametrize("separator", ["\ud800", "\0", "é"])
def test_a_timestamp_that_could_not_be_published_counts_as_unreadable(separator: str) -> None:
    came = f"2025-10-02{separator}10:30:45"
    datetime.fromisoformat(came)  # Python takes any separator
    seen = published(decoded(timestamp=came))
    assert seen["timestamp"] == ARRIVAL.iso()
    assert seen["timestamp_raw"] == came.replace("\ud800", "?")


@pytest.mark.parametrize("came", ["0001-01-01T00:00:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00+14:00"])
def test_the_ends_of_the_calendar_are_readable(came: str) -> None:
    assert decoded(timestamp=came).timestamp == came


def test_the_assistant_is_known_by_name_or_by_type() -> None:
    assert decoded(advised()).consilience
    assert decoded(speaker="Consilience").consilience
    assert decoded(speaker="Alice", type="consilience").consilience
    assert not decoded(speaker="consilience", type="user").consilience


def test_a_numbered_message_is_the_same_whenever_it_is_sent_again() -> None:
    first = decoded()
    assert decoded(timestamp=at(99), confidence=0.1, message_number="1").identity == first.identity
    others = [decoded(message_number=2), decoded(speaker="Bob"), decoded(text="no"), decoded(type="consilience")]
    assert len({first.identity, *(other.identity for other in others)}) == 5


def test_an_unnumbered_message_is_the_same_only_at_the_same_time() -> None:
    first = decoded(message_number=None)
    assert decoded(message_number=None).identity == first.identity
    assert decoded(message_number=None, timestamp=at(2)).identity != first.identity
    unreadable = decoded(message_number=None, timestamp="yesterday")
    assert decoded(message_number=None, timestamp="yesterday").identity == unreadable.identity


def test_what_has_neither_number_nor_timestamp_has_no_identity() -> None:
    assert [decoded(said).identity for said in ({"text": "Yes."}, {"text": "Yes.", "timestamp": None})] == [b"", b""]
    assert decoded({"text": "Yes.", "timestamp": ""}).identity


def test_parts_of_an_identity_do_not_run_together() -> None:
    assert decoded(speaker="A", text="B C").identity != decoded(speaker="A B", text="C").identity


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["Consilience", at(5)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_fields = st.sampled_from(["text", "speaker", "message_number", "timestamp", "confidence", "type", "metadata", "x"])


def _escaped(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields).encode()


_objects = st.dictionaries(_fields, _json).map(_escaped)
_messages = st.dictionaries(_fields, _json).map(lambda fields: _escaped({**fields, "text": "hello"}))


@given(st.binary() | _objects | _messages)
@example(b'{"text": "\\u0000", "timestamp": "2025-10-02\\ud80010:30"}')
def test_any_bytes_become_a_message_that_can_be_published_or_are_refused(delivery: bytes) -> None:
    try:
        message = decode(delivery, ARRIVAL, max_bytes=LIMIT)
    except MessageError:
        return
    for problem in _violations(published(message)):
        pytest.fail(problem)


_REVISING = ("strikes", "renames", "corrects", "origin", "speaker", "timestamp", "traceparent", "message_number")
_revisions = st.dictionaries(
    st.sampled_from(_REVISING),
    _json | st.sampled_from(["\ud800", "id:4", "monday", 4, 4.0, 10**400, at(5)]),
    min_size=1,
).map(_escaped)


@given(_revisions)
@example(_escaped({"strikes": "\ud800", "timestamp": at(5)}))
@example(_escaped({"strikes": 4, "origin": "\ud800", "timestamp": at(5)}))
def test_any_revision_is_read_or_refused(delivery: bytes) -> None:
    with suppress(MessageError):
        decode(delivery, ARRIVAL, max_bytes=LIMIT)


def _violations(entry: dict[str, Any]) -> Iterator[str]:
    """What the contract says of types, and this entry does not keep."""
    if not (entry["message_number"] is None or type(entry["message_number"]) is int):
        yield "message_number"
    if not (type(entry["text"]) is str and type(entry["speaker"]) is str):
        yield "text or speaker"
    if type(entry["confidence"]) is not float:
        yield "confidence"
    datetime.fromisoformat(entry["timestamp"])


def test_whole_numbers_of_metadata_stay_numbers_and_lists_of_any_depth_can_be_published() -> None:
    nested: list[object] = []
    for _ in range(900):
        nested = [nested]
    heard = from_fields({"text": "hello", "metadata": {"n": -1000, "deep": nested}}, ARRIVAL)
    assert json.loads(orjson.dumps(heard.metadata))["n"] == -1000
