"""When things happen in a session and how much it keeps; plain numbers, so that logic stays pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Times in seconds, sizes in messages, tokens or bytes; the defaults are the documented ones."""

    tick: float = 0.5
    buffer_window: float = 120.0
    buffer_max: int = 1000
    buffer_max_bytes: int = 4 * 1024 * 1024
    summary_keep_last: int = 0
    summary_budget: int = 1000
    summary_input: int = 12000
    summary_retry: float = 15.0
    feed_memory: bool = False
    pending_max: int = 5000
    pending_max_tokens: int = 500_000
    domain_messages: int = 5
    domain_interval: float = 30.0
    domain_window: int = 10
    domain_skip: bool = True
    silence: float = 4.0
    keyword_batch: int = 20
    keyword_window: float = 0.05
    keyword_jobs: int = 2
    jobs: int = 4
    consilience_max: int = 100
    max_message_bytes: int = 262144
    dead_letters_max: int = 1000
    dead_letters_bytes: int = 64 * 1024 * 1024
    read_batch: int = 500
    state_ttl: float = 3600.0
    conversation_state_ttl: float = 10.0
    lease: float = 10.0
