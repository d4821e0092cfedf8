"""The config of a session holds times and sizes as plain numbers, so that logic stays pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from context_builder.analysis.options import SUMMARY_INPUT_TOKENS
from context_builder.config import CONFIG, Count, Seconds, setting

Wait = Annotated[float, Field(ge=0, le=60)]


@dataclass(frozen=True, slots=True, config=CONFIG)
class SessionConfig:
    """Times in seconds, and sizes in messages, tokens or bytes; the defaults are the documented ones."""

    tick: Seconds = setting(
        0.5,
        "POLL_INTERVAL",
        "Interval at which a session refreshes the conversation state when no message arrives. seconds",
    )
    buffer_window: Seconds = setting(
        120.0, "RAW_BUFFER_TIME_WINDOW", "Age of the oldest message in the buffer at which a summary starts. seconds"
    )
    buffer_max: Count = setting(1000, "RAW_BUFFER_MAX_MESSAGES", "Maximum messages in the published buffer. messages")
    buffer_max_bytes: Count = setting(
        4 * 1024 * 1024,
        "RAW_BUFFER_MAX_BYTES",
        "Maximum size of the published buffer as JSON; older messages wait for a summary, and the newest "
        "always stays. bytes",
    )
    summary_keep_last: Annotated[int, Field(ge=0)] = setting(
        0, "SUMMARY_KEEP_LAST", "Newest messages that a summary leaves in the buffer. messages"
    )
    summary_budget: Count = setting(
        1000, "SUMMARY_MAX_TOKENS", "Maximum tokens of the rolling summary for the first half hour of talk. tokens"
    )
    summary_growth: Annotated[int, Field(ge=0)] = setting(
        2000,
        "SUMMARY_TOKENS_PER_HOUR",
        "Tokens by which the rolling summary may grow with each further hour of talk, at most to twice "
        "SUMMARY_MAX_TOKENS; with 0 it keeps to that. tokens",
    )
    summary_input: Count = setting(
        SUMMARY_INPUT_TOKENS,
        "SUMMARY_INPUT_TOKENS",
        "Maximum tokens of messages and known points in one summary call. tokens",
    )
    summary_retry: Seconds = setting(15.0, "SUMMARY_RETRY_INTERVAL", "Wait after a failed summary. seconds")
    feed_memory: bool = setting(
        True,
        "FEED_MEMORY",
        "Store messages and points in the long-term memory. true or false",
    )
    archives: bool = True
    """Whether summaries are put in the archive's outbox; a session without an archive has it false."""
    pending_max: Count = setting(
        5000,
        "PENDING_MAX_MESSAGES",
        "Maximum messages that wait for a failing model; beyond this, plain text analysis summarizes them. messages",
    )
    pending_max_tokens: Count = setting(
        500_000,
        "PENDING_MAX_TOKENS",
        "Maximum tokens, of three bytes each, that wait for a failing model; beyond this, plain text analysis "
        "summarizes them. tokens",
    )
    pending_max_bytes: Count = setting(
        16 * 1024 * 1024,
        "PENDING_MAX_BYTES",
        "Maximum size, estimated, of the messages that wait for a summary; beyond this, what is pushed stays in the "
        "input, and beyond half of it, plain text analysis summarizes though the model works. bytes",
    )
    domain_messages: Count = setting(
        5, "DOMAIN_INFERENCE_INTERVAL", "New messages that start a domain inference. messages"
    )
    domain_interval: Seconds = setting(
        30.0,
        "DOMAIN_INFERENCE_TIME_INTERVAL",
        "Time since the last domain inference after which one new message starts the next. seconds",
    )
    domain_window: int = 10
    domain_skip: bool = setting(
        True,
        "DOMAIN_SKIP",
        "Skip the model call for domains while plain text analysis is sure of no change. true or false",
    )
    silence: Seconds = setting(
        4.0, "SILENCE_THRESHOLD", "Time without a message after which a session counts as silent. seconds"
    )
    keyword_batch: Count = setting(20, "KEYWORD_BATCH", "Maximum messages in one keyword call. messages")
    keyword_window: Wait = setting(
        0.05,
        "KEYWORD_BATCH_WINDOW",
        "Time that messages wait to share the next keyword call while one is running. seconds",
    )
    keyword_jobs: int = 2
    jobs: Count = setting(
        4, "LLM_CONCURRENCY_PER_SESSION", "Maximum model calls of one session in flight at the same time. number"
    )
    consilience_max: Count = setting(
        100,
        "CONSILIENCE_RESPONSES_MAX",
        "Maximum assistant responses in the published state; the newest stay. messages",
    )
    max_message_bytes: Count = setting(
        262144, "MAX_MESSAGE_BYTES", "Maximum size of a message; a larger message goes to the dead letters. bytes"
    )
    dead_letters_max: Count = setting(
        1000, "DEAD_LETTERS_MAX", "Maximum dead letters of the input, and of each outbox; the newest stay. messages"
    )
    dead_letters_bytes: Count = setting(
        64 * 1024 * 1024,
        "DEAD_LETTERS_MAX_BYTES",
        "Maximum size of the dead letters of the input, and of each outbox; the oldest are dropped first, and "
        "the newest always stays. bytes",
    )
    read_batch: int = 500
    state_ttl: Seconds = setting(
        3600.0, "STATE_TTL", "Time after a write at which the published state expires. seconds"
    )
    conversation_state_ttl: Seconds = setting(
        10.0, "CONVERSATION_STATE_TTL", "Time after a write at which the conversation state expires. seconds"
    )
    lease: Seconds = setting(
        10.0, "LEASE_TIME", "Maximum time that a dead process blocks a session for the next one. seconds"
    )
