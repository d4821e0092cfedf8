"""The JSON Schemas of the documentation describe what listeners may send and what readers get."""

from __future__ import annotations

from typing import Any

import pytest

from context_builder.archive.archive import as_record
from context_builder.errors import MessageError
from context_builder.session.conversation_context import ConversationContext
from context_builder.session.messages.message import from_fields
from context_builder.testing import InMemoryArchive
from tests.session.saying import ARRIVAL, advised, spoken
from tests.session.schemas import conforms, validator


async def test_what_a_conversation_publishes_and_archives_is_as_documented() -> None:
    archive = InMemoryArchive()
    context = ConversationContext("monday", archive=archive)
    for number in range(1, 8):
        metadata = {"user_id": "alice"}
        await context.add_message(spoken(number, f"Helicase {number} unwinds the DNA double helix", metadata=metadata))
    await context.add_message(spoken(8, timestamp="yesterday"))
    await context.add_consilience_response(advised())
    await context.infer_domains()
    assert conforms("state", context.to_dict())
    assert conforms("conversation-state", context.get_conversation_state())
    await context.update_summary()
    await context.add_message(spoken(9))
    assert context.rolling_summary["points"]
    assert conforms("state", context.to_dict())
    (row,) = archive.rows.values()
    assert conforms("archived-summary", as_record(row))


def test_a_field_that_is_not_described_is_found() -> None:
    state = ConversationContext("monday").to_dict()
    assert conforms("state", state)
    with pytest.raises(AssertionError, match="mood"):
        conforms("state", {**state, "mood": "cheerful"})


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        (spoken(42), True),
        (advised(), True),
        ({"text": "hello"}, True),
        ({"text": "hello", "message_number": "7"}, True),
        ({"text": "hello", "message_number": None, "timestamp": None}, True),
        ({"text": "hello", "_score": 42.0}, True),
        ({"speaker": "Alice"}, False),
        ({"text": " \n"}, False),
        ({"text": 5}, False),
        ({"text": "hello", "message_number": -1}, False),
        ({"text": "hello", "message_number": 2**53}, False),
        ({"text": "hello", "message_number": 1.5}, False),
        ({"text": "hello", "message_number": "seven"}, False),
    ],
)
def test_a_message_is_taken_in_when_the_schema_allows_it(fields: dict[str, Any], taken: bool) -> None:
    assert validator("message").is_valid(fields) == taken
    if taken:
        assert from_fields(fields, ARRIVAL).text == fields["text"]
    else:
        with pytest.raises(MessageError):
            from_fields(fields, ARRIVAL)
