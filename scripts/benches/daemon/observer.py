"""The measuring client: speaks as a listener does and looks as a reader does.

It waits for Redis to tell that the state was written (a keyspace notification, so waiting loads nobody) and then
reads the counters at the end of the state (``GETRANGE``, four kilobytes). A message counts as visible when
that answer is there. What this costs is measured by :meth:`Observer.own_cost`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import cycle
from typing import Any, Self

import orjson
import redis

from context_builder.demo import load_demo
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from scripts.benches.daemon.processes import PATIENCE, BenchError

TAIL_BYTES = 4_096
"""Enough for everything that follows the lists in a state."""

LONG = 200_000
"""Characters of a long message, which is still taken as one."""

_COUNTER = re.compile(rb'"(pending_messages|highest_message_number|received_messages|revision)":(\d+)')

Counters = dict[str, int]


class Observer:
    """Of one session; ``number`` is the last message's, and ``text`` what it says each time, if not the demo's talk.

    ``pushed`` counts the bytes of messages that came one at a time.
    """

    def __init__(self, redis_url: str, session_id: str) -> None:
        self.keys = Keys(session_id)
        self.redis = redis.Redis.from_url(redis_url)
        self.number = 0
        self.text: str | None = None
        self.pushed = 0
        self.session_id = session_id
        self._said = cycle(said for said in load_demo() if said.speaker != CONSILIENCE)
        self.redis.config_set("notify-keyspace-events", "K$")
        self._watching = redis.Redis.from_url(redis_url)
        self._written = self._watching.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        self._written.subscribe(f"__keyspace@0__:{self.keys.state}")
        self._written.get_message(ignore_subscribe_messages=True, timeout=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._written.close()
        self._watching.close()
        self.redis.close()

    # Speaking

    def delivery(self) -> bytes:
        """The next message, as a listener sends it."""
        self.number += 1
        said = next(self._said)
        return orjson.dumps(
            {
                "session_id": self.session_id,
                "speaker": said.speaker,
                "text": said.text if self.text is None else self.text,
                "timestamp": datetime.now().isoformat(),
                "confidence": 0.95,
                "message_number": self.number,
                "_score": float(self.number),
            }
        )

    def push(self) -> float:
        """Say one thing; the monotonic moment just before."""
        delivery = self.delivery()
        self.pushed += len(delivery)
        now = time.monotonic()
        self.redis.lpush(self.keys.input, delivery)
        return now

    def push_many(self, messages: int) -> float:
        """Say much as fast as possible, a hundred things a round trip; the monotonic moment just before."""
        began, left = time.monotonic(), messages
        while left:
            portion = min(left, 100)
            self.redis.lpush(self.keys.input, *(self.delivery() for _ in range(portion)))
            left -= portion
        return began

    # Looking

    def counters(self) -> Counters:
        """The state's counters; empty without a state."""
        tail: Any = self.redis.getrange(self.keys.state, -TAIL_BYTES, -1)
        counters = {name.decode(): int(value) for name, value in _COUNTER.findall(tail)}
        if tail and "highest_message_number" not in counters:
            raise BenchError(f"the state's last {TAIL_BYTES} bytes hold no counters")
        return counters

    def see(self, what: str, is_there: Callable[[Counters], bool], *, timeout: float = PATIENCE) -> float:
        """The monotonic moment at which the state's counters are as wanted."""
        return self._wait(what, lambda: is_there(self.counters()), timeout)

    def see_number(self, number: int) -> float:
        """The moment at which the message of that number is visible."""
        return self.see(f"message {number} is visible", lambda c: c.get("highest_message_number") == number)

    def see_state(self, what: str, is_so: Callable[[dict[str, Any]], bool], *, timeout: float = PATIENCE) -> float:
        """The monotonic moment at which the whole state is as wanted."""
        return self._wait(what, lambda: is_so(self.state()), timeout)

    def state(self) -> dict[str, Any]:
        encoded: Any = self.redis.get(self.keys.state)
        return dict(orjson.loads(encoded)) if encoded else {}

    def conversation_state(self) -> dict[str, Any]:
        encoded: Any = self.redis.get(self.keys.conversation)
        return dict(orjson.loads(encoded)) if encoded else {}

    def _wait(self, what: str, is_so: Callable[[], bool], timeout: float) -> float:
        deadline = time.monotonic() + timeout
        while not is_so():
            if time.monotonic() > deadline:
                raise BenchError(f"{self.session_id}: waited {timeout:g} s until {what}")
            self._written.get_message(timeout=0.5)
        return time.monotonic()

    # Checking itself

    def own_cost(self, samples: int) -> list[float]:
        """Seconds from writing a small state oneself to seeing it: the part of every figure that is measuring."""
        taken = []
        for number in range(1, samples + 1):
            began = time.monotonic()
            self.redis.set(self.keys.state, b'{"highest_message_number":%d}' % number)
            taken.append(self.see_number(number) - began)
        self.redis.delete(self.keys.state)
        return taken


def long_text() -> str:
    """The demo's talk over and over, :data:`LONG` characters of it."""
    text = " ".join(said.text for said in load_demo())
    return (text * (LONG // len(text) + 1))[:LONG]


def paced(messages: int, rate: float) -> Iterable[int]:
    """So many turns, at ``rate`` a second on average, with gaps that vary by half."""
    due = time.monotonic()
    for turn in range(messages):
        time.sleep(max(0.0, due - time.monotonic()))
        yield turn
        due = max(due, time.monotonic()) + (0.5 + (turn * 0.618) % 1) / rate
