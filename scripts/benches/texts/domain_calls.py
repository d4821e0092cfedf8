"""Model calls for domains that are spared, and what that costs in accuracy: sessions joined from labelled texts.

The model is simulated: it answers the label of most of the messages it is given, wrong one time in ten.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from context_builder.analysis.analyst import Analyst, DomainReading
from context_builder.analysis.text.sentences import sentences
from context_builder.domains import DOMAINS
from context_builder.session.conversation import Conversation
from context_builder.session.domain_gate import DomainGate
from context_builder.session.message import from_fields
from context_builder.session.rules import Rules
from context_builder.session.work import DomainWork
from context_builder.testing import ManualClock
from context_builder.tokens import estimate_tokens

Row = Mapping[str, Any]
Line = tuple[str, str]
"""A domain and what was said about it."""

SESSIONS = 40
NOISE = 0.1
CONFIDENCE = 0.9


@dataclass
class Outcome:
    """Model calls, and messages after which the first current domain was the right one."""

    calls: int = 0
    right: int = 0
    messages: int = 0


def session_of(rows: Sequence[Row], chance: random.Random, run: tuple[int, int], topics: int = 8) -> Iterator[Line]:
    """``topics`` stretches of talk, each of ``run`` messages (fewest, most) about one domain."""
    by_domain = defaultdict(list)
    for row in rows:
        by_domain[row["domain"]].append(row["text"])
    before = ""
    for _ in range(topics):
        domain = chance.choice([name for name in by_domain if name != before])
        told: list[str] = []
        length = chance.randint(*run)
        while len(told) < length:
            told += [sentence for sentence in sentences(chance.choice(by_domain[domain])) if sentence.strip()]
        yield from ((domain, text) for text in told[:length])
        before = domain


async def play(lines: Sequence[Line], gate: DomainGate | None, chance: random.Random) -> Outcome:
    """The session's own triggers, smoothing and gate; one message every five seconds."""
    clock, outcome, heard = ManualClock(), Outcome(), list[str]()
    conversation = Conversation("bench", Rules(), clock.now(), estimate_tokens)
    for number, (domain, text) in enumerate(lines, start=1):
        fields = {"message_number": number, "speaker": "Ann", "text": text}
        conversation.receive([from_fields(fields, clock.advance(5.0))], clock.now())
        heard.append(domain)
        if (work := conversation.domains_work(clock.now())) is not None:
            reading = await gate.repeated(work) if gate else None
            if reading is None:
                outcome.calls += 1
                reading = simulated(work, heard, chance)
                if gate:
                    gate.judged(reading)
            conversation.finish(work, reading, clock.now())
        outcome.right += next(iter(conversation.topic.active), None) == domain
        outcome.messages += 1
    return outcome


def simulated(work: DomainWork, heard: Sequence[str], chance: random.Random) -> DomainReading:
    labels = Counter(heard[said.id - 1] for said in reversed(work.messages))
    domain = chance.choice(DOMAINS) if chance.random() < NOISE else labels.most_common(1)[0][0]
    return DomainReading({domain: CONFIDENCE}, (), "simulated")


async def domain_calls(rows: Sequence[Row], run: tuple[int, int], plain: Analyst) -> tuple[Outcome, Outcome]:
    """Every five messages, and through the gate; the same sessions."""
    totals = Outcome(), Outcome()
    for seed in range(SESSIONS):
        lines = list(session_of(rows, random.Random(seed), run))
        for total, gate in zip(totals, (None, DomainGate(plain)), strict=True):
            outcome = await play(lines, gate, random.Random(seed + 1000))
            total.calls += outcome.calls
            total.right += outcome.right
            total.messages += outcome.messages
    return totals
