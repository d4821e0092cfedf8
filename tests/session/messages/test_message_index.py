"""Which message a correction or a strike is about, whatever order they come in."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from context_builder.errors import MessageError, StoreError
from context_builder.session.messages.message import Message, delivered, from_fields
from context_builder.session.messages.message_index import MessageIndex, index_entries
from context_builder.session.messages.revision import Correction, Revision, SpeakerRename, Strike
from tests.damage import damaged
from tests.session.saying import ARRIVAL, advised, at, message, spoken


def taken(*deliveries: dict[str, Any], index: MessageIndex | None = None) -> list[Message | Revision | None]:
    index = index or MessageIndex("monday", {}, 0)
    return [index.take(delivered(one, ARRIVAL)) for one in deliveries]


def corrected(what: object) -> tuple[int, str | None, str]:
    assert isinstance(what, Correction)
    return what.id, what.text, what.speaker


def refused(*deliveries: dict[str, Any]) -> str:
    with pytest.raises(MessageError) as error:
        taken(*deliveries)
    return str(error.value)


def test_the_same_number_at_the_same_time_in_other_words_is_a_correction() -> None:
    assert corrected(taken(spoken(1, "fifteen"), spoken(1, "fifty"))[1]) == (1, "fifty", "Alice")


def test_the_same_number_at_another_time_is_a_new_message() -> None:
    assert isinstance(taken(spoken(1, "fifteen"), spoken(1, "fifty", timestamp=at(500)))[1], Message)


def test_the_same_number_without_a_time_is_a_new_message() -> None:
    first, second = spoken(1, "fifteen", timestamp=None), spoken(1, "fifty", timestamp=None)
    assert isinstance(taken(first, second)[1], Message)


def test_people_and_the_assistant_are_numbered_apart() -> None:
    assert isinstance(taken(spoken(1, "fifteen"), advised("fifty", 1, timestamp=at(1)))[1], Message)


def test_a_correction_names_a_number() -> None:
    later = {"corrects": 1, "text": "fifty", "timestamp": at(90)}
    assert corrected(taken(spoken(1, "fifteen"), later)[1]) == (1, "fifty", "Alice")


def test_a_correction_of_the_speaker_alone_keeps_the_words() -> None:
    assert corrected(taken(spoken(1), {"corrects": "1", "speaker": "Bo"})[1]) == (1, None, "Bo")


def test_a_correction_names_an_id() -> None:
    unnumbered = spoken(None, "fifteen")
    for name in ("id:2", "message:monday/2", 2):  # no message has the number 2
        assert corrected(taken(spoken(7), unnumbered, {"corrects": name, "text": "fifty"})[2])[0] == 2


def test_a_number_that_is_no_messages_is_no_numbered_messages_id() -> None:
    _, new = taken(spoken(7, "hello"), {"corrects": 1, "text": "fifty", "speaker": "Bo"})
    assert isinstance(new, Message)
    assert (new.number, new.text) == (1, "fifty")


def test_a_chain_of_corrections_is_of_one_message() -> None:
    chain = [spoken(1, "a"), spoken(1, "b"), {"corrects": 1, "text": "c"}, {"corrects": 1, "speaker": "Bo"}]
    *_, last = taken(*chain, {"corrects": 1, "text": "d"})
    assert corrected(last) == (1, "d", "Bo")


def test_after_a_recorder_began_to_count_anew_the_newest_of_a_number_is_meant_and_by_its_time_each() -> None:
    runs = spoken(1, "first run"), spoken(1, "second run", timestamp=at(900))
    assert corrected(taken(*runs, {"corrects": 1, "text": "x"})[2])[0] == 2
    assert corrected(taken(*runs, spoken(1, "x"))[2])[0] == 1
    assert corrected(taken(*runs, spoken(1, "x", timestamp=at(900)))[2])[0] == 2


def test_a_correction_that_comes_first_is_the_message_and_the_message_then_tells_nothing_new() -> None:
    early = {"corrects": 5, "text": "fifty", "speaker": "Alice", "timestamp": at(60)}
    new, late, other = taken(early, spoken(5, "fifteen"), spoken(5, "much later", timestamp=at(600)))
    assert isinstance(new, Message)
    assert (new.number, new.text, new.corrects) == (5, "fifty", None)
    assert late is None
    assert isinstance(other, Message)


@pytest.mark.parametrize(
    ("corrects", "reason"),
    [
        ("id:9", "corrects message id:9, which is not of this session"),
        ("message:tuesday/1", "is about a message of another session, tuesday"),
        ([1], "corrects is neither a message number nor an id such as id:12"),
        (-1, "corrects is neither a message number nor an id such as id:12"),
        (True, "corrects is neither a message number nor an id such as id:12"),
        ("9" * 40, "corrects is neither a message number nor an id such as id:12"),
    ],
)
def test_a_correction_of_nothing_says_so(corrects: object, reason: str) -> None:
    assert refused(spoken(1), spoken(None, "fifty", corrects=corrects)) == reason


def test_a_correction_of_a_message_that_is_not_there_needs_its_words() -> None:
    assert refused({"corrects": 9, "speaker": "Bo"}) == "corrects message 9, which is not of this session"


def test_a_correction_without_words_or_a_speaker_is_refused() -> None:
    assert refused(spoken(1), {"corrects": 1}) == "text is missing"
    assert refused(spoken(1), {"corrects": 1, "text": " "}) == "text is blank"


def test_nobody_is_made_the_assistant() -> None:
    assert "the assistant's" in refused(spoken(1), {"corrects": 1, "speaker": "Consilience"})
    assert "Consilience" in refused({"renames": "Alice", "speaker": "Consilience"})


def test_no_mask_takes_the_place_of_words_or_of_a_name() -> None:
    mask = "§§secret(PASSWORD)"
    assert "a mask" in refused(spoken(1), {"corrects": 1, "text": f"It is {mask}."})
    assert "a mask" in refused(spoken(1), {"corrects": 1, "speaker": mask})
    assert "a mask" in refused({"renames": "Alice", "speaker": mask})
    assert isinstance(taken(spoken(1, f"It is {mask}."))[0], Message)  # which an assistant may repeat


def test_a_strike_by_origin_is_of_that_message_alone() -> None:
    first, second = spoken(1, "a"), spoken(1, "b", timestamp=at(500))
    one, _, struck = taken(first, second, {"strikes": 1, "origin": from_fields(first, ARRIVAL).first_identity.hex()})
    assert isinstance(one, Message)
    assert isinstance(struck, Strike)
    assert struck.id == 1
    assert "not of this session" in refused(first, {"strikes": 1, "origin": "ab"})
    assert "origin is not a string" in refused(first, {"strikes": 1, "origin": 7})


def test_a_struck_message_is_struck_once_and_never_corrected() -> None:
    strike, again, *corrections = taken(
        spoken(1, "a"), {"strikes": 1}, {"strikes": "id:1"}, spoken(1, "b"), {"corrects": 1, "text": "c"}
    )[1:]
    assert isinstance(strike, Strike)
    assert (again, *corrections) == (None, None, None)


def test_a_strike_of_nothing_says_so() -> None:
    assert refused({"strikes": 4}) == "strikes message 4, which is not of this session"


def test_a_message_that_has_words_is_a_message_whatever_else_it_has() -> None:
    assert isinstance(taken(spoken(1, strikes=4, renames="Bo"))[0], Message)


def test_a_speaker_is_renamed() -> None:
    assert taken({"renames": "Speaker 2", "speaker": "Ida"}) == [SpeakerRename("Speaker 2", "Ida")]
    assert "two names" in refused({"renames": "Speaker 2"})


def test_what_an_earlier_process_took_in_is_found_by_its_fields() -> None:
    said = message(3, "fifteen")
    held = index_entries(7, said, said.first_identity.hex())
    index = MessageIndex("monday", {name: held[name] for name in held if name == "n:3"}, 7)
    assert index.wanted() == {"i:7"}
    index.hold(held)
    assert corrected(taken(spoken(3, "fifty"), index=index)[0]) == (7, "fifty", "Alice")


def test_corrections_are_told_apart_by_what_they_correct_and_when() -> None:
    first = delivered({"corrects": 1, "text": "a", "timestamp": at(1)}, ARRIVAL)
    others = [
        {"corrects": 2, "text": "a", "timestamp": at(1)},
        {"corrects": 1, "text": "a", "timestamp": at(2)},
        {"text": "a", "timestamp": at(1)},
    ]
    identities = {delivered(one, ARRIVAL).identity for one in others}
    assert len(identities | {first.identity}) == 4


DROPPED = {"below": 3, "n": [1.0, 2.0], "c": [1.0, 2.0], "time": [0.0, 4e9]}
HELD = {"dropped": DROPPED, "n:5": [[5, "aa"]], "i:5": ["00", 5, False, 1.0, "2025-10-02T10:30:45", "Ann"]}


def test_whatever_is_damaged_is_named_or_harmless() -> None:
    whole = {field: orjson.dumps(value) for field, value in HELD.items()}
    raws = (b"", b"{", b"1" + b"0" * 400, b"NaN")
    deliveries = (
        spoken(5),
        spoken(1),
        {"corrects": 5, "text": "No."},
        {"corrects": "id:2", "text": "No."},
        {"strikes": 5},
    )
    broken = [(field, raw) for field in HELD for raw in raws]
    broken += [(field, orjson.dumps(other)) for field, value in HELD.items() for _, other in damaged(value)]
    broken += [
        ("n:5", whole["n:5"].replace(b"[[5", b"[[%d" % 2**64)),
        ("i:5", whole["i:5"].replace(b",5", b",%d" % 2**64)),
    ]
    told: list[tuple[str, str]] = []
    for field, raw in broken:
        for one in deliveries:
            try:
                taken(one, index=MessageIndex("monday", {**whole, field: raw}, 9))
            except MessageError:
                pass
            except StoreError as error:
                told.append((field, str(error)))
    assert len(told) > 50
    assert [one for one in told if f"field {one[0]} is damaged" not in one[1]] == []
