"""Where every pushed message is, one by one: in Redis, in the archive and in the long-term memory at one moment."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from context_builder.session.keys import Keys
from scripts.campaign.listener import Sent
from scripts.campaign.tokens import tokens_in


@dataclass
class Findings:
    """What was wrong: tokens lost and doubled, and in words whatever else does not agree."""

    lost: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)

    def expect(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.disagreements.append(f"{what}: {found!r} where {expected!r} was expected")

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.disagreements)


@dataclass(frozen=True)
class Places:
    """The tokens in each place a message can be. They are disjoint when nothing is doubled."""

    waiting: Counter[str]
    buffer: Counter[str]
    pending: Counter[str]
    summarized: Counter[str]
    dead: Counter[str]
    published: Counter[str]
    head: dict[str, Any]
    summary: dict[str, Any]
    undelivered: int

    @classmethod
    async def read(cls, redis: Redis, session_id: str) -> Places:
        keys = Keys(session_id)
        async with redis.pipeline(transaction=True) as pipe:
            for key in (keys.input, keys.pending, keys.dead):
                pipe.lrange(key, 0, -1)
            pipe.hgetall(keys.checkpoint)
            pipe.get(keys.state)
            pipe.llen(keys.outbox)
            pipe.llen(keys.memory_outbox)
            waiting, pending, dead, checkpoint, state, unarchived, unremembered = await pipe.execute()
        summary = json.loads(checkpoint.get(b"summary", b"{}"))
        published = json.loads(state)["raw_recent_buffer"] if state else []
        return cls(
            waiting=_tokens(waiting),
            buffer=_said(json.loads(value) for name, value in checkpoint.items() if name.startswith(b"m:")),
            pending=_said(map(json.loads, pending)),
            summarized=_said(summary.get("points", ())),
            dead=_tokens(base64.b64decode(json.loads(letter)["raw"]) for letter in dead),
            published=_said(published),
            head=json.loads(checkpoint.get(b"head", b"{}")),
            summary=summary,
            undelivered=unarchived + unremembered,
        )

    @property
    def taken_in(self) -> Counter[str]:
        return self.buffer + self.pending + self.summarized + self.dead

    def where(self, token: str) -> str:
        """For people: every place that has it, and how often."""
        places = {name: getattr(self, name) for name in ("waiting", "buffer", "pending", "summarized", "dead")}
        return f"{token} in {', '.join(f'{name} ({held[token]})' for name, held in places.items() if token in held)}"

    @property
    def settled(self) -> bool:
        """Nothing is left to do: all is summarized or dead, and all summaries are in archive and memory."""
        return not (self.waiting or self.buffer or self.pending or self.undelivered)


def judge(places: Places, acknowledged: Iterable[str], sent: Sent) -> Findings:
    """Compare with what was ``acknowledged`` before the places were read."""
    taken_in = places.taken_in
    findings = Findings(
        lost={token for token in acknowledged if token not in taken_in and token not in places.waiting},
        doubled={token for token, times in taken_in.items() if times > 1},
    )
    if findings.doubled:
        findings.disagreements.append(f"doubled: {places.where(min(findings.doubled))}")
    findings.expect("never pushed", set(taken_in) - sent.attempted, set())
    findings.expect("dead although sound", {t for t in places.dead if t.startswith("m")}, set())
    findings.expect("published, not in the buffer", set(places.published) - set(places.buffer), set())
    if places.head and not findings.doubled:
        counters = places.head["counters"]
        findings.expect("received_messages", counters["received_messages"], taken_in.total() - places.dead.total())
        findings.expect("message_count", places.summary.get("message_count", 0), places.summarized.total())
        findings.expect("dead_letters", counters["dead_letters"], places.dead.total())
    return findings


def remembered_in(memories: Iterable[tuple[str, str]]) -> Counter[str]:
    """Tokens of the messages among ``memories`` (kind, text)."""
    return Counter(token for kind, text in memories if kind == "message" for token in tokens_in(text))


def judge_archive(places: Places, rows: Sequence[tuple[int, int, str]], *, named: bool = True) -> Findings:
    """Compare the archive's ``rows`` (summary_seq, message_count, summary_text), in order, with the summary.

    Unless summaries ``named`` every message, only their counts say something.
    """
    findings = Findings()
    findings.expect("archived summaries", [seq for seq, _, _ in rows], [*range(1, places.summary["seq"] + 1)])
    findings.expect("the last message_count", [row[1] for row in rows[-1:]], [places.summary["message_count"]])
    if not named:
        return findings
    before: Counter[str] = Counter()
    for seq, count, text in rows:
        tokens = Counter(tokens_in(text))
        findings.lost |= set(before - tokens)
        findings.doubled |= {token for token, times in tokens.items() if times > 1}
        findings.expect(f"message_count of summary {seq}", count, tokens.total())
        before = tokens
    findings.expect("the last archived summary", set(before), set(places.summarized))
    return findings


def judge_memory(places: Places, memories: Sequence[tuple[str, str]], *, named: bool = True) -> Findings:
    """Compare the ``memories`` (kind, text) of the session with the summary, whose points ``named`` every message."""
    remembered = remembered_in(memories)
    points = [text for kind, text in memories if kind == "point"]
    findings = Findings(
        lost=set(places.summarized) - set(remembered),
        doubled={token for token, times in remembered.items() if times > 1},
    )
    findings.expect("remembered, not summarized", set(remembered) - set(places.summarized), set())
    findings.expect("remembered points", len(points), len(places.summary["points"]))
    told = {token for text in points for token in tokens_in(text)}
    findings.expect("what remembered points tell", told if named else told | set(remembered), set(remembered))
    return findings


def _said(records: Iterable[dict[str, Any]]) -> Counter[str]:
    """Tokens in the texts alone: a token may well become a keyword, too."""
    return Counter(token for record in records for token in tokens_in(record["text"]))


def _tokens(deliveries: Iterable[bytes]) -> Counter[str]:
    return Counter(token for raw in deliveries for token in tokens_in(raw.decode(errors="replace")))
