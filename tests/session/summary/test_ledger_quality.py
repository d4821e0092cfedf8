"""How long the ledger takes, which holds up the loop of a session."""

from __future__ import annotations

import time

from context_builder.analysis.analyst import DraftPoint
from context_builder.session.messages.buffered_message import BufferedMessage
from context_builder.session.summary.ledger import Ledger
from context_builder.tokens.counter import TokenCounter
from tests.session.saying import ARRIVAL, message, quoting

count = TokenCounter("gpt-4o").count


def test_a_reading_of_25_points_is_taken_in_at_once() -> None:
    ledger = Ledger(1000, count)
    ledger.add([DraftPoint("warm up the counter", quoting(1))], {1: BufferedMessage(1, message(1), ARRIVAL)})
    spent = []
    for reading in range(12):
        drafts = [
            DraftPoint(f"sample {reading}.{n} of the assay reached {n} volts; its buffer was too warm", quoting(n))
            for n in range(1, 26)
        ]
        about = {n: BufferedMessage(n, message(n), ARRIVAL) for n in range(1, 26)}
        started = time.thread_time()
        ledger.add(drafts, about)
        spent.append(time.thread_time() - started)
        assert count(ledger.render()) <= 1000
    assert sorted(spent)[len(spent) // 2] < 0.02, "5 ms, with room for a slow machine"
