"""How calls of a model are made."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, Count, Seconds, setting


@dataclass(frozen=True, slots=True, config=CONFIG)
class CallOptions:
    """How calls are made.

    ``timeout`` (seconds) holds for one try. Between tries the wait grows from ``first_wait`` to
    ``longest_wait`` seconds, with jitter; a server that asks for a longer one is not tried again.
    ``concurrency`` bounds the requests in flight of all sessions that share the analyst.
    """

    timeout: Seconds = setting(30.0, "LLM_TIMEOUT", "Time after which a try of a model call is given up. seconds")
    attempts: Count = setting(
        3, "LLM_ATTEMPTS", "Tries of a model call before plain text analysis answers instead. number"
    )
    concurrency: Count = setting(
        8, "LLM_CONCURRENCY", "Most model calls of this process in flight at the same time. number"
    )
    first_wait: float = 0.25
    longest_wait: float = 10.0
