"""The load on many sessions: speaks in all of them, and watches some to see when what was said is visible."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle
from typing import Any, Self

import orjson
import redis

from context_builder.demo import load_demo
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from scripts.benches.daemon.observer import TAIL_BYTES
from scripts.benches.daemon.processes import BenchError

EVENTS = "KE$l"
"""Keyspace events: of strings for the bench, of lists as the embedded Redis announces them."""

BENCH_EVENTS = "K$"
"""Those of strings alone: nobody is told of pushes."""

TURN_SECONDS = 0.005
"""What is due is said so often, or less often: each time costs the machine that is measured, too."""

_NUMBER = re.compile(rb'"highest_message_number":(\d+)')


@dataclass(frozen=True)
class Sample:
    """A message of a watched session: when it was pushed (monotonic), and the seconds until it was visible."""

    session: str
    pushed: float
    seconds: float


class Speakers:
    """Speaks in the sessions ``names`` in turn and measures in about ``watched`` of them, in all by default.

    Messages are numbered from ``first_number`` in each session. Used as a context, in which it watches.
    """

    def __init__(
        self, redis_url: str, names: Sequence[str], watched: int | None = None, *, first_number: int = 1
    ) -> None:
        self._redis = redis.Redis.from_url(redis_url)
        self._watching = redis.Redis.from_url(redis_url)
        self._names = names
        step = 1 if watched is None else max(1, len(names) // watched)
        self._watched = {Keys(name).state.encode(): name for name in names[::step]}
        self._said = cycle(said.text for said in load_demo() if said.speaker != CONSILIENCE)
        self._next = dict.fromkeys(names, first_number)
        self._pushed: dict[bytes, deque[tuple[int, float]]] = {state: deque() for state in self._watched}
        self._samples: list[Sample] = []
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._pubsub = self._watching.pubsub()  # type: ignore[no-untyped-call]
        channels = [b"__keyspace@0__:" + state for state in self._watched]
        self._pubsub.subscribe(*channels)
        for _ in channels:
            self._pubsub.get_message(timeout=5)  # that it is subscribed
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()
        self._pubsub.close()
        self._watching.close()
        self._redis.close()

    @property
    def unseen(self) -> int:
        """How many messages of watched sessions are not visible yet."""
        return sum(map(len, self._pushed.values()))

    def speak(self, rate: float, seconds: float, patience: float = 60.0) -> list[Sample]:
        """Speak for so long and return what became visible of it in the watched sessions.

        Raises :class:`BenchError` when something is not visible ``patience`` seconds after the last word.
        """
        return self._all_seen(self.speak_without_waiting(rate, seconds), patience)

    def speak_without_waiting(self, rate: float, seconds: float) -> int:
        """Speak for so long; what :meth:`seen_since` is given to return what became visible of it."""
        first, count, began, turn = len(self._samples), int(rate * seconds), time.monotonic(), 0
        while turn < count:
            time.sleep(max(TURN_SECONDS if turn else 0.0, began + turn / rate - time.monotonic()))
            due = min(count, int((time.monotonic() - began) * rate) + 1)
            self._push(self._names[place % len(self._names)] for place in range(turn, due))
            turn = due
        return first

    def say_once(self, names: Iterable[str], patience: float = 60.0) -> list[Sample]:
        """Say one thing in each of these sessions, at once, and return when it was visible."""
        first = len(self._samples)
        self._push(names)
        return self._all_seen(first, patience)

    def wait(self, patience: float) -> bool:
        """Return whether all is visible within so many seconds."""
        deadline = time.monotonic() + patience
        while self.unseen and time.monotonic() < deadline:
            time.sleep(0.01)
        return not self.unseen

    def seen_since(self, first: int) -> list[Sample]:
        return self._samples[first:]

    def _all_seen(self, first: int, patience: float) -> list[Sample]:
        if not self.wait(patience):
            raise BenchError(f"{self.unseen} messages are not visible {patience:g} s after the last one")
        return self.seen_since(first)

    def _push(self, names: Iterable[str]) -> None:
        with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                number = self._next[name]
                self._next[name] = number + 1
                message = {
                    "session_id": name,
                    "speaker": f"Speaker_{number % 3}",
                    "text": next(self._said),
                    "timestamp": datetime.now().isoformat(),
                    "message_number": number,
                }
                keys = Keys(name)
                if (state := keys.state.encode()) in self._pushed:
                    self._pushed[state].append((number, time.monotonic()))
                pipe.lpush(keys.input, orjson.dumps(message))
            pipe.execute()

    def _watch(self) -> None:
        with redis.Redis(connection_pool=self._redis.connection_pool) as reading:
            while not self._ended.is_set():
                event: Any = self._pubsub.get_message(timeout=0.1)
                if event is None or event["type"] != "message" or event["data"] == b"expire":
                    continue
                state = event["channel"].partition(b":")[2]
                shown = _NUMBER.search(reading.getrange(state, -TAIL_BYTES, -1) or b"")
                now, waiting = time.monotonic(), self._pushed[state]
                while shown and waiting and waiting[0][0] <= int(shown[1]):
                    pushed = waiting[0][1]
                    self._samples.append(Sample(self._watched[state], pushed, now - pushed))
                    waiting.popleft()


def prepare(redis_url: str, events: str = EVENTS) -> None:
    """Turn on the events."""
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("notify-keyspace-events", events)


def ages(redis_url: str, names: Sequence[str]) -> list[float]:
    """Return how old each session's conversation state is, in seconds; infinite for those that have none."""
    with redis.Redis.from_url(redis_url) as client, client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.pttl(Keys(name).conversation)
        return [10.0 - left / 1000 if left >= 0 else float("inf") for left in pipe.execute()]


def connections(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return len(client.client_list())
