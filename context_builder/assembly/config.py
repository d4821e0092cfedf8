"""How much a context holds, and how long it waits; plain numbers, so that logic stays pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from context_builder.assembly.budget.allocation import Choose
from context_builder.assembly.health import HealthState

Scope = Literal["tenant", "session"]


@dataclass(frozen=True, slots=True)
class AssemblyConfig:
    """Times in seconds unless named otherwise; the defaults are the documented ones.

    ``choose`` is how memories are picked when not all fit: ``greedy`` by score, or ``knapsack``, the set of
    the highest total score. ``scope`` is where memories are looked for in a :class:`MemoryStore`: in all of
    the tenant's (of the turn's user, when it names one), or in those of the turn's session.
    ``redact_user_message`` sends the message of the turn itself through the redactor as well, before memories are asked
    with it; without, it goes out to the model and to the memory as it is. For ``cache_seconds`` a
    turn asked for again with the same content and limit is answered with the same context; 0, not.
    ``feedback_weight`` is how much it counts whether a memory helped before; 0, not.
    ``by_query`` lets the kind of the turn's message choose weights and what is kept first. ``window`` is the model's
    context window in tokens; a prompt leaves ``reply_tokens`` of it free, whatever limit was asked for. Raises
    :class:`ValueError` for what cannot be meant.
    """

    max_prompt_tokens: int = 4000
    window: int | None = None
    reply_tokens: int = 1000
    by_query: bool = False

    top_k: int = 8
    top_k_degraded: int = 3
    threshold: float = 0.5
    similarity_weight: float = 0.7
    recency_weight: float = 0.3
    recency_days: float = 30.0
    feedback_weight: float = 0.0
    deadline: float = 0.3
    degraded_window: float = 15.0
    down_window: float = 60.0
    failures_until_down: int = 5
    summary_chars: int = 1024
    store_summaries: bool = True
    background_timeout: float = 30.0
    background_max: int = 100
    choose: Choose = "greedy"
    scope: Scope = "tenant"
    redact_user_message: bool = False
    cache_seconds: float = 0.0
    cache_size: int = 1000

    def __post_init__(self) -> None:
        if self.choose not in get_args(Choose) or self.scope not in get_args(Scope):
            raise ValueError(f"choose, scope: {self.choose!r} and {self.scope!r} are not among {Choose} and {Scope}")
        for name in ("max_prompt_tokens", "recency_days", "deadline", "failures_until_down"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not above 0")
        for name in ("top_k", "top_k_degraded", "degraded_window", "down_window", "summary_chars", "cache_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: {getattr(self, name)!r} is below 0")

    def limit(self, asked: int | None = None, default: int | None = None) -> int:
        """Tokens of a prompt: as asked, else what the window leaves, else the default; never more than the window."""
        if self.window is None:
            return asked if asked is not None else default or self.max_prompt_tokens
        free = self.window - self.reply_tokens
        return free if asked is None else min(asked, free)

    def memories_wanted(self, state: HealthState) -> int:
        """How many memories a context may hold while the memory is in ``state``."""
        match state:
            case HealthState.NORMAL:
                return self.top_k
            case HealthState.DEGRADED:
                return self.top_k_degraded
            case _:
                return 0
