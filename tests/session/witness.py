"""The truth about a session whose owners come, freeze, die and wake in any order over a Redis that may fall back.

Beside what the owners do, the witness keeps which commits Redis' present content is made of, and which of them each
owner knows. After every command it looks whether

* who wrote knew all that Redis held, and the session was not forgotten since they had loaded it;
* nothing that Redis held is gone, no message is there twice, and nothing of a forgotten session is back;
* nobody left who alone remembered what they had acknowledged, while nobody else had written.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from redis import Redis

from context_builder.session.conversation.memory_batch import MemoryBatch
from context_builder.session.keys import Keys

KEYS = Keys("monday")

YES = "Yes."
"""What people say again and again, with neither number nor timestamp; every other text is said once."""


class Commit(NamedTuple):
    """A commit by an owner; one that was sent twice is the same."""

    owner: int
    revision: int
    texts: frozenset[str]


@dataclass(frozen=True)
class Truth:
    """What Redis is known to hold; a copy of Redis comes with its truth.

    ``line`` are the commits that it is made of, also those that fell away and were restored, ``forgets`` the times it
    was forgotten before, with these ``forgotten`` texts, and ``yes`` how many "Yes." there are at least.
    """

    line: frozenset[Commit] = frozenset()
    forgets: frozenset[int] = frozenset()
    forgotten: frozenset[str] = frozenset()
    yes: int = 0


@dataclass(frozen=True)
class Knowledge:
    """What an owner loaded and wrote, and the texts that it has acknowledged."""

    line: frozenset[Commit] = frozenset()
    forgets: frozenset[int] = frozenset()
    acknowledged: frozenset[str] = frozenset()

    def covers(self, truth: Truth) -> bool:
        """Whether nobody else had a part in what Redis holds."""
        return truth.line <= self.line and truth.forgets <= self.forgets


@dataclass(frozen=True)
class Seen:
    """What is in Redis at one moment, ``by`` whomever: texts taken in, wherever they are, and waiting."""

    taken: Counter[str]
    waiting: Counter[str]
    revision: int
    by: bytes | None

    @property
    def texts(self) -> set[str]:
        return {text for text in (*self.taken, *self.waiting) if text != YES}


def read(redis: Redis) -> Seen:
    with redis.pipeline() as pipe:
        pipe.hgetall(KEYS.checkpoint)
        for key in (KEYS.input, KEYS.pending, KEYS.dead):
            pipe.lrange(key, 0, -1)
        fields, waiting, pending, dead = pipe.execute()
    buffered = [json.loads(value)["text"] for name, value in fields.items() if name.startswith(b"m:")]
    summary = json.loads(fields.get(b"summary", b'{"message_count": 0, "points": []}'))
    points = [point["text"] for point in summary["points"]]
    assert len(points) == summary["message_count"]
    letters = [base64.b64decode(json.loads(letter)["raw"]) for letter in dead]
    return Seen(
        Counter([*buffered, *(json.loads(raw)["text"] for raw in pending), *points, *map(text_of, letters)]),
        Counter(map(text_of, waiting)),
        int(fields.get(b"revision", 0)),
        fields.get(b"by"),
    )


def text_of(delivery: bytes) -> str:
    """What a delivery says; one that is no message is a text itself."""
    try:
        return str(json.loads(delivery)["text"])
    except ValueError:
        return delivery.decode()


class Witness:
    """Looks at Redis after everything that is done to it."""

    def __init__(self, redis: Redis) -> None:
        self.truth = Truth()
        self.forgotten: frozenset[str] = frozenset()
        self._redis = redis
        self._known: dict[int, Knowledge] = {}
        self._said: set[str] = set()
        self._yes = self._forgets = 0
        self._before = self.seen()

    def seen(self) -> Seen:
        return read(self._redis)

    # What is done

    def pushed(self, text: str) -> None:
        self._said.add(text)
        if text == YES:
            self._yes += 1
            self.truth = replace(self.truth, yes=self.truth.yes + 1)
        self._before = self.seen()

    def loaded(self, owner: int) -> None:
        """The owner has read the checkpoint just now."""
        self._known[owner] = Knowledge(self.truth.line, self.truth.forgets)

    def forgot(self) -> None:
        self._forgets += 1
        self.forgotten = frozenset(self._said - {YES})
        self.became(Truth(forgets=self.truth.forgets | {self._forgets}, forgotten=self.forgotten))

    def became(self, truth: Truth) -> None:
        """Redis was put back, replaced, or rid of the session."""
        self.truth = truth
        self._before = self.seen()

    # What must hold

    def look(self, owner: int) -> None:
        """The owner's command was carried out."""
        before, now = self._before, self.seen()
        self._before = now
        assert before.texts <= now.texts, f"lost: {before.texts - now.texts}"
        twice = [text for text, count in now.taken.items() if count > (self._yes if text == YES else 1)]
        assert not twice, f"there more often than it was said: {twice}"
        back = now.texts & self.truth.forgotten
        assert not back, f"forgotten, and back: {back}"
        if (now.revision, now.by) != (before.revision, before.by):
            self._wrote(owner, now)
        if not now.waiting:  # nothing can come again
            self.truth = replace(self.truth, yes=now.taken[YES])

    def _wrote(self, owner: int, now: Seen) -> None:
        known = self._known[owner]
        assert known.covers(self.truth), f"owner {owner} wrote over what it does not know"
        texts = frozenset(text for text in now.taken if text != YES)
        commit = Commit(owner, now.revision, texts)
        self._known[owner] = Knowledge(known.line | {commit}, known.forgets, texts)
        self.truth = replace(self.truth, line=known.line | {commit}, forgets=known.forgets)

    def left(self, owner: int, why: object) -> None:
        """The owner gave up."""
        known = self._known.get(owner, Knowledge())
        missing = known.acknowledged - self.seen().texts
        assert not (missing and known.covers(self.truth)), f"owner {owner} alone remembered {missing}, and left: {why}"

    def settled(self) -> None:
        """Nothing is under way any more: all is taken in, counted, summarized and on its way, each once."""
        now = self.seen()
        assert not now.waiting
        assert self.truth.yes <= now.taken[YES]
        state = json.loads(self._redis.get(KEYS.state) or b"{}")  # type: ignore[arg-type]
        summary, dead = state["rolling_summary"], self._redis.llen(KEYS.dead)
        assert (state["raw_recent_buffer"], state["pending_messages"], self._redis.llen(KEYS.pending)) == ([], 0, 0)
        assert (state["received_messages"], state["dead_letters"]) == (now.taken.total() - dead, dead)
        rows = self._redis.lrange(KEYS.outbox, 0, -1)
        assert {json.loads(row)["summary_seq"] for row in rows} == {*range(1, summary["summary_seq"] + 1)}
        parts = [MemoryBatch.decode(part) for part in self._redis.lrange(KEYS.memory_outbox, 0, -1)]
        said = {memory.text for part in parts for memory in part.memories}
        assert {point["text"] for point in summary["points"]} <= said
