"""Where every pushed message is, one by one: in Redis, in the archive and in the long-term memory at one moment."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from redis.asyncio import Redis

from context_builder.analysis.analyst import MAX_QUOTES
from context_builder.errors import EntryUnreadable
from context_builder.memory.memory import Memory
from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.keys import Keys
from context_builder.session.messages.message_index import STRUCK
from scripts.campaign.listener import Sent
from scripts.campaign.tokens import tokens_in

_MOST: Final = 1e11
"""No session's calls have taken so many tokens."""


@dataclass
class Findings:
    """What was wrong: tokens lost, doubled and back although forgotten, and in words whatever else does not agree."""

    lost: set[str] = field(default_factory=set)
    doubled: set[str] = field(default_factory=set)
    returned: set[str] = field(default_factory=set)
    disagreements: list[str] = field(default_factory=list)

    def expect(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self.disagreements.append(f"{what}: {found!r} where {expected!r} was expected")

    def __bool__(self) -> bool:
        return bool(self.lost or self.doubled or self.returned or self.disagreements)


@dataclass
class Excused:
    """What faults took that nobody can give back, or left behind that nobody can take away.

    ``summaries`` were archived, and then Redis fell back to before them while their daemon was frozen or dead. It lost
    the messages ``taken_in`` before, which may have been remembered. Those that ``fell_back`` were taken in, and Redis
    has them at most in the input. ``remembered_again`` are messages with neither number nor timestamp that another
    daemon then read for the first time.
    """

    summaries: int = 0
    taken_in: set[str] = field(default_factory=set)
    fell_back: set[str] = field(default_factory=set)
    remembered_again: set[str] = field(default_factory=set)

    def gone(self, sent: Sent) -> set[str]:
        """Those of the messages taken in that nobody could send again."""
        return self.taken_in - sent.acknowledged

    def not_in_redis(self, sent: Sent, places: Places) -> set[str]:
        """Those that fell back which nobody could send again, or which wait in the input to be taken in again."""
        return self.gone(sent) | (self.fell_back & {*places.waiting})


NOTHING: Final = Excused()


@dataclass(frozen=True)
class Places:
    """The tokens in each place a message can be. They are disjoint when nothing is doubled.

    ``unarchived`` are numbers of summaries, ``unremembered`` tokens of messages that their receivers refused for good;
    ``to_remember`` are on their way to the memory, and ``recalled`` are known to be summarized from the memory alone.
    """

    waiting: Counter[str]
    buffer: Counter[str]
    pending: Counter[str]
    summarized: Counter[str]
    dead: Counter[str]
    published: Counter[str]
    head: dict[str, Any]
    summary: dict[str, Any]
    undelivered: int
    unarchived: frozenset[int]
    unremembered: frozenset[str]
    to_remember: frozenset[str]
    queued: int = 0
    struck: int = 0
    again: Counter[str] = field(default_factory=Counter)
    shown: frozenset[str] = frozenset()
    recalled: frozenset[str] = frozenset()

    @classmethod
    async def read(cls, redis: Redis, session_id: str) -> Places:
        keys = Keys(session_id)
        async with redis.pipeline(transaction=True) as pipe:
            lists = (keys.input, keys.pending, keys.dead, keys.archive_dead, keys.memory_dead, keys.memory_outbox)
            for key in lists:
                pipe.lrange(key, 0, -1)
            pipe.llen(keys.outbox)
            pipe.hgetall(keys.checkpoint)
            pipe.hvals(keys.message_index)
            pipe.get(keys.state)
            answers = await pipe.execute()
        waiting, pending, dead, unarchived, unremembered, to_remember, unarchived_yet, checkpoint, index, state = (
            answers
        )
        summary = json.loads(checkpoint.get(b"summary", b"{}"))
        published = json.loads(state)["raw_recent_buffer"] if state else []
        again = _said(json.loads(value) for name, value in checkpoint.items() if name.startswith(b"r:"))
        buffer = _said(json.loads(value) for name, value in checkpoint.items() if name.startswith(b"m:"))
        points = _said(summary.get("points", ()))
        return cls(
            waiting=_tokens(waiting),
            buffer=buffer,
            pending=_said(map(json.loads, pending)),
            summarized=points | again,
            dead=_tokens(map(_raw, dead)),
            published=_said(published),
            head=json.loads(checkpoint.get(b"head", b"{}")),
            summary=summary,
            undelivered=unarchived_yet + len(to_remember),
            unarchived=frozenset(json.loads(_raw(letter))["summary_seq"] for letter in unarchived),
            unremembered=_in_entries(map(_raw, unremembered)),
            to_remember=_in_entries(to_remember),
            queued=len(waiting),
            struck=index.count(STRUCK),
            again=again,
            shown=frozenset(buffer) | frozenset(points),
        )

    def of_messages(self, sent: Sent) -> Places:
        """With the tokens of messages in place of those of their corrections."""
        counted = ("waiting", "buffer", "pending", "summarized", "published", "again")
        named: dict[str, Any] = {name: _of_messages(getattr(self, name), sent) for name in counted}
        found = ("unremembered", "to_remember")
        named |= {name: frozenset(map(sent.root, getattr(self, name))) for name in found}
        return replace(self, **named)

    @property
    def taken_in(self) -> Counter[str]:
        return self.buffer + self.pending + self.summarized + self.dead

    @property
    def is_being_published(self) -> bool:
        """Whether the published state has messages that are no longer in the buffer."""
        return not set(self.published) <= set(self.buffer)

    @property
    def degraded(self) -> int:
        """Messages that plain text analysis summarized: their summary does not name them."""
        return int(self.summary.get("degraded_messages", 0))

    def with_memories(self, memories: Iterable[tuple[str, str]], gone: set[str]) -> Places:
        """With all messages as summarized whose words are in the memory (kind, text), or on their way there, unless
        they are still somewhere before that, or ``gone``: messages are remembered as they are said. What waits in the
        input is not, unless it was sent again.
        """
        remembered = {*remembered_in(memories), *self.to_remember, *self.unremembered}
        remembered -= {*self.buffer, *self.pending, *gone}
        recalled = frozenset(remembered.difference(self.summarized))
        return replace(self, summarized=self.summarized | Counter(remembered), recalled=recalled)

    @property
    def received(self) -> int:
        return int(self.head["counters"]["received_messages"]) if self.head else 0

    @property
    def summary_seq(self) -> int:
        return int(self.summary.get("seq", 0))

    def where(self, token: str) -> str:
        """For people: every place that has it, and how often."""
        places = {name: getattr(self, name) for name in ("waiting", "buffer", "pending", "summarized", "dead")}
        return f"{token} in {', '.join(f'{name} ({held[token]})' for name, held in places.items() if token in held)}"

    @property
    def left(self) -> int:
        """What is left to do until all is summarized or dead, and all summaries are in archive and memory."""
        waiting = sum(map(Counter.total, (self.buffer, self.pending, self.again)))
        return self.queued + waiting + self.undelivered


def judge(places: Places, acknowledged: Iterable[str], sent: Sent, excused: Excused = NOTHING) -> Findings:
    """Compare with what was ``acknowledged`` before the places were read."""
    taken_in = places.taken_in
    wanted = set(map(sent.root, acknowledged)) - sent.strikes - {""}
    findings = Findings(
        lost={token for token in wanted if token not in taken_in and token not in places.waiting},
        doubled={token for token, times in taken_in.items() if times > 1},
        returned={*taken_in, *places.waiting} & sent.forgotten - sent.attempted,
    )
    if not places.queued:  # every revision that was acknowledged is applied
        leaving = places.recalled if places.undelivered else frozenset()
        findings.returned |= {*taken_in} & sent.struck - leaving
        findings.expect("shown although corrected", places.shown & sent.outdated, set())
    if findings.doubled:
        findings.disagreements.append(f"doubled: {places.where(min(findings.doubled))}")
    findings.expect("never pushed", set(taken_in) - sent.attempted - sent.forgotten, set())
    findings.expect("dead although sound", {t for t in places.dead if t.startswith("m")}, set())
    findings.expect("published, not in the buffer", set(places.published) - set(places.buffer), set())
    if places.head and not findings.doubled:
        counters = places.head["counters"]
        leave = min(places.struck, len(places.recalled & sent.strikes))  # struck, and still to leave the memory
        received = counters["received_messages"] - places.struck
        present = taken_in.total() - places.dead.total()
        findings.expect(
            f"received_messages, with {len({*places.waiting} & {*taken_in})} of those taken in waiting, too",
            received,
            min(max(received, present - leave), present),
        )
        beyond = places.summary.get("message_count", 0) - places.summarized.total()
        findings.expect("message_count beyond what is summarized", beyond, min(max(beyond, -leave), places.struck))
        findings.expect("dead_letters", counters["dead_letters"], places.dead.total())
        findings.expect("figures of cost", [f for f in _figures(counters.get("cost")) if not 0 <= f < _MOST], [])
    return findings


def _figures(cost: Any) -> Iterator[float]:
    """All numbers in it, however deep."""
    if isinstance(cost, dict):
        for value in cost.values():
            yield from _figures(value)
    elif isinstance(cost, int | float):
        yield cost


def _of_messages(tokens: Counter[str], sent: Sent) -> Counter[str]:
    """How often each message is there, in whatever words."""
    messages: Counter[str] = Counter()
    for token, times in tokens.items():
        messages[sent.root(token)] += times
    return messages


def remembered_in(memories: Iterable[tuple[str, str]]) -> Counter[str]:
    """Tokens of the messages among ``memories`` (kind, text)."""
    return Counter(token for kind, text in memories if kind == "message" for token in tokens_in(text))


def judge_archive(
    places: Places,
    rows: Sequence[tuple[int, int, str, int | None]],
    sent: Sent,
    *,
    named: bool = True,
    excused: Excused = NOTHING,
) -> Findings:
    """Compare the archive's ``rows`` (summary_seq, message_count, summary_text), in order, with the summary.

    Unless summaries ``named`` every message, only their counts say something.
    """
    findings = Findings()
    seqs = [seq for seq, *_ in rows]
    if not places.struck:  # which deletes those that may tell it
        findings.expect("archived summaries", seqs, [*range(1, len(rows) + 1)])
    too_many = max(seqs, default=0) - places.summary_seq
    findings.expect("archived summaries beyond those made", too_many, min(max(too_many, 0), excused.summaries))
    if not named:
        findings.expect(
            "the last message_count", [row[1] for row in rows[-1:]], [places.summary["message_count"]] if rows else []
        )
        return findings
    told = [_of_messages(Counter(tokens_in(text)), sent) for _, _, text, _ in rows]
    latest = {token for _, _, text, superseded_by in rows[-1:] if superseded_by is None for token in tokens_in(text)}
    findings.expect("corrected, in the last summary", latest & sent.outdated, set())
    waiting_again = MAX_QUOTES * (sent.corrected + len(sent.strikes))  # messages of points that were retracted
    for (seq, count, *_), tokens in zip(rows, told, strict=True):
        findings.doubled |= {token for token, times in tokens.items() if times > 1}
        beyond = count - tokens.total()
        most = places.struck + (0 if seq == places.summary_seq else waiting_again)
        findings.expect(f"message_count of summary {seq} beyond", beyond, min(max(beyond, 0), most))
        findings.returned |= {*tokens} & sent.struck
    if sent.corrected or sent.strikes:  # a point that was retracted comes back in the next summary
        latest = {*told[-1]} if told else set()
        expected = {*places.summarized} - sent.strikes
        findings.expect("told by one alone of the last summary and the archive", latest ^ expected, set())
        return findings
    history = _longest_history([set(tokens) for tokens in told], set(places.summarized))
    if len(rows) - len(history) > excused.summaries:
        findings.lost |= set().union(*told) - set(places.summarized)
        findings.disagreements.append(f"of {len(rows)} archived summaries only {len(history)} go on from one another")
    return findings


def _longest_history(summaries: Iterable[set[str]], present: set[str]) -> Sequence[set[str]]:
    """The most of the ``summaries`` of which each contains the one before, and the last is the ``present`` one."""
    longest: list[list[set[str]]] = [[]]
    for summary in sorted(summaries, key=len):
        before = max((history for history in longest if not history or history[-1] <= summary), key=len)
        longest.append([*before, summary])
    return max((history for history in longest if history and history[-1] == present), key=len, default=[])


def judge_memory(
    places: Places,
    memories: Sequence[tuple[str, str]],
    sent: Sent,
    *,
    named: bool = True,
    excused: Excused = NOTHING,
) -> Findings:
    """Compare the ``memories`` (kind, text) of the session with the summary, whose points ``named`` every message.

    Nothing but what is summarized must be remembered: this is asked once all is.
    """
    found = remembered_in(memories)
    remembered = _of_messages(found, sent)
    points = [text for kind, text in memories if kind == "point"]
    findings = Findings(
        lost=set(places.summarized) - set(remembered),
        doubled={token for token, times in remembered.items() if times > 1} - excused.remembered_again,
    )
    gone = excused.gone(sent)
    findings.expect("remembered, not summarized", set(remembered) - set(places.summarized) - gone, set())
    if not excused.summaries:  # whose points are remembered
        findings.expect("remembered points", len(points), len(places.summary.get("points", ())))
    told = {sent.root(token) for text in points for token in tokens_in(text)}
    findings.returned |= {*remembered, *told} & sent.struck
    of_points = {token for text in points for token in tokens_in(text)}
    findings.expect("remembered although corrected", (set(found) | of_points) & sent.outdated, set())
    if excused.summaries or not named:  # later points may have taken their places
        told |= set(remembered)
    findings.expect("what remembered points tell", told - gone, set(remembered) - gone)
    return findings


def _in_entries(entries: Iterable[bytes]) -> frozenset[str]:
    """Tokens of the messages in entries of the memory's outbox, those that can be read."""
    memories: list[Memory] = []
    for entry in entries:
        with suppress(EntryUnreadable):
            memories += MemoryBatch.decode(entry).memories
    return frozenset(remembered_in((memory.kind, memory.text) for memory in memories))


def _raw(letter: bytes) -> bytes:
    return base64.b64decode(json.loads(letter)["raw"])


def _said(records: Iterable[dict[str, Any]]) -> Counter[str]:
    """Tokens in the texts alone: a token may well become a keyword, too."""
    return Counter(token for record in records for token in tokens_in(record["text"]))


def _tokens(deliveries: Iterable[bytes]) -> Counter[str]:
    return Counter(token for raw in deliveries for token in _tokens_of(raw))


def _tokens_of(delivery: bytes) -> list[str]:
    """In its text as it is read, because an escape may join a token to what stands before; else anywhere in it."""
    try:
        text = json.loads(delivery)["text"]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = ""
    return (tokens_in(text) if isinstance(text, str) else []) or tokens_in(delivery.decode(errors="replace"))
