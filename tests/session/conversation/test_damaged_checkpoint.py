"""A checkpoint that somebody else wrote into is refused by the name of what is wrong, and read no further."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from context_builder.errors import StoreError
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.state import conversation_state, restore, take_session_state
from context_builder.session.summary.citation import explain
from context_builder.testing import ManualClock
from tests.damage import damaged
from tests.session.conversation.test_state import lively, written
from tests.session.saying import hear, message, words

SECRET = "hunter2"


PLACE = "in place of what follows"
RAW = (
    b"1" + b"0" * 400,
    b"-9223372036854775809",
    b"18446744073709551615",
    b"NaN",
    b'"\\ud800"',
    b"[" * 300 + b"]" * 300,
)
"""JSON that some readers take and others do not, or that cannot be written again."""


def worked_with(fields: dict[str, bytes], clock: ManualClock) -> Conversation:
    """A conversation that is continued, goes on, and is written and read again."""
    subject = restore("monday", fields, 1, SessionConfig(), clock.now(), words)
    orjson.loads(bytes(take_session_state(subject, 1, clock.now())))
    hear(subject, clock, 20)
    subject.receive([message(10, "It says otherwise"), message(None)], clock.now())
    clock.advance(100)
    subject.next_keyword_task(clock.now())
    subject.next_domain_task(clock.now())
    subject.next_summary_task([])
    conversation_state(subject, clock.now())
    explain(written(subject))
    return subject


def every_damage(fields: dict[str, bytes]) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Each field with each value in it replaced, and whole."""
    for name, value in fields.items():
        for broken in (b"", b"\x00", b"{", b"[]", b"null", b"1", b'"x"', b"[" * 100_000):
            yield name, {**fields, name: broken}
        for place, other in damaged(orjson.loads(value)):
            yield f"{name} {place}", {**fields, name: orjson.dumps(other)}
        for place, other in damaged(orjson.loads(value), (PLACE,)):
            for raw in RAW:
                yield (
                    f"{name} {place} {raw[:20]!r}",
                    {**fields, name: orjson.dumps(other).replace(b'"%b"' % PLACE.encode(), raw)},
                )


def test_whatever_is_damaged_is_named_or_harmless(clock: ManualClock) -> None:
    whole = written(lively(clock))
    refused, failed = 0, []
    for place, fields in every_damage(whole):
        try:
            worked_with(fields, clock)
        except StoreError as error:
            refused += 1
            if f"field {place.partition(' ')[0]}" not in str(error) and "a newer version" not in str(error):
                failed.append((place, str(error)))
        except Exception as error:  # noqa: BLE001 which is what must not be
            failed.append((place, repr(error)))
    assert failed == []
    assert refused > 500


def test_what_is_told_of_it_quotes_nothing(clock: ManualClock) -> None:
    whole = written(lively(clock))
    head: dict[str, Any] = orjson.loads(whole["head"])
    head["names"] = {SECRET: 1}
    for fields in ({"head": orjson.dumps(head)}, {"m:1": orjson.dumps(SECRET)}, {f"m:{SECRET}"[:2] + "x": b"{}"}):
        with pytest.raises(StoreError) as told:
            restore("monday", {**whole, **fields}, 0, SessionConfig(), clock.now(), words)
        assert SECRET not in str(told.value)
        assert "context-builder forget monday" in str(told.value)


@pytest.mark.parametrize("fields", [{}, {"head": b"{}"}])
def test_a_damaged_count_of_summaries_is_named(fields: dict[str, bytes], clock: ManualClock) -> None:
    with pytest.raises(StoreError, match=r"context_builder:summary_seqs?, field monday is damaged \(ValueError\)"):
        restore("monday", {**fields, "summary_seq": SECRET.encode()}, 0, SessionConfig(), clock.now(), words)
