"""Model calls for domains that are spared, and what that costs in accuracy: sessions joined from labelled texts.

The model is simulated: it answers the label of most of the messages it is given, wrong one time in ten. Or plain text
analysis stands for it, which errs like a model, again and again about the same words.
"""

from __future__ import annotations

import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from context_builder.analysis.analyst import Analyst, DomainResult
from context_builder.analysis.text.sentences import sentences
from context_builder.domains import DOMAINS
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.conversation import Conversation
from context_builder.session.conversation.domains import DomainGate
from context_builder.session.conversation.tasks import DomainTask
from context_builder.session.messages.message import from_fields
from context_builder.testing import ManualClock
from context_builder.tokens.counter import estimate_tokens
from scripts.benches.shared.labelled import Row
from scripts.benches.shared.report import Line

Utterance = tuple[str, str]
"""A domain and what was said about it."""

TOPIC_LENGTHS = ((6, 12), (15, 40), (40, 80))
"""Fewest and most messages about one domain."""

SESSIONS = 40
NOISE = 0.1
CONFIDENCE = 0.9


@dataclass
class Outcome:
    """Model calls, and messages after which the first current domain was the right one."""

    calls: int = 0
    right: int = 0
    messages: int = 0

    @property
    def accuracy(self) -> float:
        return self.right / self.messages

    def add(self, other: Outcome) -> None:
        self.calls += other.calls
        self.right += other.right
        self.messages += other.messages


class Simulated:
    """A model that reads labels (by message id): that of most messages, the newest of those in doubt."""

    name = "simulated"

    def __init__(self, labels: Sequence[str], chance: random.Random) -> None:
        self._labels = labels
        self._chance = chance

    def label(self, work: DomainTask) -> str:
        heard = Counter(self._labels[said.id - 1] for said in reversed(work.messages))
        return heard.most_common(1)[0][0]

    async def read(self, work: DomainTask) -> DomainResult:
        domain = self._chance.choice(DOMAINS) if self._chance.random() < NOISE else self.label(work)
        return DomainResult({domain: CONFIDENCE}, (), self.name)


class PlainModel(Simulated):
    """Plain text analysis in the model's place."""

    def __init__(self, labels: Sequence[str], chance: random.Random, plain: Analyst) -> None:
        super().__init__(labels, chance)
        self._plain = plain

    async def read(self, work: DomainTask) -> DomainResult:
        return DomainResult((await self._plain.infer_domains(work.messages)).confidence, (), self.name)


class AlwaysAsk:
    """The gate that spares nothing."""

    async def repeated(self, work: DomainTask) -> DomainResult | None:
        return None

    def model_answered(self) -> None:
        return None


class Knowing(AlwaysAsk):
    """The gate that knows every label, and asks when the topic is another, or the last answer was wrong."""

    def __init__(self, model: Simulated) -> None:
        self._model = model

    async def repeated(self, work: DomainTask) -> DomainResult | None:
        stands = work.standing is not None and work.standing.domains == [self._model.label(work)]
        return work.standing if stands else None


Gate = DomainGate | AlwaysAsk


def messages_per_text(rows: Sequence[Row]) -> float:
    return statistics.mean(sum(1 for sentence in sentences(row["text"]) if sentence.strip()) for row in rows)


def session_of(
    rows: Sequence[Row], chance: random.Random, run: tuple[int, int], topics: int = 8
) -> Iterator[Utterance]:
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


async def play(lines: Sequence[Utterance], gate: Gate, model: Simulated) -> Outcome:
    """The session's own triggers, smoothing and gate; one message every five seconds."""
    clock, outcome = ManualClock(), Outcome()
    conversation = Conversation("bench", SessionConfig(), clock.now(), estimate_tokens)
    for number, (domain, text) in enumerate(lines, start=1):
        fields = {"message_number": number, "speaker": "Ann", "text": text}
        conversation.receive([from_fields(fields, clock.advance(5.0))], clock.now())
        if (work := conversation.next_domain_task(clock.now())) is not None:
            reading = await gate.repeated(work)
            if reading is None:
                outcome.calls += 1
                reading = await model.read(work)
                gate.model_answered()
            conversation.finish(work, reading, clock.now())
        outcome.right += next(iter(conversation.domain_tracker.topic.active), None) == domain
        outcome.messages += 1
    return outcome


@dataclass(frozen=True, slots=True)
class Compared:
    """The same sessions: asking every five messages, through the gate, and through one that knows the labels."""

    every: Outcome
    gated: Outcome
    knowing: Outcome


async def domain_calls(
    rows: Sequence[Row], run: tuple[int, int], plain: Analyst, *, plain_model: bool = False
) -> Compared:
    """Over :data:`SESSIONS` sessions whose topics are as long as ``run`` says."""
    totals = Outcome(), Outcome(), Outcome()
    gates: tuple[Callable[[Simulated], Gate], ...] = (lambda _: AlwaysAsk(), lambda _: DomainGate(plain), Knowing)
    for seed in range(SESSIONS):
        lines = list(session_of(rows, random.Random(seed), run))
        labels = [domain for domain, _ in lines]
        for total, gate_for in zip(totals, gates, strict=True):
            chance = random.Random(seed + 1000)
            model = PlainModel(labels, chance, plain) if plain_model else Simulated(labels, chance)
            total.add(await play(lines, gate_for(model), model))
    return Compared(*totals)


async def domain_call_lines(rows: Sequence[Row], plain: Analyst) -> list[Line]:
    """How many calls the gate saves, and what of the accuracy that costs."""
    lines = [Line("messages (sentences) in a text about one domain, mean", f"{messages_per_text(rows):.1f}")]
    for plain_model, who in ((False, "a simulated model"), (True, "plain text analysis as the model")):
        for run in TOPIC_LENGTHS:
            found = await domain_calls(rows, run, plain, plain_model=plain_model)
            every, gated = found.every, found.gated
            calls, points = gated.calls / every.calls, 100 * (gated.accuracy - every.accuracy)
            lines.append(
                Line(
                    f"domain calls, accuracy of {who}; a topic lasts {run[0]}-{run[1]} messages",
                    f"{gated.calls} ({calls:.0%}), {gated.accuracy:.3f} ({points:+.1f} points)",
                    goal="50 %, -2 points",
                    reached=calls <= 0.5 and points >= -2,
                    baseline=f"{every.calls}, {every.accuracy:.3f} (every 5 messages)",
                )
            )
            if not plain_model:
                knowing = found.knowing
                figures = f"{knowing.calls} ({knowing.calls / every.calls:.0%}), {knowing.accuracy:.3f}"
                lines.append(Line("  asking only when the labels say that the answer is another", figures))
    return lines
