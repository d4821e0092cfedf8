"""Sessions that are recorded, beside somebody who remembers what was really published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from context_builder.clock import Instant
from context_builder.recording.file import FileRecorder, RecordingWriter
from context_builder.session.config import SessionConfig
from context_builder.session.conversation.state import PublishedState
from context_builder.session.session import Session, SessionDependencies
from context_builder.tokens.counter import count_tokens
from tests.session.live import TICK, Live

RULES: dict[str, Any] = {
    "buffer_max": 6,
    "buffer_max_bytes": 1800,
    "summary_input": 60,
    "summary_budget": 80,
    "summary_retry": 5,
    "keyword_batch": 3,
    "consilience_max": 2,
    "pending_max": 10,
}
"""Small sizes, so that little talk fills the buffer, the ledger and one call."""


class Witness(FileRecorder):
    """Records, and remembers every published state with its revision."""

    def __init__(self, writer: RecordingWriter, path: Path) -> None:
        super().__init__(writer, path, "estimate")
        self.states: list[tuple[int, bytes]] = []

    def published(self, revision: int, state: PublishedState, now: Instant) -> None:
        self.states.append((revision, bytes(state)))
        super().published(revision, state, now)


class Recorded(Live):
    """Runs sessions that are recorded in ``path``; ``states`` is all that they published."""

    def __init__(self, client: Redis, redis: Redis, path: Path) -> None:
        super().__init__(client, redis)
        self.path = path
        self.writer = RecordingWriter()
        self.witnesses: list[Witness] = []

    def session(self, session_id: str = "monday", **rules: Any) -> Session:
        parts = SessionDependencies(self.analyst, self.last_resort, self.archive, count_tokens, self.clock)
        witness = Witness(self.writer, self.path)
        self.witnesses.append(witness)
        return Session(self.client, session_id, SessionConfig(**{"tick": TICK, **RULES, **rules}), parts, witness)

    @property
    def states(self) -> list[tuple[int, bytes]]:
        return [state for witness in self.witnesses for state in witness.states]
