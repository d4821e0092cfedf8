"""The config of the read side holds sizes and times as plain numbers, so that logic stays pure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from context_builder.config import CONFIG, Count, Seconds, Share, setting

Choose = Literal["greedy", "knapsack"]
Scope = Literal["tenant", "session"]
Natural = Annotated[int, Field(ge=0)]
Duration = Annotated[float, Field(ge=0, le=10 * 365 * 86400, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, config=CONFIG)
class AssemblyConfig:
    """Sizes and times of prompts, in seconds unless named otherwise; the defaults are the documented ones.

    ``choose`` is how memories are picked when not all fit: ``greedy`` by score, or ``knapsack``, the set of
    the highest total score. ``scope`` is where memories are looked for in a :class:`MemoryStore`: in all of
    the tenant's (of the turn's user, when it names one), or in those of the turn's session.
    ``redact_user_message`` sends the message of the turn itself through the redactor as well, before memories are asked
    with it; without, it goes out to the model and to the memory as it is. For ``cache_seconds`` a
    turn asked for again with the same content and limit is answered with the same context; 0, not.
    ``feedback_weight`` is how much it counts whether a memory helped before; 0, not.
    ``by_query`` lets the kind of the turn's message choose weights and what is kept first. ``window`` is the model's
    context window in tokens; a prompt leaves ``reply_tokens`` of it free, whatever limit was asked for, and of the rest
    the share ``margin``, for a model that may count more tokens than are counted here. Raises
    :class:`ValueError` for what cannot be meant.
    """

    max_prompt_tokens: Count = setting(4000, "CONTEXT_MAX_TOKENS", "Maximum tokens of a prompt. tokens")
    window: Count | None = setting(
        None,
        "CONTEXT_WINDOW",
        "Context window of CONTEXT_MODEL; required if the package does not know the model. tokens",
    )
    reply_tokens: Count = setting(
        1000, "CONTEXT_REPLY_TOKENS", "Tokens of the model's context window that a prompt leaves for the reply. tokens"
    )
    margin: Share | None = setting(
        None,
        "CONTEXT_MARGIN",
        "Share of CONTEXT_MODEL's window that is kept free besides, as it may count more tokens than are counted here; "
        "default: 0.4 for a model whose encoding is not o200k_base, else 0. 0 to 1",
    )
    by_query: bool = setting(
        False,
        "CONTEXT_BY_QUERY",
        "Let the kind of query choose a prompt's weights and the section that is kept first. true or false",
    )

    top_k: Natural = setting(8, "CONTEXT_TOP_K", "Maximum memories in a prompt. memories")
    top_k_degraded: Natural = setting(
        3,
        "CONTEXT_TOP_K_DEGRADED",
        "Maximum memories in a prompt for CONTEXT_DEGRADED_WINDOW after the memory failed. memories",
    )
    threshold: Share = setting(
        0.5, "CONTEXT_THRESHOLD", "Minimum similarity to the query of a memory in a prompt. 0 to 1"
    )
    similarity_weight: Share = setting(
        0.7, "CONTEXT_SIMILARITY_WEIGHT", "Weight of similarity to the query in a memory's score. 0 to 1"
    )
    recency_weight: Share = setting(0.3, "CONTEXT_RECENCY_WEIGHT", "Weight of recency in a memory's score. 0 to 1")
    recency_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = setting(
        30.0, "CONTEXT_RECENCY_DAYS", "Age at which the recency of a memory has fallen to 0.37 (1/e). days"
    )
    feedback_weight: Share = setting(
        0.0,
        "CONTEXT_FEEDBACK_WEIGHT",
        "Weight of feedback (did the memory help before?) in a memory's score. 0 to 1",
    )
    deadline: Seconds = setting(0.3, "CONTEXT_DEADLINE", "Longest wait for memories while a prompt is built. seconds")
    degraded_window: Duration = setting(
        15.0,
        "CONTEXT_DEGRADED_WINDOW",
        "Time after a failure of the memory in which prompts request fewer memories. seconds",
    )
    down_window: Duration = setting(
        60.0,
        "CONTEXT_DOWN_WINDOW",
        "Time without any memory in prompts after CONTEXT_FAILURES_UNTIL_DOWN failures. seconds",
    )
    failures_until_down: Count = setting(
        5,
        "CONTEXT_FAILURES_UNTIL_DOWN",
        "Consecutive failures of the memory after which CONTEXT_DOWN_WINDOW begins. number",
    )
    summary_chars: Natural = setting(
        1024, "CONTEXT_SUMMARY_CHARS", "Maximum length of the summary of messages that leave a prompt. characters"
    )
    store_summaries: bool = setting(
        True,
        "CONTEXT_STORE_SUMMARIES",
        "Store a short summary of messages that leave a prompt in the memory. true or false",
    )
    background_timeout: float = 30.0
    background_max: int = 100
    choose: Choose = setting(
        "greedy",
        "CONTEXT_CHOOSE",
        "How memories are chosen when not all fit: greedy by score, knapsack by the highest total score.",
    )
    scope: Scope = setting(
        "tenant",
        "CONTEXT_SCOPE",
        "Memories that are searched for a prompt: all of the tenant's, or only the session's.",
    )
    redact_user_message: bool = setting(
        False,
        "CONTEXT_REDACT_USER_MESSAGE",
        "Redact the user's message of the turn too, before memories are searched with it. true or false",
    )
    cache_seconds: Duration = setting(
        0.0,
        "CONTEXT_CACHE_TIME",
        "Time for which the same turn gets the same prompt from a cache; 0 turns the cache off. seconds",
    )
    cache_size: Count = setting(
        1000, "CONTEXT_CACHE_SIZE", "Maximum prompts in the cache of CONTEXT_CACHE_TIME. prompts"
    )
