"""The load on many sessions: speaks in all of them, and watches some to see when what was said is visible."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from itertools import cycle
from typing import Any

import orjson
import redis

from context_builder.demo import load_demo
from context_builder.session.keys import Keys
from context_builder.session.messages.message import CONSILIENCE
from scripts.benches.daemon.observer import TAIL_BYTES
from scripts.benches.daemon.processes import BenchError
from scripts.benches.hosting.names import session_name

EVENTS = "KE$l"
"""Keyspace events: of strings for the bench, of lists as the embedded Redis announces them."""

_NUMBER = re.compile(rb'"highest_message_number":(\d+)')


class Speakers:
    """Speaks in ``sessions`` sessions in turn and measures in about ``watched`` of them."""

    def __init__(self, redis_url: str, sessions: int, watched: int, *, first_number: int = 1) -> None:
        self._redis = redis.Redis.from_url(redis_url)
        self._watching = redis.Redis.from_url(redis_url)
        self._sessions = sessions
        self._step = max(1, sessions // watched)
        self._said = cycle(said.text for said in load_demo() if said.speaker != CONSILIENCE)
        self._number = first_number
        self._pushed: dict[tuple[bytes, int], float] = {}
        self._taken: list[float] = []
        self._ended = threading.Event()

    def speak(self, rate: float, seconds: float, patience: float) -> Sequence[float]:
        """Speak for so long and return the seconds until visible of all that was said in the watched sessions.

        Raises :class:`BenchError` when something is not visible ``patience`` seconds after the last word.
        """
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        time.sleep(0.5)
        began = time.monotonic()
        for turn in range(int(rate * seconds)):
            time.sleep(max(0.0, began + turn / rate - time.monotonic()))
            self._push(turn % self._sessions, self._number + turn // self._sessions)
        deadline = time.monotonic() + patience
        while self._pushed and time.monotonic() < deadline:
            time.sleep(0.01)
        self._ended.set()
        watcher.join()
        if self._pushed:
            raise BenchError(f"{len(self._pushed)} messages are not visible {patience:g} s after the last one")
        return self._taken

    def _push(self, session: int, number: int) -> None:
        name = session_name(session)
        message = {
            "session_id": name,
            "speaker": f"Speaker_{number % 3}",
            "text": next(self._said),
            "timestamp": datetime.now().isoformat(),
            "message_number": number,
        }
        keys = Keys(name)
        if session % self._step == 0:
            self._pushed[(keys.state.encode(), number)] = time.monotonic()
        self._redis.lpush(keys.input, orjson.dumps(message))

    def _watch(self) -> None:
        channels = [f"__keyspace@0__:{Keys(session_name(n)).state}" for n in range(0, self._sessions, self._step)]
        pubsub = self._watching.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]
        pubsub.subscribe(*channels)
        with redis.Redis(connection_pool=self._redis.connection_pool) as reading:
            while not self._ended.is_set():
                event: Any = pubsub.get_message(timeout=0.1)
                if event is None or event["data"] == b"expire":
                    continue
                state = event["channel"].partition(b":")[2]
                shown = _NUMBER.search(reading.getrange(state, -TAIL_BYTES, -1) or b"")  # type: ignore[arg-type]
                began = shown and self._pushed.pop((state, int(shown[1])), None)
                if began:
                    self._taken.append(time.monotonic() - began)
        pubsub.close()


def prepare(redis_url: str) -> None:
    """Turn on the events."""
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("notify-keyspace-events", EVENTS)


def ages(redis_url: str, sessions: int) -> list[float]:
    """Return how old each session's conversation state is, in seconds; infinite for those that have none."""
    with redis.Redis.from_url(redis_url) as client, client.pipeline(transaction=False) as pipe:
        for number in range(sessions):
            pipe.pttl(Keys(session_name(number)).conversation)
        return [10.0 - left / 1000 if left >= 0 else float("inf") for left in pipe.execute()]


def connections(redis_url: str) -> int:
    with redis.Redis.from_url(redis_url) as client:
        return len(client.client_list())
