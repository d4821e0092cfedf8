"""Row: what the commit of a message carries to Redis, while the buffer grows and once it is full."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from context_builder.analysis.analyst import MIN_KEYWORD_TEXT
from scripts.benches.daemon.observer import LONG, Observer, long_text, paced
from scripts.benches.daemon.stage import Scale, Stage
from scripts.benches.daemon.table import Line

GOAL: Final = 16_000
"""Bytes a message, however many are in the buffer."""

NEVER: Final = 600.0
"""Seconds in which the model answers with a summary: while one is under way, the buffer stays full."""

MESSAGES: Final = 100
"""At most, of those that are measured."""


def traffic(stage: Stage, scale: Scale) -> Iterator[Line]:
    """Messages one at a time, their pushes not counted; what a session refreshes meanwhile is."""
    with stage.model_server({"keywords": 0.15, "domains": 0.4, "summary": NEVER}) as url:
        for near in (10, 1_000, scale.old_session):
            yield _line(f"near message {near:,}, without keywords", _carried(stage, scale, url, near, "Hm"))
            yield _line(f"near message {near:,}, with keywords", _carried(stage, scale, url, near))
        long = _carried(stage, scale, url, 60, long_text())
        yield _line(f"messages of {LONG // 1000} KB, with keywords", long, 8 * LONG)


def _line(what: str, each: float, goal: int = GOAL) -> Line:
    return Line(what, f"{each:,.0f} bytes", each <= goal, values={"bytes_per_message": each})


def _carried(stage: Stage, scale: Scale, model_url: str, near: int, text: str | None = None) -> float:
    """Bytes a message, of the last half of ``near`` or of a hundred."""
    session, messages = stage.new_session(), min(near // 2, MESSAGES)
    settings = {"openai_api_key": "bench", "openai_base_url": model_url, "llm_timeout": NEVER}
    with stage.observer(session) as observer, stage.daemon(session, **settings):
        observer.text = text
        observer.push_many(near - messages)
        observer.see_state("all are understood", lambda s: _is_understood(s, observer.number), timeout=120)
        _settle(observer)
        observer.pushed, before = 0, _bytes_in(observer)
        for _ in paced(messages, scale.rate / 2):
            observer.push()
            observer.see_number(observer.number)
        _settle(observer)
        return (_bytes_in(observer) - before - observer.pushed) / messages


def _is_understood(state: dict[str, Any], received: int) -> bool:
    asked = (entry for entry in state["raw_recent_buffer"] if len(entry["text"]) >= MIN_KEYWORD_TEXT)
    return state["received_messages"] == received and all(entry["analyst"] for entry in asked)


def _settle(observer: Observer) -> None:
    """Wait until the session's revision has not changed for a second: then nothing is asked about any more."""
    revision, since = None, time.monotonic()
    while time.monotonic() - since < 1.0:
        if (now := observer.counters()["revision"]) != revision:
            revision, since = now, time.monotonic()
        time.sleep(0.1)


def _bytes_in(observer: Observer) -> int:
    stats: Any = observer.redis.info("stats")
    return int(stats["total_net_input_bytes"])
