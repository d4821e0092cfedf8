"""The contract's order, and what leaves a buffer that is full."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from context_builder.clock import Instant
from context_builder.session.messages.buffer import Buffer
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.messages.message import Message
from tests.session.saying import ARRIVAL, advice, at, message


def filled(*messages: Message, limit: int = 1000, max_bytes: int = 1_000_000) -> Buffer:
    buffer = Buffer(limit, max_bytes)
    for entry_id, each in enumerate(messages, start=1):
        buffer.insert(BufferedMessage(entry_id, each, ARRIVAL))
    return buffer


def said(number: int, second: float) -> Message:
    return message(number, timestamp=at(second))


def ids(buffer: Buffer) -> list[int]:
    return [entry.id for entry in buffer.ordered()]


def test_messages_stay_in_order_of_arrival() -> None:
    assert ids(filled(said(1, 1), said(2, 2), said(5, 5))) == [1, 2, 3]


def test_a_late_message_goes_before_the_first_that_is_later_by_number_and_time() -> None:
    assert ids(filled(said(1, 1), said(4, 4), said(5, 5), said(3, 3))) == [1, 4, 2, 3]


def test_a_lower_number_alone_is_not_late() -> None:
    restarted_recorder = (said(41, 41), said(42, 42), said(1, 50), said(2, 51))
    assert ids(filled(*restarted_recorder)) == [1, 2, 3, 4]


def test_an_earlier_time_alone_is_not_late() -> None:
    assert ids(filled(said(1, 10), said(2, 5))) == [1, 2]


def test_numbers_of_two_recordings_do_not_mix() -> None:
    late_in_the_second = (said(41, 41), said(1, 50), said(3, 53), said(2, 52))
    assert ids(filled(*late_in_the_second)) == [1, 2, 4, 3]


def test_the_assistant_and_unnumbered_messages_never_move_and_never_make_room() -> None:
    early_advice = advice(message_number=1, timestamp=at(0))
    unnumbered = message(None, timestamp=at(0))
    assert ids(filled(said(5, 5), early_advice, unnumbered)) == [1, 2, 3]
    assert ids(filled(advice(message_number=9, timestamp=at(9)), said(1, 1))) == [1, 2]


def test_timestamps_are_compared_as_moments_whatever_their_offset() -> None:
    noon_in_berlin, before_noon = "2025-06-01T12:00:00+02:00", "2025-06-01T09:59:00+00:00"
    buffer = filled(message(2, timestamp=noon_in_berlin), message(1, timestamp=before_noon))
    assert ids(buffer) == [2, 1]


def test_only_an_order_that_ids_do_not_tell_is_written_down() -> None:
    assert filled(said(1, 1), said(2, 2)).order() == []
    buffer = filled(said(1, 1), said(3, 3), said(2, 2))
    assert buffer.order() == [1, 3, 2]
    buffer.remove([3])
    assert buffer.order() == []


def test_what_no_longer_fits_leaves_oldest_first() -> None:
    buffer = filled(*(said(n, n) for n in range(1, 6)), limit=3)
    assert buffer.waiting_outside() == 2
    assert [entry.id for entry in buffer.overflow()] == [1, 2]
    assert (ids(buffer), buffer.pending, buffer.waiting_outside()) == ([3, 4, 5], 2, 2)


def test_pinned_entries_stay_but_are_not_published_beyond_the_limit() -> None:
    buffer = filled(*(said(n, n) for n in range(1, 4)), limit=3)
    buffer.pin(buffer.ordered()[:2])
    for n in range(4, 8):
        buffer.insert(BufferedMessage(n, said(n, n), ARRIVAL))
    assert [entry.id for entry in buffer.overflow()] == [3, 4]
    assert ids(buffer) == [1, 2, 5, 6, 7]
    assert [entry.id for entry in buffer.published()] == [5, 6, 7]
    assert buffer.waiting_outside() == 4
    buffer.remove([1, 2])
    assert buffer.pinned() == []


def test_age_is_that_of_the_first_arrival_even_if_a_late_message_is_first_in_order() -> None:
    buffer = filled(said(1, 1), said(3, 3))
    buffer.ordered()[0].entered = 500.0
    assert buffer.oldest_entered(keep_last=0) == 500.0
    assert buffer.oldest_entered(keep_last=1) == 500.0
    assert buffer.oldest_entered(keep_last=2) is None
    assert Buffer(3, 1000).oldest_entered(keep_last=0) is None


def test_a_late_message_among_those_that_are_not_published_is_not_published_either() -> None:
    buffer = filled(said(1, 1), said(3, 3), limit=2)
    buffer.pin(buffer.ordered())
    for entry_id, number in ((3, 4), (4, 5)):
        buffer.insert(BufferedMessage(entry_id, said(number, number), ARRIVAL))
    buffer.insert(BufferedMessage(5, said(2, 2), ARRIVAL))
    assert [entry.number for entry in buffer.published()] == [4, 5]
    assert [entry.number for entry in buffer.overflow()] == [2]
    assert [entry.number for entry in buffer.ordered()] == [1, 3, 4, 5]


def is_out_of_place(late: Message, earlier: list[Message]) -> int | None:
    """The contract's sentence, word for word."""
    for index, other in enumerate(earlier):
        if late.consilience or late.number is None or other.consilience or other.number is None:
            continue
        if other.number > late.number and other.time > late.time:
            return index
    return None


_said = st.builds(said, st.integers(1, 6), st.integers(1, 6))
_messages = st.lists(_said | st.just(advice()) | st.just(message(None)), max_size=12)


@given(_messages)
def test_the_order_is_the_contracts_for_any_arrivals(messages: list[Message]) -> None:
    expected: list[Message] = []
    for each in messages:
        index = is_out_of_place(each, expected)
        expected.insert(len(expected) if index is None else index, each)
    found = filled(*messages).ordered()
    assert [(e.number, e.time, e.consilience) for e in found] == [(m.number, m.time, m.consilience) for m in expected]


def said_at_length(number: int, characters: int) -> Message:
    return message(number, "x" * characters, timestamp=at(number))


def published_bytes(buffer: Buffer) -> int:
    return len(b",".join(buffer.publication.take().entries))


def test_what_does_not_fit_by_its_bytes_leaves_oldest_first() -> None:
    buffer = filled(*(said_at_length(n, 1000) for n in range(1, 6)), max_bytes=4000)
    assert [entry.id for entry in buffer.published()] == [3, 4, 5]
    assert 3000 < published_bytes(buffer) <= 4000
    assert [entry.id for entry in buffer.overflow()] == [1, 2]
    assert (ids(buffer), buffer.pending, buffer.waiting_outside()) == ([3, 4, 5], 2, 2)


def test_a_message_that_is_too_large_alone_is_published_alone_and_makes_room_for_the_next() -> None:
    buffer = filled(said_at_length(1, 10), said_at_length(2, 10_000), max_bytes=4000)
    assert [entry.id for entry in buffer.published()] == [2]
    buffer.insert(BufferedMessage(3, said_at_length(3, 10), ARRIVAL))
    assert [entry.id for entry in buffer.published()] == [3]
    assert [entry.id for entry in buffer.overflow()] == [1, 2]


def test_what_is_learnt_about_a_message_takes_room_too() -> None:
    buffer = filled(*(said_at_length(n, 1000) for n in range(1, 4)), max_bytes=4000)
    assert buffer.overflow() == []
    newest = buffer.ordered()[-1]
    newest.set_keywords(["k" * 500], "text")
    buffer.touched([newest])
    assert [entry.id for entry in buffer.overflow()] == [1]
    assert published_bytes(buffer) <= 4000


def test_pinned_entries_without_room_stay_but_are_not_published_again() -> None:
    buffer = filled(*(said_at_length(n, 1000) for n in range(1, 4)), max_bytes=4000)
    buffer.pin(buffer.ordered()[:2])
    for n in range(4, 7):
        buffer.insert(BufferedMessage(n, said_at_length(n, 1000), ARRIVAL))
    assert [entry.id for entry in buffer.overflow()] == [3]
    assert ids(buffer) == [1, 2, 4, 5, 6]
    buffer.entries[1].set_keywords(["helix"], "text")
    buffer.touched([buffer.entries[1]])
    assert [entry.id for entry in buffer.published()] == [4, 5, 6]
    buffer.remove([1, 5, 6])
    assert [entry.id for entry in buffer.published()] == [4]  # message 3, after 2, is pending


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from("came pin learn remove out".split()))))
def test_the_newest_are_published_within_both_bounds_whatever_happens(happenings: list[tuple[int, int, str]]) -> None:
    buffer, taken_out = Buffer(4, 1500), 0
    shown: list[BufferedMessage] = []
    for entry_id, (number, size, what) in enumerate(happenings, start=1):
        match what:
            case "came":
                buffer.insert(BufferedMessage(entry_id, message(number, "x" * 100 * size, timestamp=at(size)), ARRIVAL))
            case "pin":
                buffer.pin(buffer.ordered()[:size])
            case "learn":
                for entry in buffer.ordered()[number:][:1]:
                    entry.set_keywords(["k" * 20 * size], "text")
                    buffer.touched([entry])
            case "remove":
                buffer.remove([entry.id for entry in buffer.ordered()[number:][:size]])
            case "out":
                taken_out += len(buffer.overflow())
        outside = [n for n, e in enumerate(buffer.ordered()) if e not in shown and e.id != entry_id]
        candidates = buffer.ordered()[1 + max(outside, default=-1) :]
        while len(candidates) > 4 or (len(candidates) > 1 and sum(len(e.encode()) + 1 for e in candidates) > 1500):
            candidates.pop(0)
        shown = buffer.published()
        assert shown == candidates
        assert buffer.waiting_outside() == taken_out + len(buffer.ordered()) - len(shown)
        assert buffer.without_keywords() == [entry for entry in shown if entry.needs_keywords]


WHAT = st.sampled_from(["say", "say late", "learn", "pin", "overflow", "remove"])


@given(st.lists(st.tuples(WHAT, st.integers(0, 9)), max_size=40), st.integers(1, 6), st.integers(300, 3000))
def test_the_publication_is_what_is_published(steps: list[tuple[str, int]], limit: int, max_bytes: int) -> None:
    buffer = Buffer(limit, max_bytes)
    for entry_id, (what, choice) in enumerate(steps, start=1):
        held = buffer.ordered()
        match what:
            case "say":
                buffer.insert(BufferedMessage(entry_id, said(2 * entry_id, entry_id), ARRIVAL))
            case "say late":
                number = 2 * max(0, entry_id - choice) + 1
                buffer.insert(BufferedMessage(entry_id, said(number, entry_id - choice), ARRIVAL))
            case "learn" if held:
                entry = held[choice % len(held)]
                entry.set_keywords([f"keyword {choice}"], "stub")
                buffer.touched([entry])
            case "pin":
                buffer.pin(held[:choice])
            case "overflow":
                buffer.overflow()
            case "remove":
                buffer.remove([entry.id for entry in held if entry.id % 3 == choice % 3])
        assert buffer.publication.length == sum(len(entry.encode()) + 1 for entry in buffer.published())
        assert [*buffer.publication.take().entries] == [entry.encode() for entry in buffer.published()]
        assert buffer.published_count <= limit


def test_a_talk_of_another_time_goes_by_the_faster_of_two_clocks() -> None:
    """The second source's clock is three minutes behind: what it sends is not old when it comes."""
    window, now = 120.0, Instant(ARRIVAL.wall + 1e6, ARRIVAL.monotonic)
    buffer = filled(said(1, 180), said(2, 0), said(3, 190), said(4, 10))
    buffer.age(now, window)
    assert [entry.entered for entry in buffer.ordered()] == [ARRIVAL.monotonic] * 4
    buffer.insert(BufferedMessage(5, said(5, 305), ARRIVAL))
    buffer.age(now, window)
    aged = [entry.id for entry in buffer.ordered() if entry.entered < ARRIVAL.monotonic]
    assert aged == [1, 2]
