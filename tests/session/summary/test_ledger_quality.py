"""How the ledger gives way under pressure: evenly, oldest first, and what identifies things last."""

from __future__ import annotations

import time

from context_builder.analysis.analyst import DraftPoint
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.compression import essence
from context_builder.session.summary.ledger import Ledger
from context_builder.session.summary.token_budget import NEWEST
from context_builder.tokens.counter import TokenCounter
from tests.session.saying import ARRIVAL, message, words

count = TokenCounter("gpt-4o").count


def filled(points: int, budget: int, text: str) -> Ledger:
    """A ledger that took in so many points one by one; ``{n}`` in the text is the point's number."""
    ledger = Ledger(budget, words)
    for n in range(1, points + 1):
        ledger.add([DraftPoint(text.format(n=n), (n,))], {n: BufferedMessage(n, message(n), ARRIVAL)})
    return ledger


def test_every_identifier_of_a_long_session_stays_while_there_is_room_for_it() -> None:
    ledger = filled(60, 170, "so we really think that careful people measured several remarkable genes like TP{n}")
    assert all(f"TP{n}" in ledger.render() for n in range(1, 61))


def test_the_beginning_of_a_long_session_keeps_its_share() -> None:
    ledger = filled(200, 200, "people measured gene TP{n} again with remarkable results")
    old = [n for n in range(1, 101) if f"TP{n} " in ledger.render() + " " or f"TP{n};" in ledger.render()]
    assert len(old) > 25
    assert {n // 25 for n in old} >= {0, 1, 2, 3}


def test_no_point_is_merged_again_before_the_others_have_been_merged_as_often() -> None:
    levels = [point.level for point in filled(200, 200, "people measured gene TP{n} again and again").points[:-NEWEST]]
    assert max(levels) - min(levels) <= 3
    assert levels == sorted(levels, reverse=True)


def test_the_newest_points_lose_function_words_at_most() -> None:
    levels = [point.level for point in filled(200, 200, "it is really the case that TP{n} binds").points]
    assert max(levels[-NEWEST:]) <= 1 < min(levels[:-NEWEST])


def test_what_other_points_tell_makes_way_first() -> None:
    told = {"helicase": 3, "unwinds": 1, "forks": 1}
    assert essence("helicase unwinds forks", told, content=2) == "unwinds forks"


def test_a_reading_of_25_points_is_taken_in_at_once() -> None:
    ledger = Ledger(1000, count)
    ledger.add([DraftPoint("warm up the counter", (1,))], {1: BufferedMessage(1, message(1), ARRIVAL)})
    spent = []
    for reading in range(12):
        drafts = [
            DraftPoint(f"sample {reading}.{n} of the assay reached {n} volts because its buffer was too warm", (n,))
            for n in range(1, 26)
        ]
        about = {n: BufferedMessage(n, message(n), ARRIVAL) for n in range(1, 26)}
        started = time.thread_time()
        ledger.add(drafts, about)
        spent.append(time.thread_time() - started)
        assert count(ledger.render()) <= 1000
    assert sorted(spent)[len(spent) // 2] < 0.02, "5 ms, with room for a slow machine"
