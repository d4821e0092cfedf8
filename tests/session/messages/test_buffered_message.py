"""A buffered message is written down with all that is known of it, and read again by another process."""

from __future__ import annotations

import orjson
import pytest

from context_builder.analysis.analyst import DomainResult
from context_builder.clock import Instant
from context_builder.session.messages.buffered_message import BufferedMessage
from tests.session.saying import ARRIVAL, START, TEXT, advice, message

LATER = Instant(START + 60, 5_000.0)


def understood() -> BufferedMessage:
    entry = BufferedMessage(7, message(1, metadata={"user_id": "u-1"}, confidence=0.5, timestamp="soon"), ARRIVAL)
    entry.set_keywords(["helicase"], "stub")
    entry.tag(DomainResult({"Biology / Life Sciences": 0.9}, ("DNA",), "stub"))
    return entry


def test_another_process_reads_what_this_one_wrote() -> None:
    again = BufferedMessage.decode(understood().encode(), LATER)
    assert again.wire() == understood().wire()
    assert (again.user_id, again.timestamp_raw, again.confidence) == ("u-1", "soon", 0.5)
    assert (again.field, again.for_analyst()) == ("m:7", understood().for_analyst())
    assert again.entered == LATER.monotonic - 60
    assert not again.needs_keywords


@pytest.mark.parametrize("written", [message(None), advice()])
def test_what_is_not_known_of_a_message_stays_unknown(written) -> None:
    entry = BufferedMessage(1, written, ARRIVAL)
    again = BufferedMessage.decode(entry.encode(), LATER)
    assert again.wire() == entry.wire()
    assert not {"user_id", "timestamp_raw"} & again.wire().keys()
    assert again.needs_keywords
    said = again.for_analyst()
    assert (said.consilience, said.number, said.timestamp) == (written.consilience, written.number, written.timestamp)


def test_the_moment_of_a_message_is_not_read_anew_in_another_time_zone() -> None:
    fields = orjson.loads(BufferedMessage(1, message(1), ARRIVAL).encode())
    assert BufferedMessage.decode(orjson.dumps({**fields, "time": 5.0}), LATER).time == 5.0


def test_what_is_published_follows_what_is_learnt() -> None:
    entry = BufferedMessage(1, message(1), ARRIVAL)
    before = entry.encode()
    entry.set_keywords(["helicase"], "stub")
    after = entry.encode()
    assert (orjson.loads(before)["keywords"], orjson.loads(after)["keywords"]) == ([], ["helicase"])
    assert orjson.loads(after)["text"] == TEXT
