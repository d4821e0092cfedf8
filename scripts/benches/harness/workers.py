"""Workers of a fleet on the benchmark's Redis, people who speak in many sessions, and what a second of that costs."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import orjson
import psutil
import redis

from context_builder.fleet.sleepers import SLEEPERS
from context_builder.session.keys import Keys
from scripts.benches.harness.report import BenchError
from scripts.benches.harness.stage import TAIL_BYTES, Child, Stage, demo_talk, wait_until

EVENTS: Final = "KE$l"
"""Keyspace events: of strings for the benchmark, of lists as the embedded Redis announces them."""

BENCH_EVENTS: Final = "K$"
"""Those of strings alone: nobody is told of pushes."""

MANY_KEYS: Final = 1_000_000
READY_PATIENCE: Final = 60.0
SCANS_BEGUN: Final = 2.0
"""Seconds after which a worker that is told nothing scans."""

TURN_SECONDS: Final = 0.005
"""What is due is said so often, or less often: each time costs the machine that is measured, too."""

_NUMBER: Final = re.compile(rb'"highest_message_number":(\d+)')


def session_names(count: int, kind: str = "hosted") -> list[str]:
    return [f"{kind}-{number}" for number in range(count)]


@contextmanager
def fleet_worker(stage: Stage, *, events: bool = True, **settings: Any) -> Iterator[Child]:
    """One more worker (``context-builder fleet``), which takes sessions."""
    with stage.child("context_builder", "fleet", **settings) as worker:
        worker.wait_for("fleet.ready", READY_PATIENCE)
        if events:
            worker.wait_for("fleet.hears_pushes", READY_PATIENCE)
        else:
            time.sleep(SCANS_BEGUN)
        yield worker


def empty(stage: Stage, events: str = EVENTS) -> None:
    """Forget all that is in the Redis, while nobody uses it, and have it tell of these events."""
    with redis.Redis.from_url(stage.redis_url) as client:
        client.flushall()
        client.config_resetstat()
        client.config_set("notify-keyspace-events", events)


def owners(redis_url: str, names: Sequence[str]) -> dict[str, int]:
    """The process that runs each session that somebody runs."""
    with redis.Redis.from_url(redis_url) as client:
        values: Any = client.mget([Keys(name).owner for name in names])
    return {name: orjson.loads(raw)["pid"] for name, raw in zip(names, values, strict=True) if raw}


def owned_elsewhere(redis_url: str, names: Sequence[str], pid: int) -> float:
    """The monotonic moment at which each session is run by somebody else than the process."""

    def is_so() -> bool:
        present = owners(redis_url, names)
        return len(present) == len(names) and pid not in present.values()

    return wait_until(is_so, f"{len(names)} sessions are run elsewhere")


def ages(redis_url: str, names: Sequence[str]) -> list[float]:
    """How old each session's conversation state is, in seconds; infinite for those that have none."""
    with redis.Redis.from_url(redis_url) as client, client.pipeline(transaction=False) as pipe:
        for name in names:
            pipe.pttl(Keys(name).conversation)
        return [10.0 - left / 1000 if left >= 0 else float("inf") for left in pipe.execute()]


def put_to_sleep(stage: Stage, sessions: int) -> list[str]:
    """Have people speak in so many sessions, and wait until these sleep and nobody runs them.

    No other row uses their names: the archive keeps summaries under them, which outlive an emptied Redis.
    """
    names = session_names(sessions, "sleeper")
    with fleet_worker(stage, session_sleep=5.0, raw_buffer_time_window=2.0):
        with Speakers(stage.redis_url, names, 50) as speakers:
            speakers.speak(150, 2 * sessions / 150)
        with redis.Redis.from_url(stage.redis_url) as client:
            wait_until(lambda: client.zcard(SLEEPERS) >= sessions, f"{sessions} sessions sleep", 600, poll=0.5)
    return names


def scanning(stage: Stage, events: str, others: int, seconds: float) -> tuple[Cost, float]:
    """What a second of looking for sessions among ``others`` keys costs, and the seconds of one SCAN."""
    empty(stage, events)
    fill(stage.redis_url, others)
    with fleet_worker(stage, events=events == EVENTS) as worker, redis.Redis.from_url(stage.redis_url) as client:
        client.config_resetstat()
        cost = cost_of(stage, seconds, worker.pid)
        stats: Any = client.info("commandstats")
    return cost, float(stats.get("cmdstat_scan", {}).get("usec_per_call", 0.0)) / 1e6


def fill(redis_url: str, keys: int) -> None:
    """Put so many keys of no session there."""
    with redis.Redis.from_url(redis_url) as client, client.pipeline(transaction=False) as pipe:
        for number in range(keys):
            pipe.set(f"another:{number}", b"")
            if number % 10_000 == 0:
                pipe.execute()
        pipe.execute()


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
        self._said = demo_talk()
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

    def speak(self, rate: float, seconds: float) -> list[Sample]:
        """Speak for so long and return what became visible of it in the watched sessions, all of which must."""
        return self._all_seen(self.speak_without_waiting(rate, seconds))

    def speak_without_waiting(self, rate: float, seconds: float) -> int:
        """Speak for so long; what :meth:`seen_since` is given to return what became visible of it."""
        first, count, began, turn = len(self._samples), int(rate * seconds), time.monotonic(), 0
        while turn < count:
            time.sleep(max(TURN_SECONDS if turn else 0.0, began + turn / rate - time.monotonic()))
            due = min(count, int((time.monotonic() - began) * rate) + 1)
            self._push(self._names[place % len(self._names)] for place in range(turn, due))
            turn = due
        return first

    def say_once(self, names: Iterable[str]) -> list[Sample]:
        """Say one thing in each of these sessions, at once, and return when it was visible."""
        first = len(self._samples)
        self._push(names)
        return self._all_seen(first)

    def wait(self, patience: float = 60.0) -> bool:
        """Whether all is visible within so many seconds."""
        with suppress(BenchError):
            wait_until(lambda: not self.unseen, "all is visible", patience, poll=0.01)
        return not self.unseen

    def seen_since(self, first: int) -> list[Sample]:
        return self._samples[first:]

    def _all_seen(self, first: int) -> list[Sample]:
        if not self.wait():
            raise BenchError(f"{self.unseen} messages are not visible a minute after the last one")
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
                tail: Any = reading.getrange(state, -TAIL_BYTES, -1)
                shown = _NUMBER.search(tail or b"")
                now, waiting = time.monotonic(), self._pushed[state]
                while shown and waiting and waiting[0][0] <= int(shown[1]):
                    pushed = waiting[0][1]
                    self._samples.append(Sample(self._watched[state], pushed, now - pushed))
                    waiting.popleft()


OWN: Final = {"info", "config|set", "config|get"}
"""Commands that only the benchmark sends while it measures."""


class Cost(dict[str, float]):
    """What went on in a second, on average: ``worker`` and ``analysis`` (text analysed in processes of the worker's
    own), ``redis`` (its main thread) and ``postgres`` in cores; Redis's ``commands``, those that scripts call included,
    ``scans`` among them, ``bytes_in`` and ``bytes_out``.
    """


class Meter:
    """Measures from now on what workers with these process ids, Redis and PostgreSQL use."""

    def __init__(self, stage: Stage, *pids: int) -> None:
        self._stage = stage
        self._processes = [psutil.Process(pid) for pid in pids]
        self._began, self._first = time.monotonic(), self._read()

    def cost(self) -> Cost:
        """What a second has cost since the meter was made."""
        now, seconds = self._read(), time.monotonic() - self._began
        return Cost({name: (now[name] - before) / seconds for name, before in self._first.items()})

    def _read(self) -> Mapping[str, float]:
        with redis.Redis.from_url(self._stage.redis_url) as client:
            info: Any = client.info("everything")
        calls = Counter(
            {key.removeprefix("cmdstat_"): of["calls"] for key, of in info.items() if key.startswith("cmdstat_")}
        )
        children = [child for process in self._processes for child in process.children(recursive=True)]
        return {
            "worker": sum(sum(process.cpu_times()[:2]) for process in self._processes),
            "analysis": sum(sum(child.cpu_times()[:2]) for child in children),
            "redis": info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"],
            "postgres": used_by_postgres(self._stage.home),
            "commands": sum(count for name, count in calls.items() if name not in OWN),
            "scans": calls["scan"],
            "bytes_in": info["total_net_input_bytes"],
            "bytes_out": info["total_net_output_bytes"],
        }


def cost_of(stage: Stage, seconds: float, *pids: int) -> Cost:
    """What a second costs, measured for so long."""
    meter = Meter(stage, *pids)
    time.sleep(seconds)
    return meter.cost()


class Others:
    """Measures from now on the cores that neither the benchmark nor what it has started uses.

    Figures taken beside much other work are no figures of the program. ``home`` is the folder of the PostgreSQL that
    the benchmark has started, which is no child of it.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._began = time.monotonic()
        self._first = self._used()

    def cores(self) -> float:
        """How many cores others have used since the beginning, on average."""
        return max(0.0, (self._used() - self._first) / (time.monotonic() - self._began))

    def _used(self) -> float:
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)
        return float(busy - used_with_children(os.getpid()) - used_by_postgres(self._home))


def used_with_children(pid: int) -> float:
    """The processor seconds that the process and all that it has started have used; none if it is gone."""
    used = 0.0
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                used += sum(process.cpu_times()[:4])
    return used


def used_by_postgres(home: Path) -> float:
    """The processor seconds that the PostgreSQL of the folder has used; none if it does not run."""
    with suppress(OSError, ValueError):
        return used_with_children(int((home / "postgres/data/postmaster.pid").read_text().splitlines()[0]))
    return 0.0
